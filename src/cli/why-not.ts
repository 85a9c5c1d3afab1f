import { Command } from 'commander'
import { didYouMean } from '../config/closest.ts'
import { shown } from '../config/names.ts'
import { SyncError } from '../contract/index.ts'
import { judgeAbsence, type AbsenceFacts } from '../runner/absence.ts'
import { askForKey, gatherFacts } from '../runner/absence-facts.ts'
import type { Act, Cli } from './cli.ts'
import { ago } from './duration.ts'
import { isoTime } from './json-document.ts'
import { openForReading } from './open-for-reading.ts'
import { outsideOf } from './outside.ts'
import { printable } from './printable.ts'
import { showTidemark } from '../redaction/redact-state.ts'
import { table } from './table.ts'
import { targetPauses } from './target-pauses.ts'
import { announce, targetDocument, withStoreFlags, workerTarget, type TargetFlags, type WorkerTarget } from './target.ts'
import { systemClock } from '../platform/clock.ts'

interface WhyNotFlags extends TargetFlags {
  readonly ask: boolean
}

export function whyNotVerb(): Command {
  return withStoreFlags(new Command('why-not'))
    .summary('why a row is missing, and what to run')
    .description('Says why a row is not there: whether it was deleted, swept or quarantined and by which cycle, which cycle should have brought it, and whether the source has it now. Says what to run. Writes nothing.')
    .argument('<database>', 'the database')
    .argument('<key>', 'the key that is missing')
    .option('--no-ask', 'do not ask the source')
}

export const whyNot: Act<[string, string, WhyNotFlags]> = async (cli, database, key, flags) => {
  const stopping = cli.listenForStop()
  const target = await workerTarget(cli, flags)
  announce(cli, target)
  const plans = target.worker.plans().filter(({ databases }) => databases.some(({ name }) => name === database))
  if (plans.length === 0) {
    const known = target.worker.manifest.databases.map(({ name }) => name)
    throw new SyncError('ARGUMENT_INVALID', `No sync of ${target.name} writes a database ${shown(database)}.${didYouMean(database, known)}`)
  }
  const store = await openForReading(target)
  const pauses = targetPauses(target)
  try {
    const asked = { tenant: target.tenant, store, pauses, plans, database, key }
    const source = flags.ask ? await askForKey(await outsideOf(cli, target), stopping, asked) : { kind: 'unasked', reason: 'you said not to.' } as const
    show(cli, target, await gatherFacts(store, plans, { database, key, source }))
  } finally {
    await pauses.close()
    await store?.close()
  }
}

function show({ terminal }: Cli, target: WorkerTarget, facts: AbsenceFacts): void {
  const { database, key, source, coverage, quarantined, last } = facts
  const { verdict, why, advice, should } = judgeAbsence(facts)
  if (terminal.json) {
    terminal.document({
      ...targetDocument(target), database, key, verdict, why, advice, should, source,
      last: last === null ? null : { sequence: last.sequence, action: last.action, sync: last.sync, cycle: last.cycle, page: last.page, committedAt: isoTime(last.committedAt) },
      quarantined: quarantined === null ? null : { sync: quarantined.sync, cycle: quarantined.cycle, page: quarantined.page, code: quarantined.code, message: quarantined.message, at: isoTime(quarantined.at) },
      syncs: coverage.map(({ tidemark, lastComplete, ...rest }) => ({
        ...rest, tidemark: showTidemark(tidemark, false), lastComplete: lastComplete === null ? null : { cycle: lastComplete.cycle, startedAt: isoTime(lastComplete.startedAt) },
      })),
    })
    return
  }
  const { bold, dim } = terminal.colors
  const now = systemClock.now()
  terminal.print(
    `${bold(verdict.replaceAll('_', ' '))}  ${printable(why)}`,
    `  ${printable(advice)}`,
    '',
    ...table(['SYNC', 'MODE', 'TIDEMARK', 'LAST COMPLETE CYCLE'], coverage.map(({ sync, mode, tidemark, lastComplete, paused, unfinished }) => [
      sync, mode, showTidemark(tidemark, false) ?? '-',
      `${lastComplete === null ? 'never' : `${lastComplete.cycle}, begun ${ago(lastComplete.startedAt, now)}`}${unfinished === null ? '' : `; ${unfinished} is unfinished`}${paused ? '; paused' : ''}`,
    ])).map((line) => dim(line)),
  )
}
