import type { ManifestSync } from '../../worker/worker.ts'
import type { Schedule } from '../../config/schedule.ts'
import { EMPTY_CHECKPOINT, type BackfillRequest, type CycleRecord, type CheckpointSummary, type Store, type SyncRef } from '../../contract/index.ts'
import { computeDueTime, RECENT_CYCLES, type DueTime } from '../../runner/due.ts'
import { computeHealth, type Health } from '../../runner/health.ts'
import { computeCompleteSince } from '../../runner/complete-since.ts'
import { findPairBackfill } from '../../runner/pair-backfill.ts'
import { CONTINUOUS_PAUSE_MS } from '../../runner/status.ts'
import { systemClock } from '../../platform/clock.ts'
import { isHolderGone, parseHolder } from '../../platform/lease-holder.ts'
import { formatDuration } from './duration.ts'

/** Where one sync stands, gathered from the worker and the store. */
export interface SyncStatusDetails extends SyncRef {
  readonly health: Health
  /** Null for a sync that the store knows and the worker no longer declares. */
  readonly declared: ManifestSync | null
  readonly checkpoint: CheckpointSummary
  readonly lastCycle: CycleRecord | null
  /** The copy shows the source as it was at most this long ago; null when it never has, and of a backfill: its delta tells what came after. */
  readonly lagMs: number | null
  readonly due: DueTime | null
  readonly leaseHolder: LeaseHolder | null
  /** Changes were lost, so everything has to be read again: as ordered, or as the source's retention says. */
  readonly backfillNeeded: BackfillRequest | null
  readonly quarantined: number
  /** How the records of the last cycle differed from those before. */
  readonly drift: string | null
}

/** Counting stops here. */
export const QUARANTINED_COUNT_MAX = 1_000

/** Who runs it, where, and for how long the lease still holds. */
export interface LeaseHolder {
  readonly holder: string
  readonly location: { readonly host: string; readonly pid: number } | null
  readonly since: number | null
  readonly until: number
  /** 0 when it is over. */
  readonly remainingMs: number
  /** Known to be gone, or out of time. */
  readonly isGone: boolean
}

export interface SyncStatusRequest {
  readonly ref: SyncRef
  readonly declared: ManifestSync | null
}

/** Of any number of syncs, and by the clock of the store. `store` is null while nothing was ever kept. */
export async function readSyncStatus(store: Store | null, asked: readonly SyncStatusRequest[]): Promise<{ now: number; standings: SyncStatusDetails[] }> {
  const at = systemClock.now()
  const { now, syncs } = await store?.listSyncStatus({ at, recent: RECENT_CYCLES }) ?? { now: at, syncs: [] }
  const known = new Map(syncs.map((standing) => [syncKey(standing), standing]))
  const quarantined = await countQuarantined(store, asked)
  const drifts = await readDrift(store, asked.length > DRIFT_SYNCS_MAX ? [] : syncs)
  const standings = asked.map(({ ref, declared }): SyncStatusDetails => {
    const facts = known.get(syncKey(ref)) ?? { checkpoint: EMPTY_CHECKPOINT, recent: [] }
    const { checkpoint, recent } = facts
    const find = (sync: string): CheckpointSummary | undefined => known.get(syncKey({ ...ref, sync }))?.checkpoint
    const backfill = findPairBackfill({ sync: ref.sync, checkpoint }, declared, { findCheckpoint: find, now })
    return {
      ...ref, declared, checkpoint,
      health: computeHealth(checkpoint, backfill),
      backfillNeeded: backfill?.backfillNeeded ?? null,
      lastCycle: recent[0] ?? null,
      lagMs: declared?.pair === 'backfill' ? null : computeLagMs(checkpoint, recent, now),
      due: declared === null ? null : computeDueTime(declared, facts, { now, since: now, pauseMs: CONTINUOUS_PAUSE_MS }),
      leaseHolder: leaseHolderOf(checkpoint, now),
      quarantined: quarantined(ref),
      drift: drifts.get(syncKey(ref)) ?? null,
    }
  })
  return { now, standings }
}

/** So many syncs are asked one by one. */
const DRIFT_SYNCS_MAX = 100

async function readDrift(store: Store | null, syncs: readonly (SyncRef & { readonly recent: readonly CycleRecord[] })[]): Promise<Map<string, string>> {
  const drifts = new Map<string, string>()
  for (const { worker, sync, recent: [last] } of syncs) {
    if (store === null || last === undefined) continue
    const told = (await store.audit({ worker, sync }, { limit: 20 })).filter(({ action, cycle }) => action === 'drift' && cycle === last.cycle)
    if (told.length > 0) drifts.set(syncKey({ worker, sync }), told.toReversed().map(({ reason }) => reason).join('; '))
  }
  return drifts
}

function leaseHolderOf({ heldBy, heldSince, heldUntil }: CheckpointSummary, now: number): LeaseHolder | null {
  if (heldBy === null || heldUntil === null) return null
  return { holder: heldBy, location: parseHolder(heldBy), since: heldSince, until: heldUntil, remainingMs: Math.max(0, heldUntil - now), isGone: heldUntil <= now || isHolderGone(heldBy) }
}

/** One question for all of them, unless there is very much in quarantine. */
async function countQuarantined(store: Store | null, asked: readonly SyncStatusRequest[]): Promise<(ref: SyncRef) => number> {
  const all = await store?.quarantineEntries({ limit: QUARANTINED_COUNT_MAX }) ?? []
  const counts = new Map<string, number>()
  for (const entry of all) counts.set(syncKey(entry), (counts.get(syncKey(entry)) ?? 0) + 1)
  if (all.length === QUARANTINED_COUNT_MAX) for (const { ref } of asked) counts.set(syncKey(ref), (await store!.quarantineEntries({ ref, limit: QUARANTINED_COUNT_MAX })).length)
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
