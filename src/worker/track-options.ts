import { SyncError, type Execute, type Lookup, type SyncContext } from '../contract/index.ts'
import { describeValue } from '../config/names.ts'
import type { ScheduleInput } from '../config/schedule.ts'
import type { SyncOptions } from './sync-options.ts'

/** A source that supports both a full read and incremental changes. */
export interface TrackSource<BackfillState = any, DeltaState = any> {
  /** Reads everything, page by page. */
  backfill: Execute<BackfillState>
  /** Reads the changes since the state. */
  delta: Execute<DeltaState>
  /** The current delta state, taken before the backfill reads its first page. Undefined: the delta starts from the beginning. */
  anchor?: (context: SyncContext) => Promise<DeltaState | undefined>
  /** Returns one record by its key; null if the backfill would not list it. */
  lookup?: Lookup
  /** How long a change may take to appear in the pages of the backfill. */
  lagMs?: number
}

/** All options except the source and the schedules apply to both syncs. */
export interface TrackOptions<BackfillState = any, DeltaState = any> extends Omit<
  SyncOptions,
  'mode' | 'execute' | 'lookup' | 'schedule'
> {
  source: TrackSource<BackfillState, DeltaState>
  /** The schedule of the delta. Default: every 5 minutes. */
  schedule?: ScheduleInput
  /** The schedule of the backfill, for sources that do not report deletions. Default: manual. */
  backfillSchedule?: ScheduleInput
}

/** The anchor of the source, or of a delta strategy such as `eventFeed`. */
export function resolveAnchor({ anchor, delta }: TrackSource): NonNullable<TrackSource['anchor']> | null {
  const own = (delta as Partial<TrackSource>).anchor
  return anchor ?? (typeof own === 'function' ? own : null)
}

export function checkTrackSource(name: string, source: unknown): asserts source is TrackSource {
  const { backfill, delta, anchor } = (source ?? {}) as Partial<TrackSource>
  for (const [part, value] of Object.entries({ backfill, delta })) {
    if (typeof value !== 'function')
      throw new SyncError('SYNC_INVALID', `Track "${name}": source.${part} is ${describeValue(value)}, not a function.`)
  }
  if (anchor !== undefined && typeof anchor !== 'function')
    throw new SyncError('SYNC_INVALID', `Track "${name}": source.anchor is ${describeValue(anchor)}, not a function.`)
}
