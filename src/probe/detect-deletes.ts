import { listPages } from './detect-times.ts'
import type { ProbeEndpoint, ProbeRow } from './endpoint.ts'
import { toEvidence, untestable, type Fact } from './fact.ts'
import type { Observations } from './observe.ts'

/** Whether single records can be read, and how deleted ones show. */
export function detectDeletes(endpoint: ProbeEndpoint, seen: Observations): Fact[] {
  return [...detectLookup(endpoint, seen), detectFlags(seen), ...detectFilters(seen)]
}

function detectLookup({ stream }: ProbeEndpoint, { known, unknown, flagged, endedBy }: Observations): Fact[] {
  const text = 'Whether single records can be read is unknown.'
  if (stream.lookup === undefined) return [untestable('lookup', text, 'the stream has no path for one record')]
  if (known === undefined) return [untestable('lookup', text, endedBy ?? 'no row has a key')]
  if (known.row === null)
    return [
      {
        topic: 'lookup',
        value: 'none',
        text: `\`${stream.lookup.path}\` does not return the record of a key (status ${known.status}).`,
        certainty: 'shown',
        evidence: toEvidence([known.request], [{ key: known.key, time: null }]),
      },
    ]
  const facts: Fact[] = [
    {
      topic: 'lookup',
      value: 'found',
      text: `\`${stream.lookup.path}\` returns the record of a key.`,
      certainty: 'shown',
      evidence: toEvidence([known.request], [known.row]),
    },
  ]
  if (unknown !== undefined) facts.push(describeUnknownKey(unknown))
  if (flagged !== undefined)
    facts.push({
      topic: 'deletes',
      value: flagged.row === null ? 'lookup-gone' : 'lookup-flag',
      text:
        flagged.row === null
          ? `A deleted record is answered with status ${flagged.status}.`
          : 'A deleted record is answered with status 200 and a flag: without the flag it would count as present.',
      certainty: 'shown',
      ...(flagged.row !== null && { isWarning: true as const }),
      evidence: toEvidence([flagged.request], [flagged.row ?? { key: flagged.key, time: null }]),
    })
  return facts
}

function describeUnknownKey({ key, status, row, request }: NonNullable<Observations['unknown']>): Fact {
  const isGone = status === 404 || status === 410
  return {
    topic: 'lookup',
    value: isGone ? String(status) : row === null ? `status-${status}` : 'invents',
    text: isGone
      ? `A key without a record is answered with status ${status}.`
      : `A key without a record is answered with status ${status}, so a deleted record cannot be told from ${row === null ? 'an error' : 'an existing one'}.`,
    certainty: 'shown',
    ...(!isGone && { isWarning: true as const }),
    evidence: toEvidence([request], [{ key, time: null }]),
  }
}

function detectFlags(seen: Observations): Fact {
  const rows = listPages(seen).flatMap(({ rows: all, request }) => all.map((row) => ({ ...row, request })))
  const names = [...new Set(rows.flatMap(({ flags }) => Object.keys(flags)))]
  const [name] = names
  if (rows.length === 0) return untestable('deletes', 'How deleted records show is unknown.', 'the list has no rows')
  if (name === undefined)
    return {
      topic: 'deletes',
      value: 'no-flag',
      text: 'No field of the records says that they are deleted or archived.',
      certainty: 'consistent',
      evidence: toEvidence([seen.first?.request]),
    }
  const isFlagged = ({ flags }: ProbeRow): boolean => Object.values(flags).includes(true)
  const flagged = rows.filter(isFlagged)
  const set =
    flagged[0] === undefined ? name : (Object.entries(flagged[0].flags).find(([, value]) => value)?.[0] ?? name)
  return flagged.length > 0
    ? {
        topic: 'deletes',
        value: `flag:${set}`,
        text: `Deleted records are in the list, marked by \`${set}\`.`,
        certainty: 'shown',
        isWarning: true,
        evidence: toEvidence([flagged[0]?.request], flagged),
      }
    : {
        topic: 'deletes',
        value: `flag-unset:${name}`,
        text: `Records have \`${name}\`, and it is set in none that was seen.`,
        certainty: 'consistent',
        evidence: toEvidence([seen.first?.request]),
      }
}

function detectFilters({ filters, before }: Observations): Fact[] {
  const known = new Set(before?.rows.map(({ key }) => key))
  return filters.map(({ parameter, page }): Fact => {
    const evidence = toEvidence([before?.request, page.request])
    const name = `${parameter}=true`
    if (page.failure !== null)
      return {
        topic: 'deletes',
        value: `filter-refused:${parameter}`,
        text: `\`${name}\` is refused with status ${page.failure.status}.`,
        certainty: 'shown',
        evidence,
      }
    const others = page.rows.filter(({ key }) => !known.has(key))
    const flagged = page.rows.filter(({ flags }) => Object.values(flags).includes(true))
    const found = flagged.length > 0 ? flagged : others
    const isShown = flagged.some(({ key }) => !known.has(key))
    if (found.length > 0 && others.length > 0)
      return {
        topic: 'deletes',
        value: `filter:${parameter}`,
        text: `\`${name}\` returns ${isShown ? 'deleted records' : 'other records, which may be deleted ones'}.`,
        certainty: isShown ? 'shown' : 'consistent',
        evidence: toEvidence(evidence.requests, found),
      }
    const isEmpty = page.rows.length === 0 && known.size > 0
    return {
      topic: 'deletes',
      value: `${isEmpty ? 'filter-empty' : 'filter-ignored'}:${parameter}`,
      text: isEmpty
        ? `\`${name}\` returns no rows: none is deleted, or it is no filter.`
        : `\`${name}\` has no effect.`,
      certainty: 'consistent',
      evidence,
    }
  })
}
