import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { Command } from 'commander'
import { jsonSchemaOf } from '../../worker/schema.ts'
import { writeTypes, type TypedDatabase } from '../../typings/write-types.ts'
import type { VerbAction } from '../cli.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import {
  printTarget,
  targetDocument,
  withStoreFlags,
  loadWorkerTarget,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface TypesFlags extends TargetFlags {
  readonly out?: string
}

export function typesVerb(): Command {
  return withStoreFlags(new Command('types'))
    .summary('generate TypeScript types for the databases')
    .description(
      'Generates a TypeScript type for each database, from its declared schema or else from its stored columns, for use with the feed client.',
    )
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
  // An unchanged file keeps its modification time, so that file watchers do not rebuild.
  if (changed) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const out = relative(cli.folder, file) || file
  if (terminal.json) terminal.printDocument({ ...targetDocument(target), databases, out, changed })
  else
    terminal.print(changed ? `Wrote ${out}: ${databases.map(({ type }) => type).join(', ')}.` : `${out} is up to date.`)
}

/** Declared databases, then those that other workers fill for this tenant: the feed serves all of them. */
async function collectDatabases(target: WorkerTarget): Promise<TypedDatabase[]> {
  const store = await openExistingStore(target)
  const stored = store === null ? [] : await store.databases().finally(() => store.close())
  const declared = target.worker.manifest.databases.map(({ name }): TypedDatabase => {
    const schema = target.worker.schemaOf?.(name)
    return {
      name,
      schema: schema === undefined ? null : jsonSchemaOf(schema),
      columns: stored.find((database) => database.name === name)?.columns ?? [],
    }
  })
  const others = stored.filter(({ name }) => !declared.some((database) => database.name === name))
  return [...declared, ...others.map(({ name, columns }) => ({ name, schema: null, columns }))]
}
