import { Command, Option } from 'commander'
import type { CycleRecord } from '../../contract/index.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { parseCount } from '../kit/arguments.ts'
import { describeCounts, formatNumber } from '../kit/counts.ts'
import { formatDuration } from '../kit/duration.ts'
import { findSync } from '../kit/find-sync.ts'
import { isoTime } from '../kit/json-document.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { formatTable } from '../kit/table.ts'
import { loadWorkerTarget, printTarget, targetDocument, withStoreFlags, type TargetFlags } from '../kit/target.ts'

interface CyclesFlags extends TargetFlags {
  readonly limit: number
  readonly failed?: boolean
}

export function cyclesVerb(): Command {
  return withStoreFlags(new Command('cycles'))
    .summary('list the latest cycles, newest first')
    .description(
      'Lists the latest cycles of a sync, or of all syncs of the worker: when they ran, how they ended, what they changed, and their error.',
    )
    .argument('[sync]', 'the sync (default: all)')
    .addOption(new Option('--limit <n>', 'number of cycles').argParser(parseCount).default(20))
    .option('--failed', 'only cycles that ended with an error')
}

export const cycles: VerbAction<[string | undefined, CyclesFlags]> = async (cli, sync, flags) => {
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  const store = await openExistingStore(target)
  try {
    const ref = sync === undefined ? null : await findSync(target, store, sync)
    // Filtered here, so more are read than shown.
    const limit = flags.failed === true ? FILTERED_MAX : flags.limit
    const found = (await store?.cycles(ref, { limit })) ?? []
    const shown = found
      .filter(({ worker, error }) => worker === target.name && (flags.failed !== true || error !== null))
      .slice(0, flags.limit)
    if (cli.terminal.json) cli.terminal.printDocument({ ...targetDocument(target), cycles: shown.map(toCycleDocument) })
    else printCycles(cli, shown)
  } finally {
    await store?.close()
  }
}

const FILTERED_MAX = 10_000

function toCycleDocument(record: CycleRecord): object {
  const { sync, cycle, mode, trigger, startedAt, endedAt, stopReason, endReason, pages, counts } = record
  const { retries, waitedMs, error } = record
  return {
    sync,
    cycle,
    mode,
    trigger,
    startedAt: isoTime(startedAt),
    endedAt: endedAt === null ? null : isoTime(endedAt),
    stopReason,
    endReason,
    pages,
    counts,
    retries,
    waitedMs,
    error,
  }
}

function printCycles({ terminal }: Cli, shown: readonly CycleRecord[]): void {
  const { colors } = terminal
  if (shown.length === 0) return terminal.print('No cycle has run yet.')
  const rows = shown.map(({ sync, cycle, startedAt, endedAt, stopReason, pages, counts, error }) => [
    isoTime(startedAt),
    sync,
    String(cycle),
    endedAt === null ? 'running' : error === null ? (stopReason ?? '-') : colors.red(error.code),
    endedAt === null ? '-' : formatDuration(endedAt - startedAt),
    formatNumber(pages),
    describeCounts(counts),
  ])
  terminal.print(...formatTable(['STARTED', 'SYNC', 'CYCLE', 'END', 'TOOK', 'PAGES', 'ROWS'], rows))
  const errors = new Map(shown.flatMap(({ error }) => (error === null ? [] : [[error.code, error.message] as const])))
  for (const [code, message] of errors) terminal.print(`${colors.red(code)}: ${toPrintable(message)}`)
}
