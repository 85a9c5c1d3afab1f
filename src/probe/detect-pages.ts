import type { ProbeEndpoint, ProbePage, ProbeRow } from './endpoint.ts'
import { toEvidence, untestable, type Fact } from './fact.ts'
import { isTie, type Observations } from './observe.ts'

/** The facts that follow from reading the same rows in small pages and in one large page. */
export function detectPages(endpoint: ProbeEndpoint, seen: Observations): Fact[] {
  const { page } = endpoint.stream
  const first = toEvidence([seen.first?.request])
  if (page.kind === 'none')
    return [
      { topic: 'paging', value: 'none', text: 'The stream has no paging.', certainty: 'consistent', evidence: first },
      ...detectIds(seen, false),
    ]
  const walked = seen.walk.filter(({ failure }) => failure === null)
  const paging: Fact =
    walked.length > 1
      ? {
          topic: 'paging',
          value: page.kind,
          text: `Pages are linked by ${PAGING_TEXT[page.kind]}.`,
          certainty: 'shown',
          evidence: toEvidence(walked.map(({ request }) => request)),
        }
      : untestable('paging', `Pages are linked by ${PAGING_TEXT[page.kind]}.`, 'the list has one page', first.requests)
  return [
    paging,
    detectPageSize(endpoint, seen),
    detectBorder(seen),
    ...detectListEnd(seen),
    ...detectIds(seen, page.kind === 'timestamp'),
  ]
}

const PAGING_TEXT = {
  token: 'a token in the response',
  link: 'a link in the response',
  relay: 'the cursor of a connection',
  pageNumber: 'page numbers: a row that is added or removed shifts the others',
  offset: 'offsets: a row that is added or removed shifts the others',
  keyset: 'the time and id of the last row',
  timestamp: 'the time of the last row',
  export: 'an export job',
} as const

function detectPageSize(endpoint: ProbeEndpoint, seen: Observations): Fact {
  const { walk, walkSize, large } = seen
  const text = 'The limit of the page size is unknown.'
  if (endpoint.size === null || walkSize === null)
    return untestable('page-size', text, 'the stream has no parameter for it', [])
  const { parameter } = endpoint.size
  const oversized = walk.find(({ rows }) => rows.length > walkSize)
  if (oversized !== undefined)
    return {
      topic: 'page-size',
      value: 'ignored',
      text: `\`${parameter}\` is ignored: ${walkSize} rows were requested and ${oversized.rows.length} returned.`,
      certainty: 'shown',
      isWarning: true,
      evidence: toEvidence([oversized.request]),
    }
  const short = walk.find(({ rows, next }) => next !== null && rows.length < walkSize)
  if (short !== undefined)
    return {
      topic: 'page-size',
      value: 'short-pages',
      text: `A page before the last one has fewer rows than \`${parameter}\`: a short page is not the end.`,
      certainty: 'shown',
      isWarning: true,
      evidence: toEvidence([short.request]),
    }
  if (large === undefined) return untestable('page-size', text, seen.endedBy ?? 'it was not requested')
  const evidence = toEvidence([large.request])
  if (large.failure !== null)
    return {
      topic: 'page-size',
      value: 'refused',
      text: `\`${parameter}=${large.asked}\` is refused with status ${large.failure.status}.`,
      certainty: 'shown',
      evidence,
    }
  const isClamped = large.next !== null && large.rows.length < (large.asked ?? 0)
  return isClamped
    ? {
        topic: 'page-size',
        value: String(large.rows.length),
        text: `A page has at most ${large.rows.length} rows, whatever \`${parameter}\` says.`,
        certainty: 'consistent',
        evidence,
      }
    : {
        topic: 'page-size',
        value: 'honoured',
        text: `\`${parameter}\` is honoured; its largest value is above ${large.rows.length}.`,
        certainty: 'shown',
        evidence,
      }
}

/** Whether rows are lost or repeated where one page ends and the next begins. */
function detectBorder(seen: Observations): Fact {
  const walk = seen.walk.filter(({ failure, rows }) => failure === null && rows.length > 0)
  const requests = walk.map(({ request }) => request)
  if (walk.length < 2)
    return untestable(
      'page-border',
      'The border of pages is unknown.',
      seen.endedBy ?? 'the list has one page',
      requests,
    )
  const repeated = findRepeatedBorder(walk)
  if (repeated !== null) return repeated
  const lost = findLostRows(seen, walk)
  if (lost !== null) return lost
  const tie = walk.findIndex((page, index) => index > 0 && isTie(walk[index - 1]?.rows.at(-1), page.rows[0]))
  if (tie < 0)
    return untestable(
      'page-border',
      'Rows with one time across a page border are unknown; no other row was lost or repeated.',
      'no two rows with one time are next to a border',
      requests,
    )
  const [before, after] = [walk[tie - 1], walk[tie]]
  return {
    topic: 'page-border',
    value: 'ties-kept',
    text: 'Rows with one time across a page border are all returned, once.',
    certainty: 'shown',
    evidence: toEvidence(
      [before?.request, after?.request],
      [before?.rows.at(-1), after?.rows[0]].flatMap((row) => row ?? []),
    ),
  }
}

/** A page that begins with the last row of the page before it. */
function findRepeatedBorder(walk: readonly ProbePage[]): Fact | null {
  for (const [index, page] of walk.entries()) {
    const before = walk[index - 1]
    const last = before?.rows.at(-1)
    if (before === undefined || last === undefined || page.rows[0]?.key !== last.key) continue
    return {
      topic: 'page-border',
      value: 'repeats-last-row',
      text: 'A page begins with the last row of the page before it: the cursor includes its row.',
      certainty: 'shown',
      isWarning: true,
      evidence: toEvidence([before.request, page.request], [last]),
    }
  }
  return null
}

