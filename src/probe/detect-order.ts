import type { ProbePage, ProbeRow } from './endpoint.ts'
import { toEvidence, untestable, type Fact } from './fact.ts'
import { isTie, type Observations } from './observe.ts'
import type { RestStream } from '../sources/rest/stream.ts'

const TIMES_MIN = 3

/** Whether the list is sorted by time, and whether two readings agree. */
export function detectOrder(seen: Observations, stream: Pick<RestStream, 'query' | 'updatedAt'>): Fact[] {
  return [describeOrder(seen, stream), describeTies(seen), describeStability(seen)].filter((fact) => fact !== null)
}

type Direction = 'ascending' | 'descending' | 'unsorted'

function describeOrder(seen: Observations, { query = {}, updatedAt }: Pick<RestStream, 'query' | 'updatedAt'>): Fact {
  const { before, reversed } = seen
  const text = 'The order of the list is unknown.'
  if (before === undefined || before.failure !== null)
    return untestable('order', text, seen.endedBy ?? 'the reference page failed')
  const { rows, requests } = findLongestReading(seen, before)
  const direction = directionOf(rows)
  if (direction === null)
    return untestable('order', text, `fewer than ${TIMES_MIN} different times were seen`, requests)
  const requested = findSortField(query, String(updatedAt ?? ''))
  const shown = direction === 'unsorted' ? findInversion(rows) : rows.slice(0, 2)
  const evidence = toEvidence([...requests, reversed?.page.request], shown)
  if (direction === 'unsorted')
    return requested === null
      ? { topic: 'order', value: direction, text: 'The list is not sorted by time.', certainty: 'shown', evidence }
      : sortIgnored(`\`${requested}\` is ignored: the list is not sorted by time.`, evidence)
  if (reversed === undefined || reversed.page.failure !== null)
    return {
      topic: 'order',
      value: direction,
      text: `The rows that were seen are sorted by time, ${direction}.`,
      certainty: 'consistent',
      evidence,
    }
  const other = directionOf(reversed.page.rows)
  if (other === direction && isSameOrder(before, reversed.page))
    return sortIgnored(`\`${reversed.parameter}\` is ignored: the reverse direction gives the same rows.`, evidence)
  return {
    topic: 'order',
    value: direction,
    text: `The list is sorted by time, ${direction}; the reverse direction gives other rows.`,
    certainty: other === null || other === direction ? 'consistent' : 'shown',
    evidence,
  }
}

/** The large page, or the small pages if they have more rows, as without a parameter for the page size. */
function findLongestReading(
  { walk }: Observations,
  before: ProbePage,
): { readonly rows: readonly ProbeRow[]; readonly requests: readonly number[] } {
  const rows = walk.flatMap((page) => page.rows)
  return rows.length > before.rows.length
    ? { rows, requests: walk.map(({ request }) => request) }
    : { rows: before.rows, requests: [before.request] }
}

function sortIgnored(text: string, evidence: Fact['evidence']): Fact {
  return { topic: 'order', value: 'sort-ignored', text, certainty: 'shown', isWarning: true, evidence }
}

/** Null if there are too few times to decide. */
function directionOf(rows: readonly ProbeRow[]): Direction | null {
  const times = rows.flatMap(({ time }) => (time === null ? [] : [time.micros]))
  if (new Set(times).size < TIMES_MIN) return null
  const steps = times.slice(1).map((time, index) => time - (times[index] ?? 0))
  if (steps.every((step) => step >= 0)) return 'ascending'
  return steps.every((step) => step <= 0) ? 'descending' : 'unsorted'
}

/** Three rows whose times go up and down. */
function findInversion(rows: readonly ProbeRow[]): ProbeRow[] {
  const timed = rows.filter(({ time }) => time !== null)
  const up = timed.findIndex((row, index) => index > 0 && row.time!.micros > timed[index - 1]!.time!.micros)
  const down = timed.findIndex((row, index) => index > 0 && row.time!.micros < timed[index - 1]!.time!.micros)
  return [up - 1, up, down - 1, down].flatMap((index) => timed[index] ?? [])
}

/** The parameter that asks for an order by the time of the records; another time of them does not count. */
function findSortField(query: NonNullable<RestStream['query']>, updatedAt: string): string | null {
  const field = updatedAt.split('.').at(-1) ?? ''
  const kind = TIME_KINDS.find((pattern) => pattern.test(field))
  const found = Object.entries(query).find(
    ([name, value]) =>
      /sort|order/i.test(name) &&
      typeof value === 'string' &&
      ((field !== '' && value.toLowerCase().includes(field.toLowerCase())) || kind?.test(value) === true),
  )
  return found?.[0] ?? null
}

