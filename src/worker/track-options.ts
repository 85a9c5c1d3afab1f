import { SyncError, type Execute, type Lookup, type SyncContext } from '../contract/index.ts'
import { describeValue } from '../config/names.ts'
import type { ScheduleInput } from '../config/schedule.ts'
import type { SyncOptions } from './sync-options.ts'

/** A source that can be read whole and followed. */
export interface TrackSource<BackfillState = any, DeltaState = any> {
  /** All there is, page by page. */
  backfill: Execute<BackfillState>
  /** What changed since the state. */
  delta: Execute<DeltaState>
  /** The delta's state as of now, asked for before the backfill reads its first page. Undefined: the delta reads from the beginning. */
  anchor?: (context: SyncContext) => Promise<DeltaState | undefined>
  /** One record by its key; null when the backfill would not list it. */
  lookup?: Lookup
  /** How long a change may take to show in the backfill's pages. */
  lagMs?: number
}

/** Everything but the source and the schedules is for both halves. */
export interface TrackOptions<BackfillState = any, DeltaState = any> extends Omit<SyncOptions, 'mode' | 'execute' | 'lookup' | 'schedule'> {
  source: TrackSource<BackfillState, DeltaState>
  /** Of the delta: every 5 minutes unless said otherwise. */
  schedule?: ScheduleInput
  /** By hand unless said otherwise: for a source that does not tell of deletions, how often all of it is read to find them. */
  backfillSchedule?: ScheduleInput
}

/** Given with the source, or with a delta that is a strategy of its own such as `eventFeed`. */
export function resolveAnchor({ anchor, delta }: TrackSource): NonNullable<TrackSource['anchor']> | null {
  const own = (delta as Partial<TrackSource>).anchor
  return anchor ?? (typeof own === 'function' ? own : null)
}

export function checkTrackSource(name: string, source: unknown): asserts source is TrackSource {
  const { backfill, delta, anchor } = (source ?? {}) as Partial<TrackSource>
  for (const [part, value] of Object.entries({ backfill, delta })) {
    if (typeof value !== 'function') throw new SyncError('SYNC_INVALID', `Track "${name}": source.${part} is ${describeValue(value)}, not a function.`)
  }
  if (anchor !== undefined && typeof anchor !== 'function') throw new SyncError('SYNC_INVALID', `Track "${name}": source.anchor is ${describeValue(anchor)}, not a function.`)
}
