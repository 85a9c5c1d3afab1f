import { Command } from 'commander'
import { didYouMean } from '../../values/did-you-mean.ts'
import { describeValue } from '../../config/names.ts'
import { SyncError } from '../../contract/index.ts'
import { explainAbsence, type AbsenceFacts } from '../../runner/absence.ts'
import { lookUpKey, gatherAbsenceFacts } from '../../runner/absence-facts.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatAgo } from '../kit/duration.ts'
import { isoTime } from '../kit/json-document.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { toPrintable } from '../kit/printable.ts'
import { redactTidemark } from '../../redaction/redact-state.ts'
import { formatTable } from '../kit/table.ts'
import { openTargetPauses } from '../kit/target-pauses.ts'
import {
  printTarget,
  targetDocument,
  withStoreFlags,
  loadWorkerTarget,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'
import { systemClock } from '../../platform/clock.ts'

interface WhyNotFlags extends TargetFlags {
  readonly ask: boolean
}

export function whyNotVerb(): Command {
  return withStoreFlags(new Command('why-not'))
    .summary('explain why a row is missing')
    .description(
      'Explains why a row is missing: whether it was deleted, swept or quarantined and by which cycle, which cycle should have read it, and whether the source has it now. Suggests a command. Writes nothing.',
    )
    .argument('<database>', 'the database')
    .argument('<key>', 'the key of the missing row')
    .option('--no-ask', 'do not query the source')
}

export const whyNot: VerbAction<[string, string, WhyNotFlags]> = async (cli, database, key, flags) => {
  const stopping = cli.listenForStop()
  const target = await loadWorkerTarget(cli, flags)
  printTarget(cli, target)
  const plans = target.worker.plans().filter(({ databases }) => databases.some(({ name }) => name === database))
  if (plans.length === 0) {
    const known = target.worker.manifest.databases.map(({ name }) => name)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `No sync of ${target.name} writes to a database ${describeValue(database)}.${didYouMean(database, known)}`,
    )
  }
  const store = await openExistingStore(target)
  const pauses = openTargetPauses(target)
  try {
    const request = { tenant: target.tenant, store, pauses, plans, database, key }
    const source = flags.ask
      ? await lookUpKey(await createRuntime(cli, target), stopping, request)
      : ({ kind: 'unasked', reason: '--no-ask was given.' } as const)
    printAbsence(cli, target, await gatherAbsenceFacts(store, plans, { database, key, source }))
  } finally {
    await pauses.close()
    await store?.close()
  }
}

function printAbsence({ terminal }: Cli, target: WorkerTarget, facts: AbsenceFacts): void {
  const { database, key, source, progress, quarantined, lastEntry: last } = facts
  const { verdict, why, advice, should } = explainAbsence(facts)
  if (terminal.json) {
    terminal.printDocument({
      ...targetDocument(target),
      database,
      key,
      verdict,
      why,
      advice,
      should,
      source,
      last:
        last === null
          ? null
          : {
              sequence: last.sequence,
              action: last.action,
              sync: last.sync,
              cycle: last.cycle,
              page: last.page,
              committedAt: isoTime(last.committedAt),
            },
      quarantined:
        quarantined === null
          ? null
          : {
              sync: quarantined.sync,
              cycle: quarantined.cycle,
              page: quarantined.page,
              code: quarantined.code,
              message: quarantined.message,
              at: isoTime(quarantined.at),
            },
      syncs: progress.map(({ tidemark, lastComplete, ...rest }) => ({
        ...rest,
        tidemark: redactTidemark(tidemark, false),
        lastComplete:
          lastComplete === null ? null : { cycle: lastComplete.cycle, startedAt: isoTime(lastComplete.startedAt) },
      })),
    })
    return
  }
  const { bold, dim } = terminal.colors
  const now = systemClock.now()
  terminal.print(
    `${bold(verdict.replaceAll('_', ' '))}  ${toPrintable(why)}`,
    `  ${toPrintable(advice)}`,
    '',
    ...formatTable(
      ['SYNC', 'MODE', 'TIDEMARK', 'LAST COMPLETE CYCLE'],
      progress.map(({ sync, mode, tidemark, lastComplete, paused, unfinished }) => [
        sync,
        mode,
        redactTidemark(tidemark, false) ?? '-',
        `${lastComplete === null ? 'never' : `${lastComplete.cycle}, started ${formatAgo(lastComplete.startedAt, now)}`}${unfinished === null ? '' : `; ${unfinished} is unfinished`}${paused ? '; paused' : ''}`,
      ]),
    ).map((line) => dim(line)),
  )
}