const TIME_KINDS = [/updat|modif|chang|edit/i, /creat/i]

function isSameOrder(a: ProbePage, b: ProbePage): boolean {
  return a.rows.length > 1 && a.rows.every(({ key }, index) => b.rows[index]?.key === key)
}

/** The order of rows with one time. */
function describeTies({ before }: Observations): Fact | null {
  const rows = before?.rows ?? []
  const pairs = rows.slice(1).flatMap((row, index) => {
    const previous = rows[index]
    return previous !== undefined && isTie(previous, row) ? [[previous, row] as const] : []
  })
  const [first] = pairs
  if (first === undefined || before === undefined) return null
  const sorts = [
    ['by-id', pairs.every(([a, b]) => compareKeys(a.key, b.key) < 0)],
    ['by-id-descending', pairs.every(([a, b]) => compareKeys(a.key, b.key) > 0)],
  ] as const
  const value = sorts.find(([, holds]) => holds)?.[0] ?? 'other'
  const text = { 'by-id': 'by id', 'by-id-descending': 'by id, descending', other: 'in another order than by id' }[
    value
  ]
  return {
    topic: 'order',
    value: `ties-${value}`,
    text: `Rows with one time follow ${text} (${pairs.length} pairs).`,
    certainty: value === 'other' ? 'shown' : 'consistent',
    evidence: toEvidence([before.request], first),
  }
}

function compareKeys(a: string, b: string): number {
  const isNumeric = /^\d+$/.test(a) && /^\d+$/.test(b)
  if (isNumeric && a.length !== b.length) return a.length - b.length
  return a < b ? -1 : a > b ? 1 : 0
}

/** The same request before and after the walk. Rows that changed meanwhile do not count. */
function describeStability({ before, after, endedBy }: Observations): Fact {
  const text = 'Whether two readings agree is unknown.'
  if (before === undefined || after === undefined || before.failure !== null || after.failure !== null)
    return untestable('stability', text, endedBy ?? 'a reading failed')
  const evidence = toEvidence([before.request, after.request])
  const later = new Map(after.rows.map((row, index) => [row.key, { row, index }]))
  const known = new Set(before.rows.map(({ key }) => key))
  const same = before.rows.filter(
    (row) => later.get(row.key)?.row.time?.micros === row.time?.micros && later.has(row.key),
  )
  const moved = same.find((row, index) => {
    const previous = same[index - 1]
    return previous !== undefined && (later.get(row.key)?.index ?? 0) < (later.get(previous.key)?.index ?? 0)
  })
  if (moved !== undefined) {
    const previous = same[same.indexOf(moved) - 1]
    return {
      topic: 'stability',
      value: 'unstable-order',
      text: isTie(previous, moved)
        ? 'Rows with one time change places from one request to the next: a page border can skip them.'
        : 'Rows change places from one request to the next.',
      certainty: 'shown',
      isWarning: true,
      evidence: toEvidence(evidence.requests, previous === undefined ? [moved] : [previous, moved]),
    }
  }
  // New rows may push the last ones off the page.
  const added = after.rows.filter(({ key }) => !known.has(key))
  const gone = before.rows.slice(0, before.rows.length - added.length).filter(({ key }) => !later.has(key))
  const newestSeen = Math.max(...before.rows.map(({ time }) => time?.micros ?? 0))
  const appeared = added.filter(({ time }) => time !== null && time.micros < newestSeen && isInner(after, time.micros))
  if (gone.length > 0 && appeared.length > 0)
    return {
      topic: 'stability',
      value: 'changing-answers',
      text: 'The same request returns other rows each time, and they are not new.',
      certainty: 'shown',
      isWarning: true,
      evidence: toEvidence(evidence.requests, [...gone.slice(0, 2), ...appeared.slice(0, 2)]),
    }
  return {
    topic: 'stability',
    value: 'stable',
    text: 'The same request returns the same rows in the same order.',
    certainty: 'consistent',
    evidence,
  }
}

/** Whether a page has rows on both sides of a time, so that a row with it was not cut off. */
function isInner({ rows }: ProbePage, micros: number): boolean {
  const times = rows.flatMap(({ time }) => (time === null ? [] : [time.micros]))
  return Math.min(...times) < micros && Math.max(...times) >= micros
}
