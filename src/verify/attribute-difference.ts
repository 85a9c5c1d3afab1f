import type { CycleRecord, DifferenceCause, DifferenceKind, LogEntry } from '../contract/index.ts'
import { instantToMs } from '../values/instant.ts'
import type { SettledDifference } from './settle-differences.ts'

/** A version that became visible later than this was probably written with an old time. */
const LATE_MAX_MS = 60 * 60_000

export interface AttributionFacts {
  readonly kind: DifferenceKind
  readonly isDue: boolean
  /** The newest entry of the key in the log; undefined if it has none. */
  readonly newest: LogEntry | undefined
  /** Cycles of the sync that follows changes, newest first. */
  readonly cycles: readonly CycleRecord[]
}

/** The likely reason of a difference; see DifferenceCause. */
export function attributeDifference(
  { record, row, coverage }: SettledDifference,
  { kind, isDue, newest, cycles }: AttributionFacts,
): DifferenceCause {
  if (!isDue) return 'recent'
  if (kind === 'extra') return 'noDelete'
  if (kind === 'missing' && newest?.action === 'deleted') return 'wrongDelete'
  const upstreamAt = record?.landing?.upstreamAt ?? null
  if (upstreamAt === null || (row !== null && row.upstreamAt === upstreamAt)) return 'noTime'
  if (row !== null && row.upstreamAt !== null && row.upstreamAt > upstreamAt) return 'ahead'
  const lateMs = measureLateness(upstreamAt, cycles)
  return coverage.tidemark !== null && lateMs !== null && lateMs <= LATE_MAX_MS ? 'late' : 'skipped'
}

/**
 * How long after its time a version was still not visible: at least until the last complete cycle began that was the
 * first to read past its time. Null if that cycle is no longer known.
 */
export function measureLateness(upstreamAt: string, cycles: readonly CycleRecord[]): number | null {
  const at = instantToMs(upstreamAt)
  const complete = cycles.filter(({ stopReason }) => stopReason === 'complete')
  const after = complete.filter(({ startedAt }) => startedAt >= at).map(({ startedAt }) => startedAt)
  const isKnown = complete.some(({ startedAt }) => startedAt < at)
  return after.length === 0 || !isKnown ? null : Math.min(...after) - at
}
