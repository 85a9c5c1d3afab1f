import { toEvidence, type Fact } from './fact.ts'
import type { JournalEntry } from './request-journal.ts'

/** The rate limits by the headers of the answers. */
export function detectRateLimits(entries: readonly JournalEntry[]): Fact[] {
  const names = [...new Set(entries.flatMap(({ limits }) => Object.keys(limits)))].toSorted()
  const refused = entries.filter(({ status }) => status === 429)
  const facts = names.map((name) =>
    describeHeader(
      name,
      entries.filter(({ limits }) => limits[name] !== undefined),
    ),
  )
  const [last] = refused
  if (last !== undefined)
    facts.push({
      topic: 'rate-limit',
      value: 'reached',
      text:
        last.limits['retry-after'] === undefined
          ? 'The rate limit was reached, and the answer has no `Retry-After`.'
          : `The rate limit was reached, with \`Retry-After: ${last.limits['retry-after']}\`.`,
      certainty: 'shown',
      evidence: toEvidence([last.number]),
    })
  if (facts.length > 0) return facts
  return [
    {
      topic: 'rate-limit',
      value: 'none',
      text: 'No answer has a header about rate limits.',
      certainty: 'shown',
      evidence: toEvidence(entries.map(({ number }) => number)),
    },
  ]
}

function describeHeader(name: string, entries: readonly JournalEntry[]): Fact {
  const values = entries.map(({ limits }) => limits[name] ?? '')
  const evidence = toEvidence(entries.slice(0, 3).map(({ number }) => number))
  const value = values[0] ?? ''
  const isDate = name === 'retry-after' && !Number.isNaN(Date.parse(value))
  if (!/\d/.test(value) && !isDate && MUST_HAVE_NUMBER.test(name))
    return {
      topic: 'rate-limit',
      value: `no-number:${name}`,
      text: `\`${name}\` has no number: ${JSON.stringify(value.slice(0, 40))}.`,
      certainty: 'shown',
      isWarning: true,
      evidence,
    }
  const numbers = values.map((text) => Number(/\d+/.exec(text)?.[0]))
  const first = numbers[0] ?? Number.NaN
  const counts = /remaining/i.test(name) && numbers.length > 1 && numbers.some((number) => number < first)
  const unit = !/reset/i.test(name) ? '' : first > 1e9 ? ', a time in seconds since 1970' : ', seconds to wait'
  return {
    topic: 'rate-limit',
    value: `${name}:${counts ? 'counts' : value.slice(0, 60)}`,
    text: counts
      ? `\`${name}\` falls with the requests, from ${first} to ${Math.min(...numbers)}.`
      : `\`${name}\` is ${JSON.stringify(value.slice(0, 60))}${unit}.`,
    certainty: unit === '' ? 'shown' : 'consistent',
    evidence,
  }
}

/** Other headers may hold the name of a rule. */
const MUST_HAVE_NUMBER = /limit$|remaining|reset|retry-after|^ratelimit/i
