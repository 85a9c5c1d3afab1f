import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { Command } from 'commander'
import { jsonSchemaOf } from '../../worker/schema.ts'
import { writeTypes, type TypedDatabase } from '../../typings/write-types.ts'
import type { VerbAction } from '../cli.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { printTarget, targetDocument, withStoreFlags, loadWorkerTarget, type TargetFlags, type WorkerTarget } from '../kit/target.ts'

interface TypesFlags extends TargetFlags {
  readonly out?: string
}

export function typesVerb(): Command {
  return withStoreFlags(new Command('types'))
    .summary('TypeScript types of the databases, for the client of the feed')
    .description('Writes a TypeScript type for each database: of its schema where one is declared, else of the columns that have landed.')
    .option('--out <file>', 'the file to write (default: standard output)')
}

export const types: VerbAction<[TypesFlags]> = async (cli, flags) => {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  const { text, databases } = writeTypes(await collectDatabases(target))
  const { terminal } = cli
  if (flags.out === undefined) {
    if (terminal.json) terminal.printDocument({ ...targetDocument(target), databases, text })
    else terminal.print(text.trimEnd())
    return
  }
  const file = resolve(cli.folder, flags.out)
  const changed = !existsSync(file) || readFileSync(file, 'utf8') !== text
  // A file that is the same keeps its time: whatever watches it need not build again.
  if (changed) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const out = relative(cli.folder, file) || file
  if (terminal.json) terminal.printDocument({ ...targetDocument(target), databases, out, changed })
  else terminal.print(changed ? `Wrote ${out}: ${databases.map(({ type }) => type).join(', ')}.` : `${out} is as it should be.`)
}

/** Those of the worker, then those that others have landed for this tenant: the feed serves them all. */
async function collectDatabases(target: WorkerTarget): Promise<TypedDatabase[]> {
  const store = await openExistingStore(target)
  const landed = store === null ? [] : await store.databases().finally(() => store.close())
  const declared = target.worker.manifest.databases.map(({ name }): TypedDatabase => {
    const schema = target.worker.schemaOf?.(name)
    return { name, schema: schema === undefined ? null : jsonSchemaOf(schema), columns: landed.find((database) => database.name === name)?.columns ?? [] }
  })
  const others = landed.filter(({ name }) => !declared.some((database) => database.name === name))
  return [...declared, ...others.map(({ name, columns }) => ({ name, schema: null, columns }))]
}
