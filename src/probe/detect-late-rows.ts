import { formatSpan } from './detect-times.ts'
import { toEvidence, untestable, type Fact } from './fact.ts'
import type { Observations } from './observe.ts'
import type { JournalEntry } from './request-journal.ts'

/** Rows that became visible after newer rows had been read. */
export function detectLateRows(seen: Observations, entries: readonly JournalEntry[]): Fact {
  const readings = seen.newest.filter(({ failure }) => failure === null)
  const requests = readings.map(({ request }) => request)
  const text = 'How late rows become visible is unknown.'
  if (seen.newest.length > readings.length) {
    const failed = seen.newest.find(({ failure }) => failure !== null)
    return untestable('late-rows', text, `request ${failed?.request} failed`, requests)
  }
  if (readings.length < 2) return untestable('late-rows', text, seen.endedBy ?? 'the list has no time filter', requests)
  const [first] = readings
  const known = new Set(first?.rows.map(({ key, time }) => `${key} ${time?.micros}`))
  let newest = Math.max(0, ...(first?.rows ?? []).map(({ time }) => time?.micros ?? 0))
  for (const reading of readings.slice(1)) {
    // A page that is full may only have had no place for the row before.
    const isCut = reading.next !== null || first?.next !== null
    const late = reading.rows.find(
      ({ key, time }) => time !== null && time.micros <= newest && !known.has(`${key} ${time.micros}`),
    )
    if (late?.time != null && !isCut) {
      const answeredAt = entries.find(({ number }) => number === reading.request)?.answeredAt ?? 0
      const lateMs = Math.max(0, answeredAt - late.time.micros / 1_000)
      return {
        topic: 'late-rows',
        value: String(Math.ceil(lateMs / 1_000)),
        text: `A row became visible after newer ones, ${formatSpan(lateMs)} after its time or less.`,
        certainty: 'shown',
        isWarning: true,
        evidence: toEvidence(requests, [late]),
      }
    }
    for (const { key, time } of reading.rows) {
      known.add(`${key} ${time?.micros}`)
      newest = Math.max(newest, time?.micros ?? 0)
    }
  }
  if (readings.every(({ rows }) => rows.length === 0))
    return untestable('late-rows', text, 'no row changed in the last hour', requests)
  return {
    topic: 'late-rows',
    value: 'none-seen',
    text: `No row became visible late in ${readings.length} readings.`,
    certainty: 'consistent',
    evidence: toEvidence(requests),
  }
}
