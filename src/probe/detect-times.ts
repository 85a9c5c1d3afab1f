import type { ProbePage, ProbeRow } from './endpoint.ts'
import { toEvidence, untestable, type Fact } from './fact.ts'
import type { Observations } from './observe.ts'
import type { JournalEntry } from './request-journal.ts'
import type { TimeText } from './time-text.ts'

const ROWS_MIN = 5
const CLOCK_ERROR_MS = 300_000
const QUARTER_MS = 900_000

/** The form and the precision of the times of the records. */
export function detectTimes(seen: Observations): Fact[] {
  const pages = listPages(seen)
  const rows = pages.flatMap((page) => page.rows)
  const [sample] = rows
  if (sample === undefined)
    return [untestable('time-format', 'The form of times is unknown.', 'the list has no rows', [1])]
  const timed = rows.filter((row): row is TimedRow => row.time !== null)
  const [first] = timed
  if (first === undefined)
    return [untestable('time-format', 'The form of times is unknown.', 'no row has a time that can be read', [1])]
  const evidence = toEvidence([pages[0]?.request], timed.slice(0, 2))
  const value = first.time.form === 'text' ? (first.time.zone === null ? 'text-without-zone' : 'text') : first.time.form
  return [
    {
      topic: 'time-format',
      value,
      text: FORMATS[value],
      certainty: 'shown',
      ...(value === 'text-without-zone' && { isWarning: true as const }),
      evidence,
    },
    describePrecision(timed, evidence),
  ]
}

type TimedRow = ProbeRow & { readonly time: TimeText }

const FORMATS = {
  text: 'Times are texts with a zone.',
  'text-without-zone': 'Times are texts without a zone.',
  date: 'Times are dates without a time of day.',
  s: 'Times are seconds since 1970.',
  ms: 'Times are milliseconds since 1970.',
  us: 'Times are microseconds since 1970.',
} as const

const STEPS = [
  ['day', 86_400_000_000],
  ['minute', 60_000_000],
  ['second', 1_000_000],
  ['millisecond', 1_000],
  ['microsecond', 1],
] as const

function describePrecision(rows: readonly TimedRow[], evidence: Fact['evidence']): Fact {
  const times = [...new Set(rows.map(({ time }) => time.micros))]
  const [value] = STEPS.find(([, step]) => times.every((micros) => micros % step === 0)) ?? ['microsecond']
  const text = `Times are whole ${value}s.`
  if (value === 'microsecond' || value === 'millisecond')
    return { topic: 'time-precision', value, text, certainty: 'shown', evidence }
  if (times.length < ROWS_MIN)
    return untestable('time-precision', text, `only ${times.length} different times were seen`, evidence.requests)
  return { topic: 'time-precision', value, text, certainty: 'consistent', evidence }
}

/** The `Date` header against the local clock, and against the newest row. */
export function detectClock(seen: Observations, entries: readonly JournalEntry[]): Fact[] {
  const dated = entries.filter((entry): entry is DatedEntry => entry.serverTime !== null && entry.answeredAt !== null)
  const [first] = dated
  if (first === undefined)
    return [untestable('clock', 'The clock of the API is unknown.', 'no answer has a `Date` header')]
  const wrong = dated.find((entry) => skewOf(entry) > CLOCK_ERROR_MS)
  if (wrong !== undefined)
    return [
      {
        topic: 'clock',
        value: 'wrong',
        text: `The \`Date\` header differs from the local clock by ${formatSpan(skewOf(wrong))}; one of them is wrong.`,
        certainty: 'shown',
        isWarning: true,
        evidence: toEvidence([wrong.number]),
      },
    ]
  const late = dated.find((entry, index) => index > 0 && entry.serverTime < (dated[index - 1]?.serverTime ?? 0) - 1_000)
  if (late !== undefined)
    return [
      {
        topic: 'clock',
        value: 'goes-back',
        text: 'The `Date` header goes back between two requests: several servers or a cache answer.',
        certainty: 'shown',
        isWarning: true,
        evidence: toEvidence([late.number - 1, late.number]),
      },
    ]
  const fact: Fact = {
    topic: 'clock',
    value: 'agrees',
    text: 'The `Date` header agrees with the local clock.',
    certainty: 'shown',
    evidence: toEvidence(dated.map(({ number }) => number)),
  }
  return [fact, ...compareNewest(seen, first)]
}

type DatedEntry = JournalEntry & { readonly serverTime: number; readonly answeredAt: number }

function skewOf({ serverTime, sentAt, answeredAt }: DatedEntry): number {
  // The header has whole seconds.
  if (serverTime + 1_000 < sentAt) return sentAt - serverTime
  return Math.max(0, serverTime - answeredAt)
}

function compareNewest(seen: Observations, { serverTime, number }: DatedEntry): Fact[] {
  const timed = listPages(seen)
    .flatMap(({ rows, request }) => rows.map((row) => ({ ...row, request })))
    .filter((row): row is TimedRow & { request: number } => row.time !== null)
  const newest = timed.toSorted((a, b) => b.time.micros - a.time.micros)[0]
  if (newest === undefined) return []
  const aheadMs = newest.time.micros / 1_000 - serverTime
  const evidence = toEvidence([newest.request, number], [newest])
  if (aheadMs <= CLOCK_ERROR_MS)
    return [
      {
        topic: 'clock',
        value: 'not-ahead',
        text: `The newest row that was seen is ${formatSpan(Math.max(0, -aheadMs))} older than the \`Date\` header.`,
        certainty: 'shown',
        evidence,
      },
    ]
  const zone = newest.time.zone === null ? 'without a zone' : 'with a zone'
  return [
    {
      topic: 'clock',
      value: 'local-time',
      text: `A row is ${formatSpan(aheadMs)} newer than the \`Date\` header: times ${zone} are local times, at least ${formatOffset(Math.ceil((aheadMs - 1_000) / QUARTER_MS) * QUARTER_MS)} from UTC, or the records hold planned times.`,
      certainty: 'consistent',
      isWarning: true,
      evidence,
    },
  ]
}

/** All pages of the list without a filter. */
export function listPages({ first, before, after, large, walk, newest }: Observations): ProbePage[] {
  return [first, before, ...walk, after, large, ...newest].filter((page) => page !== undefined)
}

/** A time span in its largest unit. */
export function formatSpan(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} days`
}

/** An offset from UTC such as +02:00. */
export function formatOffset(ms: number): string {
  const minutes = Math.round(Math.abs(ms) / 60_000)
  const pad = (part: number): string => String(part).padStart(2, '0')
  return `${ms < 0 ? '-' : '+'}${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`
}
