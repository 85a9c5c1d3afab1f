import type { ManifestSync } from '../../worker/worker.ts'
import type { Schedule } from '../../config/schedule.ts'
import {
  EMPTY_CHECKPOINT,
  type BackfillRequest,
  type CycleRecord,
  type CheckpointSummary,
  type Store,
  type SyncRef,
} from '../../contract/index.ts'
import { computeDueTime, RECENT_CYCLES, type DueTime } from '../../runner/due.ts'
import { computeHealth, type Health } from '../../runner/health.ts'
import { computeCompleteSince } from '../../runner/complete-since.ts'
import { toParents } from '../../runner/declared-sync.ts'
import { findPairBackfill } from '../../runner/pair-backfill.ts'
import { readParents } from '../../runner/parents.ts'
import { CONTINUOUS_PAUSE_MS } from '../../runner/status.ts'
import { systemClock } from '../../platform/clock.ts'
import { isHolderGone, parseHolder } from '../../platform/lease-holder.ts'
import { formatDuration } from './duration.ts'

/** The status of one sync, gathered from the worker and the store. */
export interface SyncStatusDetails extends SyncRef {
  readonly health: Health
  /** Null for a stored sync that the worker no longer declares. */
  readonly declared: ManifestSync | null
  readonly checkpoint: CheckpointSummary
  readonly lastCycle: CycleRecord | null
  /** The maximum age of the copy. Null before the first complete cycle, and for a backfill, whose delta determines it. */
  readonly lagMs: number | null
  readonly due: DueTime | null
  readonly leaseHolder: LeaseHolder | null
  /** A backfill is needed because changes were lost: requested, or derived from the retention of the source. */
  readonly backfillNeeded: BackfillRequest | null
  readonly quarantined: number
  /** How the shape of the records changed in the last cycle. */
  readonly drift: string | null
}

/** Quarantined records are counted up to this number. */
export const QUARANTINED_COUNT_MAX = 1_000

/** The process that runs the sync, and the remaining time of its lease. */
export interface LeaseHolder {
  readonly holder: string
  readonly location: { readonly host: string; readonly pid: number } | null
  readonly since: number | null
  readonly until: number
  /** 0 if the lease has expired. */
  readonly remainingMs: number
  /** The holder is known to have exited, or the lease has expired. */
  readonly isGone: boolean
}

export interface SyncStatusRequest {
  readonly ref: SyncRef
  readonly declared: ManifestSync | null
}

/** Reads the status of the requested syncs, by the clock of the store. `store` is null if it does not exist yet. */
export async function readSyncStatus(
  store: Store | null,
  requests: readonly SyncStatusRequest[],
): Promise<{ now: number; syncs: SyncStatusDetails[] }> {
  const at = systemClock.now()
  const { now, syncs: stored } = (await store?.listSyncStatus({ at, recent: RECENT_CYCLES })) ?? { now: at, syncs: [] }
  const known = new Map(stored.map((status) => [syncKey(status), status]))
  const quarantined = await countQuarantined(store, requests)
  const drifts = await readDrift(store, requests.length > DRIFT_SYNCS_MAX ? [] : stored)
  const siblings = requests.flatMap(({ declared }) => declared ?? [])
  const syncs = requests.map(({ ref, declared }): SyncStatusDetails => {
    const facts = known.get(syncKey(ref)) ?? { checkpoint: EMPTY_CHECKPOINT, recent: [] }
    const { checkpoint, recent } = facts
    const find = (sync: string): CheckpointSummary | undefined => known.get(syncKey({ ...ref, sync }))?.checkpoint
    const backfill = findPairBackfill({ sync: ref.sync, checkpoint }, declared, { findCheckpoint: find, now })
    return {
      ...ref,
      declared,
      checkpoint,
      health: computeHealth(checkpoint, backfill),
      backfillNeeded: backfill?.backfillNeeded ?? null,
      lastCycle: recent[0] ?? null,
      lagMs: declared?.pair === 'backfill' ? null : computeLagMs(checkpoint, recent, now),
      due:
        declared === null
          ? null
          : computeDueTime(
              declared,
              { ...facts, parents: readParents(toParents(declared.after ?? [], siblings), find) },
              { now, since: now, pauseMs: CONTINUOUS_PAUSE_MS },
            ),
      leaseHolder: leaseHolderOf(checkpoint, now),
      quarantined: quarantined(ref),
      drift: drifts.get(syncKey(ref)) ?? null,
    }
  })
  return { now, syncs }
}

/** Drift needs one query per sync, so it is skipped beyond this number. */
const DRIFT_SYNCS_MAX = 100

async function readDrift(
  store: Store | null,
  syncs: readonly (SyncRef & { readonly recent: readonly CycleRecord[] })[],
): Promise<Map<string, string>> {
  const drifts = new Map<string, string>()
  for (const {
    worker,
    sync,
    recent: [last],
  } of syncs) {
    if (store === null || last === undefined) continue
    const entries = (await store.audit({ worker, sync }, { limit: 20 })).filter(
      ({ action, cycle }) => action === 'drift' && cycle === last.cycle,
    )
    if (entries.length > 0)
      drifts.set(
        syncKey({ worker, sync }),
        entries
          .toReversed()
          .map(({ reason }) => reason)
          .join('; '),
      )
  }
  return drifts
}

function leaseHolderOf({ heldBy, heldSince, heldUntil }: CheckpointSummary, now: number): LeaseHolder | null {
  if (heldBy === null || heldUntil === null) return null
  return {
    holder: heldBy,
    location: parseHolder(heldBy),
    since: heldSince,
    until: heldUntil,
    remainingMs: Math.max(0, heldUntil - now),
    isGone: heldUntil <= now || isHolderGone(heldBy),
  }
}

/** Uses one query for all syncs, unless the quarantine is very large. */
async function countQuarantined(
  store: Store | null,
  requests: readonly SyncStatusRequest[],
): Promise<(ref: SyncRef) => number> {
  const all = (await store?.quarantineEntries({ limit: QUARANTINED_COUNT_MAX })) ?? []
  const counts = new Map<string, number>()
  for (const entry of all) counts.set(syncKey(entry), (counts.get(syncKey(entry)) ?? 0) + 1)
  if (store !== null && all.length === QUARANTINED_COUNT_MAX)
    for (const { ref } of requests)
      counts.set(syncKey(ref), (await store.quarantineEntries({ ref, limit: QUARANTINED_COUNT_MAX })).length)
  return (ref) => counts.get(syncKey(ref)) ?? 0
}

function syncKey({ worker, sync }: SyncRef): string {
  return `${worker}\n${sync}`
}

export function describeSchedule(schedule: Schedule): string {
  switch (schedule.kind) {
    case 'interval':
      return `every ${formatDuration(schedule.intervalMs)}`
    case 'cron':
      return schedule.zone === 'UTC' ? schedule.cron : `${schedule.cron} ${schedule.zone}`
    default:
      return schedule.kind
  }
}

function computeLagMs(checkpoint: CheckpointSummary, recent: readonly CycleRecord[], now: number): number | null {
  const since = computeCompleteSince(checkpoint, recent)
  return since === null ? null : Math.max(0, now - since)
}
