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
    .summary('export rows or the change log to a file')
    .description('Writes the rows of a database, or the change log, to a Parquet, CSV or NDJSON file.')
    .argument('<database>', 'the database; `log` for the change log')
    .requiredOption('--to <file>', 'the file to write: .parquet, .csv or .ndjson')
    .option('--since-last', 'write only changes since the last export, to a new file')
}

export const exportRows: VerbAction<[string, ExportFlags]> = async (cli, name, flags) => {
  const target = resolveStoreTarget(cli, flags)
  printTarget(cli, target)
  const { exportToFile, detectFormat } = await import('../../export/export-to-file.ts')
  const path = resolve(cli.folder, flags.to)
  detectFormat(path)
  const store = await openExistingStore(target)
  if (store === null)
    throw new SyncError(
      'STORE_UNAVAILABLE',
      `The store ${target.storeLabel} does not exist yet. Run \`tidemark run\` to create it.`,
    )
  try {
    // A database named `log` takes precedence over the change log.
    const database = name === 'log' && !(await store.databaseNames()).includes('log') ? null : name
    const { file, rows, headSequence } = await exportToFile(store, {
      database,
      file: path,
      sinceLast: flags.sinceLast === true,
    })
    const written = file === null ? null : relative(cli.folder, file) || file
    if (cli.terminal.json)
      cli.terminal.printDocument({ ...targetDocument(target), database, file: written, rows, headSequence })
    else
      cli.terminal.print(
        written === null
          ? 'No changes since the last export.'
          : `Wrote ${formatNumber(rows)} ${rows === 1 ? 'row' : 'rows'} to ${written}.`,
      )
  } finally {
    await store.close()
  }
}
