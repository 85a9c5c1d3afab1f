import { NEVER_RUN, type Store } from '../contract/index.ts'
import { NO_PAUSES, type PauseStore } from '../engine/account-pauses.ts'
import { classify } from '../engine/classify.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import type { AbsenceFacts, Coverage, SourceSays } from './absence.ts'
import { askSource, type Outside } from './ask-source.ts'

/** Looked through from the newest on. */
const CYCLES_MAX = 1_000
const QUARANTINED_MAX = 10_000

export interface AskedKey {
  readonly tenant: string
  /** Null where there is none yet. */
  readonly store: Store | null
  /** Where the pauses of the account are kept; in the store unless given. */
  readonly pauses?: PauseStore
  readonly plans: readonly SyncPlan[]
  readonly database: string
  readonly key: string
}

/** What the source says of one key, by the first of its syncs that can tell. */
export async function askForKey(outside: Outside, stopping: AbortSignal, { tenant, store, pauses = store ?? NO_PAUSES, plans, database, key }: AskedKey): Promise<SourceSays> {
  const plan = plans.find(({ databases, lookup }) => lookup != null && databases[0]!.name === database)
  if (plan === undefined) return { kind: 'unasked', reason: 'it cannot be asked for one record.' }
  try {
    const pacers = (await store?.pacers(plan.worker)) ?? {}
    const change = await askSource(outside, stopping, { tenant, plan, pacers, pauses }, (context) => plan.lookup!(key, context))
    return change?.type === 'upsert' ? { kind: 'has', sync: plan.sync, updatedAt: change.upstreamUpdatedAt ?? null } : { kind: 'has_not', sync: plan.sync }
  } catch (error) {
    const { code, message } = classify(error)
    if (code === 'CANCELLED') throw error
    return { kind: 'unasked', reason: `${code}, ${message}` }
  }
}

/** What the store knows of one key, and of the syncs (`plans`) that write its database. */
export async function gatherFacts(store: Store | null, plans: readonly SyncPlan[], { database, key, source }: Pick<AbsenceFacts, 'database' | 'key' | 'source'>): Promise<AbsenceFacts> {
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
