import type { ManifestSync } from '../config/worker.ts'
import type { Schedule } from '../config/schedule.ts'
import { NEVER_RUN, type Checkpoint, type CycleRecord, type Store, type SyncRef } from '../contract/index.ts'
import { dueOf, RECENT_CYCLES, type Due } from '../runner/due.ts'
import { healthOf, type Health } from '../runner/health.ts'
import { isDeadHolder } from '../platform/holder.ts'
import { duration } from './duration.ts'

/** Where one sync stands, gathered from the worker and the store. */
export interface Standing extends SyncRef {
  readonly health: Health
  /** Null for a sync that the store knows and the worker no longer declares. */
  readonly declared: ManifestSync | null
  readonly checkpoint: Checkpoint
  readonly last: CycleRecord | null
  /** The copy shows the source as it was at most this long ago; null when it never has. */
  readonly lagMs: number | null
  readonly due: Due | null
  readonly held: { readonly by: string; readonly until: number; readonly dead: boolean } | null
  readonly quarantined: number
}

/** Counting stops here. */
export const QUARANTINED_MAX = 1_000

/** `store` is null while nothing was ever kept. */
export async function standingOf(store: Store | null, ref: SyncRef, declared: ManifestSync | null, now: number): Promise<Standing> {
  const checkpoint = store === null ? NEVER_RUN : await store.read(ref)
  const recent = store === null ? [] : await store.cycles(ref, { limit: RECENT_CYCLES })
  const quarantined = store === null ? [] : await store.quarantined({ ref, limit: QUARANTINED_MAX })
  const { heldBy, heldUntil } = checkpoint
  return {
    ...ref, declared, checkpoint,
    health: healthOf(checkpoint),
    last: recent[0] ?? null,
    lagMs: lagOf(checkpoint, recent, now),
    due: declared === null ? null : dueOf(declared, { checkpoint, recent }, { now, since: now, pauseMs: CONTINUOUS_PAUSE_MS }),
    held: heldBy === null || heldUntil === null ? null : { by: heldBy, until: heldUntil, dead: isDeadHolder(heldBy) },
    quarantined: quarantined.length,
  }
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

const CONTINUOUS_PAUSE_MS = 1_000

/** Counted from the beginning of the last complete cycle: what changed in the source after it may be missing. */
function lagOf({ lastSuccessAt }: Checkpoint, recent: readonly CycleRecord[], now: number): number | null {
  const complete = recent.find(({ stopReason }) => stopReason === 'complete')
  const since = complete?.startedAt ?? lastSuccessAt
  return since === null ? null : Math.max(0, now - since)
}