/** Rows of the large page, before and after the walk, that lie between two walked rows and are in no page. */
function findLostRows(seen: Observations, walk: readonly ProbePage[]): Fact | null {
  const walked = new Set(walk.flatMap(({ rows }) => rows.map(({ key }) => key)))
  const reference = listReference(seen)
  const lastWalked = reference.findLastIndex(({ key }) => walked.has(key))
  const lost = reference.slice(0, Math.max(0, lastWalked)).filter(({ key }) => !walked.has(key))
  const [row] = lost
  if (row === undefined) return null
  const at = reference.indexOf(row)
  const previous = reference.slice(0, at).findLast(({ key }) => walked.has(key))
  const page = walk.find(({ rows }) => rows.some(({ key }) => key === previous?.key))
  const isSplitTie = isTie(previous, row) || isTie(row, reference[at + 1])
  return {
    topic: 'page-border',
    value: isSplitTie ? 'ties-lost' : 'rows-lost',
    text: isSplitTie
      ? 'Rows with one time across a page border are lost: the next page starts after the time, not after the row.'
      : 'Rows at a page border are lost.',
    certainty: 'shown',
    isWarning: true,
    evidence: toEvidence(
      [seen.before?.request, page?.request, page === undefined ? undefined : page.request + 1],
      [...(previous === undefined ? [] : [previous]), ...lost],
    ),
  }
}

/** The rows that the large page had before and after the walk, with the same times. */
export function listReference({ before, after }: Observations): ProbeRow[] {
  if (after === undefined || after.failure !== null) return []
  const later = new Map(after.rows.map((row) => [row.key, row.time?.micros]))
  return (before?.rows ?? []).filter((row) => later.has(row.key) && later.get(row.key) === row.time?.micros)
}

/** A list that says that it ends although the API has more rows. */
function detectListEnd(seen: Observations): Fact[] {
  const pages = [seen.before, seen.after, seen.large].filter((page) => page !== undefined && page.failure === null)
  const walked = seen.walk.filter(({ failure }) => failure === null)
  const last = walked.at(-1)
  const count = new Set(walked.flatMap(({ rows }) => rows.map(({ key }) => key))).size
  const reference = listReference(seen)
  const hasEnded = last !== undefined && last.next === null
  const beyond = hasEnded ? reference.slice(reference.findLastIndex(({ key }) => hasKey(walked, key)) + 1) : []
  const [missing] = beyond
  if (hasEnded && missing !== undefined)
    return [endsEarly([last.request, seen.before?.request], beyond, `after ${count} rows`)]
  const counted = [...pages, ...(hasEnded ? [last] : [])].find(
    (page) => page?.next === null && page.total !== null && page.total > (page === last ? count : page.rows.length),
  )
  if (counted !== undefined) return [endsEarly([counted.request], [], `although it counts ${counted.total} rows`)]
  const most = Math.max(0, ...pages.map((page) => page?.rows.length ?? 0))
  const ended = pages.find((page) => page?.next === null && page.rows.length < most && page !== seen.after)
  if (ended !== undefined && ended.rows.length < reference.length)
    return [endsEarly([ended.request], reference.slice(ended.rows.length), `after ${ended.rows.length} rows`)]
  if (!hasEnded && !pages.some((page) => page?.next === null))
    return [untestable('list-end', 'The end of the list is unknown.', 'the probe did not reach it')]
  return [
    {
      topic: 'list-end',
      value: 'complete',
      text: 'The list ends after its last row.',
      certainty: 'consistent',
      evidence: toEvidence([last?.next === null ? last.request : pages.find((page) => page?.next === null)?.request]),
    },
  ]
}

function endsEarly(requests: readonly (number | undefined)[], rows: readonly ProbeRow[], when: string): Fact {
  return {
    topic: 'list-end',
    value: 'too-early',
    text: `The list says that it ends ${when}, and has more.`,
    certainty: 'shown',
    isWarning: true,
    evidence: toEvidence(requests, rows),
  }
}

function hasKey(pages: readonly ProbePage[], key: string): boolean {
  return pages.some(({ rows }) => rows.some((row) => row.key === key))
}

/** `repeatsTimes`: the paging returns the rows of the last time again, by design. */
export function detectIds(seen: Observations, repeatsTimes: boolean): Fact[] {
  const passes = [seen.walk, ...[seen.before, seen.large].map((page) => (page === undefined ? [] : [page]))]
  for (const pages of passes) {
    const owners = new Map<string, { readonly page: ProbePage; readonly row: ProbeRow }>()
    for (const [index, page] of pages.entries())
      for (const [place, row] of page.rows.entries()) {
        const owner = owners.get(row.key)
        const isBorder = owner !== undefined && owner.page === pages[index - 1] && place === 0
        if (owner !== undefined && !isBorder && !(repeatsTimes && isTie(owner.row, row)))
          return [
            {
              topic: 'ids',
              value: owner.page === page ? 'repeated-in-page' : 'repeated',
              text: `An id is returned twice in one ${owner.page === page ? 'page' : 'list'}.`,
              certainty: 'shown',
              isWarning: true,
              evidence: toEvidence([owner.page.request, page.request], [owner.row, row]),
            },
          ]
        owners.set(row.key, { page, row })
      }
  }
  const count = Math.max(0, ...passes.map((pages) => pages.reduce((sum, { rows }) => sum + rows.length, 0)))
  if (count === 0) return [untestable('ids', 'Whether ids are unique is unknown.', 'no rows were read')]
  return [
    {
      topic: 'ids',
      value: 'unique',
      text: `No id is returned twice in ${count} rows.`,
      certainty: 'consistent',
      evidence: toEvidence(passes.flat().map(({ request }) => request)),
    },
  ]
}
