import { detectBounds } from './detect-bounds.ts'
import { detectDeletes } from './detect-deletes.ts'
import { detectLateRows } from './detect-late-rows.ts'
import { detectOrder } from './detect-order.ts'
import { detectPages } from './detect-pages.ts'
import { detectRateLimits } from './detect-rate-limits.ts'
import { detectClock, detectTimes } from './detect-times.ts'
import type { ProbeEndpoint } from './endpoint.ts'
import { toEvidence, untestable, type Fact } from './fact.ts'
import type { Observations } from './observe.ts'

/** All facts that the observations of a list prove, or why they do not. */
export function collectFacts(endpoint: ProbeEndpoint, seen: Observations): Fact[] {
  const { entries } = endpoint.journal
  const { first } = seen
  if (first === undefined || first.failure !== null) {
    const reason = first?.failure?.message.replace(/\.$/, '') ?? seen.endedBy ?? 'no request was answered'
    return [untestable('records', 'The list cannot be read.', reason, [1]), ...detectRateLimits(entries)]
  }
  const records: Fact = {
    topic: 'records',
    value: String(first.rows.length),
    text: `The first page has ${first.rows.length} rows${first.total === null ? '' : `; the API counts ${first.total}`}.`,
    certainty: 'shown',
    evidence: toEvidence([first.request], first.rows.slice(0, 2)),
  }
  return [
    records,
    ...detectTimes(seen),
    ...detectBounds(seen, endpoint.filter),
    ...detectOrder(seen, endpoint.stream),
    ...detectPages(endpoint, seen),
    detectLateRows(seen, entries),
    ...detectClock(seen, entries),
    ...detectDeletes(endpoint, seen),
    ...detectRateLimits(entries),
  ]
}
