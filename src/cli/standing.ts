import type { ManifestSync } from '../config/worker.ts'
import type { Schedule } from '../config/schedule.ts'
import { NEVER_RUN, type BackfillNeed, type CycleRecord, type Outline, type Store, type SyncRef } from '../contract/index.ts'
import { dueOf, RECENT_CYCLES, type Due } from '../runner/due.ts'
import { healthOf, type Health } from '../runner/health.ts'
import { completeSince } from '../runner/lag.ts'
import { backfillOf } from '../runner/pair-backfill.ts'
import { PAUSE_MS } from '../runner/status.ts'
import { systemClock } from '../platform/clock.ts'
import { isDeadHolder, placeOfHolder } from '../platform/holder.ts'
import { duration } from './duration.ts'

/** Where one sync stands, gathered from the worker and the store. */
export interface Standing extends SyncRef {
  readonly health: Health
  /** Null for a sync that the store knows and the worker no longer declares. */
  readonly declared: ManifestSync | null
  readonly checkpoint: Outline
  readonly last: CycleRecord | null
  /** The copy shows the source as it was at most this long ago; null when it never has, and of a backfill: its delta tells what came after. */
  readonly lagMs: number | null
  readonly due: Due | null
  readonly held: Held | null
  /** Changes were lost, so everything has to be read again: as ordered, or as the source's retention says. */
  readonly backfillNeeded: BackfillNeed | null
  readonly quarantined: number
  /** How the records of the last cycle differed from those before. */
  readonly drift: string | null
}

/** Counting stops here. */
export const QUARANTINED_MAX = 1_000

/** Who runs it, where, and for how long the lease still holds. */
export interface Held {
  readonly by: string
  readonly at: { readonly host: string; readonly pid: number } | null
  readonly since: number | null
  readonly until: number
  /** 0 when it is over. */
  readonly leftMs: number
  /** Known to be gone, or out of time. */
  readonly gone: boolean
}

export interface Asked {
  readonly ref: SyncRef
  readonly declared: ManifestSync | null
}

/** Of any number of syncs, and by the clock of the store. `store` is null while nothing was ever kept. */
export async function standingsOf(store: Store | null, asked: readonly Asked[]): Promise<{ now: number; standings: Standing[] }> {
  const at = systemClock.now()
  const { now, syncs } = await store?.standings({ at, recent: RECENT_CYCLES }) ?? { now: at, syncs: [] }
  const known = new Map(syncs.map((standing) => [nameOf(standing), standing]))
  const quarantined = await countQuarantined(store, asked)
  const drifts = await driftsOf(store, asked.length > DRIFTS_MAX ? [] : syncs)
  const standings = asked.map(({ ref, declared }): Standing => {
    const facts = known.get(nameOf(ref)) ?? { checkpoint: NEVER_RUN, recent: [] }
    const { checkpoint, recent } = facts
    const find = (sync: string): Outline | undefined => known.get(nameOf({ ...ref, sync }))?.checkpoint
    const backfill = backfillOf({ sync: ref.sync, checkpoint }, declared, { find, now })
    return {
      ...ref, declared, checkpoint,
      health: healthOf(checkpoint, backfill),
      backfillNeeded: backfill?.backfillNeeded ?? null,
      last: recent[0] ?? null,
      lagMs: declared?.pair === 'backfill' ? null : lagOf(checkpoint, recent, now),
      due: declared === null ? null : dueOf(declared, facts, { now, since: now, pauseMs: PAUSE_MS }),
      held: heldOf(checkpoint, now),
      quarantined: quarantined(ref),
      drift: drifts.get(nameOf(ref)) ?? null,
    }
  })
  return { now, standings }
}

/** So many syncs are asked one by one. */
const DRIFTS_MAX = 100

async function driftsOf(store: Store | null, syncs: readonly (SyncRef & { readonly recent: readonly CycleRecord[] })[]): Promise<Map<string, string>> {
  const drifts = new Map<string, string>()
  for (const { worker, sync, recent: [last] } of syncs) {
    if (store === null || last === undefined) continue
    const told = (await store.audit({ worker, sync }, { limit: 20 })).filter(({ action, cycle }) => action === 'drift' && cycle === last.cycle)
    if (told.length > 0) drifts.set(nameOf({ worker, sync }), told.toReversed().map(({ reason }) => reason).join('; '))
  }
  return drifts
}

function heldOf({ heldBy, heldSince, heldUntil }: Outline, now: number): Held | null {
  if (heldBy === null || heldUntil === null) return null
  return { by: heldBy, at: placeOfHolder(heldBy), since: heldSince, until: heldUntil, leftMs: Math.max(0, heldUntil - now), gone: heldUntil <= now || isDeadHolder(heldBy) }
}

/** One question for all of them, unless there is very much in quarantine. */
async function countQuarantined(store: Store | null, asked: readonly Asked[]): Promise<(ref: SyncRef) => number> {
  const all = await store?.quarantined({ limit: QUARANTINED_MAX }) ?? []
  const counts = new Map<string, number>()
  for (const entry of all) counts.set(nameOf(entry), (counts.get(nameOf(entry)) ?? 0) + 1)
  if (all.length === QUARANTINED_MAX) for (const { ref } of asked) counts.set(nameOf(ref), (await store!.quarantined({ ref, limit: QUARANTINED_MAX })).length)
  return (ref) => counts.get(nameOf(ref)) ?? 0
}

function nameOf({ worker, sync }: SyncRef): string {
  return `${worker}\n${sync}`
}

export function describeSchedule(schedule: Schedule): string {
  switch (schedule.kind) {
    case 'interval':
      return `every ${duration(schedule.intervalMs)}`
    case 'cron':
      return schedule.zone === 'UTC' ? schedule.cron : `${schedule.cron} ${schedule.zone}`
    default:
      return schedule.kind
  }
}

function lagOf(checkpoint: Outline, recent: readonly CycleRecord[], now: number): number | null {
  const since = completeSince(checkpoint, recent)
  return since === null ? null : Math.max(0, now - since)
}
