import type { CycleRecord, Difference, DifferenceCause } from '../contract/index.ts'
import { formatDuration } from '../values/duration.ts'
import { measureLateness } from './attribute-difference.ts'

/** Why rows differ, and what prevents it. */
export interface Explanation {
  readonly cause: DifferenceCause
  readonly count: number
  readonly reason: string
  /** The setting that would have prevented it, as it is written in a worker; null if there is none. */
  readonly setting: string | null
}

export interface ExplanationFacts {
  /** The sync that reads the changes, and the one that lists every record; the same for a listing. */
  readonly sync: string
  readonly listing: string
  readonly hasDelta: boolean
  readonly lagMs: number
  /** Cycles of `sync`, newest first. */
  readonly cycles: readonly CycleRecord[]
}

const CAUSES: readonly DifferenceCause[] = ['late', 'skipped', 'noTime', 'noDelete', 'wrongDelete', 'ahead', 'recent']

/** One explanation for every cause among the differences. */
export function explainDifferences(found: readonly Difference[], facts: ExplanationFacts): Explanation[] {
  return CAUSES.flatMap((cause) => {
    const own = found.filter((one) => one.cause === cause)
    return own.length === 0 ? [] : [{ cause, count: own.length, ...explain(cause, own, facts) }]
  })
}

function explain(
  cause: DifferenceCause,
  found: readonly Difference[],
  { sync, listing, hasDelta, lagMs, cycles }: ExplanationFacts,
): Pick<Explanation, 'reason' | 'setting'> {
  switch (cause) {
    case 'late': {
      const lateMs = Math.max(...found.map(({ upstreamAt }) => measureLateness(upstreamAt ?? '', cycles) ?? 0))
      const proposed = roundUpSeconds(lateMs * 1.1)
      return {
        reason: `visible more than ${formatDuration(lateMs)} after their time; ${sync} waits ${formatDuration(lagMs)}`,
        setting: `lagMs: ${proposed.toLocaleString('en-US').replaceAll(',', '_')}`,
      }
    }
    case 'skipped': {
      const times = found.flatMap(({ upstreamAt }) => (upstreamAt === null ? [] : [upstreamAt])).toSorted()
      const [first] = times
      return {
        reason: `their times are before the tidemark, and no cycle of ${sync} returned them${first === undefined ? '' : ` (the earliest: ${first})`}`,
        setting: hasDelta ? `backfillSchedule: '1d'` : null,
      }
    }
    case 'noTime':
      return {
        reason: `they changed without a new time, so ${hasDelta ? 'only a backfill reads them' : 'no order shows it'}`,
        setting: hasDelta ? `backfillSchedule: '1d'` : null,
      }
    case 'noDelete':
      return {
        reason: hasDelta
          ? `the source deleted them, and its changes do not report it; ${listing} would find it`
          : `the source deleted them, and no sweep of ${listing} removed them`,
        setting: hasDelta ? `backfillSchedule: '1d'` : null,
      }
    case 'wrongDelete':
      return { reason: 'a listing without them deleted them, and the source has them', setting: 'lookup' }
    case 'ahead':
      return {
        reason: 'the copy has a later time than the source: it was restored, or its clock stepped back',
        setting: 'upstreamToleranceMs: 1_000',
      }
    case 'recent':
      return { reason: `they may have changed since the last cycle of ${sync}; run it and verify again`, setting: null }
  }
  return cause satisfies never
}

/** Whole seconds up to a minute, then steps of ten. */
function roundUpSeconds(ms: number): number {
  const step = ms <= 60_000 ? 5_000 : 30_000
  return Math.max(step, Math.ceil(ms / step) * step)
}
