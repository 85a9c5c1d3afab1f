import { formatOffset } from './detect-times.ts'
import type { ProbePage, ProbeRow } from './endpoint.ts'
import { toEvidence, untestable, type Fact, type Topic } from './fact.ts'
import type { BoundObservation, Observations } from './observe.ts'
import type { TimeText } from './time-text.ts'

/** Whether the time filter includes its bound, and whether it applies the bound at all. */
export function detectBounds(
  seen: Observations,
  filter: { readonly since: string; readonly until: string | null } | null,
): Fact[] {
  if (filter === null)
    return [untestable('lower-bound', 'The list is not filtered by time.', 'the stream has no parameter for it')]
  const lower = detectBound('lower-bound', filter.since, 1, seen.lower, seen)
  return filter.until === null ? [lower] : [lower, detectBound('upper-bound', filter.until, -1, seen.upper, seen)]
}

type TimedRow = ProbeRow & { readonly time: TimeText }

const SECOND = 1_000_000
const ROUNDINGS = [
  ['second', SECOND],
  ['minute', 60 * SECOND],
  ['hour', 3_600 * SECOND],
  ['day', 86_400 * SECOND],
] as const
const QUARTER = 900 * SECOND
const OFFSET_MAX = 14 * 3_600 * SECOND

/** `side` is 1 for a lower bound and -1 for an upper one: rows on the side of the bound should be returned. */
function detectBound(
  topic: Topic,
  parameter: string,
  side: 1 | -1,
  observed: BoundObservation | undefined,
  seen: Observations,
): Fact {
  const text = `Whether \`${parameter}\` includes its time is unknown.`
  if (observed === undefined) return untestable(topic, text, seen.endedBy ?? 'no row of the list has a time')
  const { row, at, beyond } = observed
  if (at.failure !== null)
    return untestable(topic, text, `request ${at.request} failed: ${at.failure.message}`, [at.request])
  const known = listSettled(seen)
  const returned = new Set(at.rows.map(({ key }) => key))
  const bound = row.time.micros
  const isInside = ({ time }: TimedRow): boolean => (time.micros - bound) * side > 0
  const equal = known.filter(({ time }) => time.micros === bound)
  const inside = known.filter(isInside)
  const outside = known.filter(({ time }) => (time.micros - bound) * side < 0)
  const leaked = timedRows(at).filter(({ time }) => (time.micros - bound) * side < 0)
  const absent = inside.filter(({ key }) => !returned.has(key))
  const present = equal.filter(({ key }) => returned.has(key))
  const base = { topic, evidence: toEvidence([at.request, beyond?.request], equal) }
  if (outside.length > 0 && outside.every(({ key }) => returned.has(key)) && absent.length === 0)
    return {
      ...base,
      value: 'ignored',
      text: `\`${parameter}\` has no effect: rows from ${side === 1 ? 'before' : 'after'} it are returned.`,
      // A bound in another zone would return the same rows if all of them are this close.
      certainty: outside.some(({ time }) => (bound - time.micros) * side > OFFSET_MAX) ? 'shown' : 'consistent',
      isWarning: true,
      evidence: toEvidence([at.request], outside),
    }
  if (leaked.length === 0 && present.length === 0 && absent.length === inside.length && at.next !== null)
    return untestable(topic, text, 'the filtered list has more rows than a page, and begins with others', [at.request])
  if (leaked.length > 0 || absent.length > 0) {
    const wrong = leaked.length > 0 ? leaked : absent
    return describeShift(base, parameter, side, bound, {
      wrong,
      // The bound that the API applied lies between the rows that are absent and those that are present.
      absent: [...outside, ...equal, ...inside].filter(({ key }) => !returned.has(key)),
      present: timedRows(at),
      at,
    })
  }
  if (equal.length === 0) return untestable(topic, text, 'the row with the time of the bound changed', [at.request])
  if (present.length > 0 && present.length < equal.length)
    return {
      ...base,
      value: 'partial',
      text: `\`${parameter}\` returns only some of the rows with exactly its time.`,
      certainty: 'shown',
      isWarning: true,
    }
  const isInclusive = present.length > 0
  if (!isInclusive && inside.length === 0)
    return untestable(topic, text, 'no row beyond the time of the bound is known', [at.request])
  const stillThere =
    beyond === undefined || beyond.failure !== null
      ? []
      : equal.filter(({ key }) => beyond.rows.some((found) => found.key === key))
  if (isInclusive && stillThere.length > 0)
    return {
      ...base,
      value: 'rounded',
      text: `\`${parameter}\` includes its time, and is coarser than the times of the records: a bound one unit ${side === 1 ? 'later' : 'earlier'} returns the same rows.`,
      certainty: 'shown',
      isWarning: true,
      evidence: toEvidence([at.request, beyond?.request], stillThere),
    }
  return {
    ...base,
    value: isInclusive ? 'inclusive' : 'exclusive',
    text: `\`${parameter}\` ${isInclusive ? 'includes' : 'excludes'} rows with exactly its time.`,
    certainty: isInclusive && (beyond === undefined || beyond.failure !== null) ? 'consistent' : 'shown',
  }
}

