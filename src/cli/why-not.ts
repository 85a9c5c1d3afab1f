import { Command } from 'commander'
import { didYouMean } from '../config/closest.ts'
import { shown } from '../config/names.ts'
import { NEVER_RUN, SyncError, type Store } from '../contract/index.ts'
import { classify } from '../engine/classify.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { judgeAbsence, type AbsenceFacts, type Coverage, type SourceSays } from './absence.ts'
import { askSource } from './ask-source.ts'
import type { Act, Cli } from './cli.ts'
import { ago } from './duration.ts'
import { isoTime } from './json-document.ts'
import { openForReading } from './open-for-reading.ts'
import { printable } from './printable.ts'
import { showTidemark } from '../redaction/redact-state.ts'
import { table } from './table.ts'
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

/** Looked through from the newest on. */
const CYCLES_MAX = 1_000
const QUARANTINED_MAX = 10_000

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
  try {
    const source = flags.ask ? await ask(cli, stopping, target, store, plans, database, key) : { kind: 'unasked', reason: 'you said not to.' } as const
    const facts = await gather(store, plans, { database, key, source })
    show(cli, target, facts)
  } finally {
    await store?.close()
  }
}

/** The first sync that can tell. */
async function ask(cli: Cli, stopping: AbortSignal, target: WorkerTarget, store: Store | null, plans: readonly SyncPlan[], database: string, key: string): Promise<SourceSays> {
  const plan = plans.find(({ databases, lookup }) => lookup != null && databases[0]!.name === database)
  if (plan === undefined) return { kind: 'unasked', reason: 'it cannot be asked for one record.' }
  try {
    const pacers = (await store?.pacers(plan.worker)) ?? {}
    const change = await askSource(cli, stopping, target, plan, pacers, (context) => plan.lookup!(key, context))
    return change?.type === 'upsert' ? { kind: 'has', sync: plan.sync, updatedAt: change.upstreamUpdatedAt ?? null } : { kind: 'has_not', sync: plan.sync }
  } catch (error) {
    const { code, message } = classify(error)
    if (code === 'CANCELLED') throw error
    return { kind: 'unasked', reason: `${code}, ${message}` }
  }
}

async function gather(store: Store | null, plans: readonly SyncPlan[], { database, key, source }: Pick<AbsenceFacts, 'database' | 'key' | 'source'>): Promise<AbsenceFacts> {
  const coverage: Coverage[] = []
  let quarantined: AbsenceFacts['quarantined'] = null
  for (const plan of plans) {
    const ref = { worker: plan.worker, sync: plan.sync }
    const { tidemark, paused, inflight } = store === null ? NEVER_RUN : await store.read(ref)
    const cycles = (await store?.cycles(ref, { limit: CYCLES_MAX })) ?? []
    const lastComplete = cycles.find(({ stopReason }) => stopReason === 'complete') ?? null
    coverage.push({ sync: plan.sync, mode: plan.mode, role: plan.pair?.role ?? null, tidemark, paused, lastComplete, unfinished: inflight?.cycle ?? null })
    const own = ((await store?.quarantined({ ref, limit: QUARANTINED_MAX })) ?? []).filter((entry) => entry.database === database && entry.key === key)
    for (const entry of own) if (quarantined === null || entry.at > quarantined.at) quarantined = entry
  }
  const last = (await store?.history(database, key))?.at(-1) ?? null
  const writer = last === null ? undefined : (await store!.cycles({ worker: last.worker, sync: last.sync }, { limit: CYCLES_MAX })).find(({ cycle }) => cycle === last.cycle)
  return { database, key, source, coverage, quarantined, last, lastMode: writer?.mode ?? null, isThere: (await store?.row(database, key)) != null }
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
