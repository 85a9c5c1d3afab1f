import { relative, resolve } from 'node:path'
import { Command } from 'commander'
import { SyncError } from '../../contract/index.ts'
import type { VerbAction } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { printTarget, resolveStoreTarget, targetDocument, withStoreFlags, type TargetFlags } from '../kit/target.ts'

interface ExportFlags extends TargetFlags {
  readonly to: string
  readonly sinceLast?: boolean
}

export function exportVerb(): Command {
  return withStoreFlags(new Command('export'))
    .summary('write what has landed to a file')
    .description('Writes the rows of a database, or the log of all changes, to a Parquet, CSV or NDJSON file.')
    .argument('<database>', 'the database; `log` for the log of all changes')
    .requiredOption('--to <file>', 'the file to write; its ending says the format: .parquet, .csv or .ndjson')
    .option('--since-last', 'only what changed since the export before, into a file of its own beside this name')
}

export const exportRows: VerbAction<[string, ExportFlags]> = async (cli, name, flags) => {
  const target = resolveStoreTarget(cli, flags)
  printTarget(cli, target)
  const { exportToFile: exportTo, detectFormat: formatOf } = await import('../../export/export-to-file.ts')
  const path = resolve(cli.folder, flags.to)
  formatOf(path)
  const store = await openExistingStore(target)
  if (store === null) throw new SyncError('STORE_UNAVAILABLE', `There is no store at ${target.storeLabel} yet. \`tidemark run\` makes it.`)
  try {
    // A database of that name is meant first.
    const database = name === 'log' && !(await store.databaseNames()).includes('log') ? null : name
    const { file, rows, headSequence: position } = await exportTo(store, { database, file: path, sinceLast: flags.sinceLast === true })
    const written = file === null ? null : relative(cli.folder, file) || file
    if (cli.terminal.json) cli.terminal.printDocument({ ...targetDocument(target), database, file: written, rows, position })
    else cli.terminal.print(written === null ? 'Nothing has changed since the last export.' : `Wrote ${formatNumber(rows)} ${rows === 1 ? 'row' : 'rows'} to ${written}.`)
  } finally {
    await store.close()
  }
}