interface ShiftRows {
  readonly wrong: readonly TimedRow[]
  readonly absent: readonly TimedRow[]
  readonly present: readonly TimedRow[]
  readonly at: ProbePage
}

/** The bound that the API applied is not the one that was sent: rounded, in another zone, or unknown. */
function describeShift(
  base: Pick<Fact, 'topic' | 'evidence'>,
  parameter: string,
  side: 1 | -1,
  bound: number,
  { wrong, absent, present, at }: ShiftRows,
): Fact {
  const evidence = toEvidence([at.request], wrong)
  const from = Math.max(Number.NEGATIVE_INFINITY, ...absent.map(({ time }) => (time.micros - bound) * side))
  const to = Math.min(Number.POSITIVE_INFINITY, ...present.map(({ time }) => (time.micros - bound) * side))
  const fits = (shift: number): boolean => shift >= from && shift <= to
  const rounding = ROUNDINGS.find(([, unit]) => {
    const floor = Math.floor(bound / unit) * unit
    return floor !== bound && (fits((floor - bound) * side) || fits((floor + unit - bound) * side))
  })
  if (rounding !== undefined)
    return {
      ...base,
      value: 'rounded',
      text: `\`${parameter}\` is rounded to the ${rounding[0]}.`,
      certainty: 'consistent',
      isWarning: true,
      evidence,
    }
  // Most zones are whole hours from UTC.
  const shift = [4 * QUARTER, QUARTER].flatMap((step) => listOffsets(step)).find(fits)
  if (shift !== undefined)
    return {
      ...base,
      value: 'shifted',
      text: `\`${parameter}\` is read as a local time, probably ${formatOffset((-shift * side) / 1_000)} from UTC.`,
      certainty: 'consistent',
      isWarning: true,
      evidence,
    }
  return {
    ...base,
    value: 'inconsistent',
    text: `\`${parameter}\` does not select the rows by their times.`,
    certainty: 'shown',
    isWarning: true,
    evidence,
  }
}

function listOffsets(step: number): number[] {
  return Array.from({ length: OFFSET_MAX / step }, (_, index) => (index + 1) * step).flatMap((shift) => [shift, -shift])
}

/** The rows that were the same before and after the requests of the filter. */
function listSettled({ before, after }: Observations): TimedRow[] {
  const later = new Map((after?.rows ?? []).map((row) => [row.key, row.time?.micros]))
  const isComplete = after !== undefined && after.failure === null
  return timedRows(before).filter(({ key, time }) => !isComplete || later.get(key) === time.micros)
}

function timedRows(page: ProbePage | undefined): TimedRow[] {
  return (page?.rows ?? []).filter((row): row is TimedRow => row.time !== null)
}
