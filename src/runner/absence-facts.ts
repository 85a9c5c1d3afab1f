import { EMPTY_CHECKPOINT, type Store } from '../contract/index.ts'
import { NOOP_PAUSE_STORE, type PauseStore } from '../engine/account-pauses.ts'
import { classifyError } from '../engine/classify-error.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import type { AbsenceFacts, SyncProgress, SourceLookupResult } from './absence.ts'
import { callSource, type SourceRuntime } from './call-source.ts'

/** Newest first. */
const CYCLES_MAX = 1_000
const QUARANTINED_MAX = 10_000

export interface KeyLookupRequest {
  readonly tenant: string
  /** Null if the store does not exist yet. */
  readonly store: Store | null
  /** Defaults to the store. */
  readonly pauses?: PauseStore
  readonly plans: readonly SyncPlan[]
  readonly database: string
  readonly key: string
}

/** Looks the key up at the source, through the first sync of the database that supports lookups. */
export async function lookUpKey(
  runtime: SourceRuntime,
  stopping: AbortSignal,
  { tenant, store, pauses = store ?? NOOP_PAUSE_STORE, plans, database, key }: KeyLookupRequest,
): Promise<SourceLookupResult> {
  const plan = plans.find(({ databases, lookup }) => lookup != null && databases[0]?.name === database)
  const lookup = plan?.lookup
  if (plan === undefined || lookup == null)
    return { kind: 'unasked', reason: 'it does not support lookups of single records.' }
  try {
    const pacers = (await store?.lastSlotTimes(plan.worker)) ?? {}
    const change = await callSource(runtime, stopping, { tenant, plan, store, pacers, pauses }, (context) =>
      lookup(key, context),
    )
    if (change === null || change === undefined || change.type === 'delete') return { kind: 'has_not', sync: plan.sync }
    const updatedAt = change.type === 'upsert' ? (change.upstreamUpdatedAt ?? null) : null
    return { kind: 'has', sync: plan.sync, updatedAt }
  } catch (error) {
    const { code, message } = classifyError(error)
    if (code === 'CANCELLED') throw error
    return { kind: 'unasked', reason: `${code}, ${message}` }
  }
}

/** Reads the state of one key from the store, and the progress of the syncs (`plans`) that write its database. */
export async function gatherAbsenceFacts(
  store: Store | null,
  plans: readonly SyncPlan[],
  { database, key, source }: Pick<AbsenceFacts, 'database' | 'key' | 'source'>,
): Promise<AbsenceFacts> {
  const progress: SyncProgress[] = []
  let quarantined: AbsenceFacts['quarantined'] = null
  for (const plan of plans) {
    const ref = { worker: plan.worker, sync: plan.sync }
    const { tidemark, paused, inflight } = store === null ? EMPTY_CHECKPOINT : await store.readCheckpoint(ref)
    const cycles = (await store?.cycles(ref, { limit: CYCLES_MAX })) ?? []
    const lastComplete = cycles.find(({ stopReason }) => stopReason === 'complete') ?? null
    progress.push({
      sync: plan.sync,
      mode: plan.mode,
      role: plan.pair?.role ?? null,
      tidemark,
      paused,
      lastComplete,
      unfinished: inflight?.cycle ?? null,
    })
    const own = ((await store?.quarantineEntries({ ref, limit: QUARANTINED_MAX })) ?? []).filter(
      (entry) => entry.database === database && entry.key === key,
    )
    for (const entry of own) if (quarantined === null || entry.at > quarantined.at) quarantined = entry
  }
  const lastEntry = (await store?.history(database, key))?.at(-1) ?? null
  const lastEntryCycles =
    store === null || lastEntry === null
      ? []
      : await store.cycles({ worker: lastEntry.worker, sync: lastEntry.sync }, { limit: CYCLES_MAX })
  const writer = lastEntryCycles.find(({ cycle }) => cycle === lastEntry?.cycle)
  return {
    database,
    key,
    source,
    progress,
    quarantined,
    lastEntry,
    lastEntryMode: writer?.mode ?? null,
    exists: (await store?.row(database, key)) != null,
  }
}
