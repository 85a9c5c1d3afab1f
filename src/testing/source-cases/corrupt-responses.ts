import type { Fetch } from './source-fixture.ts'

/** A complete and well-formed response with status 200 that is not true. */
export interface CorruptResponse {
  readonly name: string
  /** Whether the records stay in it; the reference to the next page never does. */
  readonly keepsRecords: boolean
  /** Whether counts and totals are still correct. */
  readonly keepsCounts: boolean
}

export const corruptResponses: readonly CorruptResponse[] = [
  { name: 'an empty response', keepsRecords: false, keepsCounts: false },
  { name: 'an empty response with a non-zero count', keepsRecords: false, keepsCounts: true },
  { name: 'a response with a false end flag', keepsRecords: true, keepsCounts: true },
]

/** A fetch that corrupts the response to the request with this number; `hit` returns whether that changed anything. */
export function injectCorruptResponseAt(
  wrong: CorruptResponse,
  at: number,
): { line: (ask: Fetch) => Fetch; hit: () => boolean } {
  let requests = 0
  let isHit = false
  return {
    line: (ask) => async (input, init) => {
      const response = await ask(input, init)
      if (++requests !== at || !response.ok) return response
      const text = await response.text()
      const headers = new Headers(response.headers)
      headers.delete('content-length')
      const spoiled = corruptText(text, wrong)
      if (headers.has('link')) headers.delete('link')
      if (!wrong.keepsCounts && headers.has('x-total-count')) headers.set('x-total-count', '0')
      isHit = spoiled !== text || response.headers.has('link')
      return new Response(spoiled, { status: response.status, headers })
    },
    hit: () => isHit,
  }
}

function corruptText(text: string, wrong: CorruptResponse): string {
  try {
    const body: unknown = JSON.parse(text)
    // A single record with wrong content is indistinguishable from a correct one.
    return typeof body === 'object' && body !== null && 'id' in body ? text : JSON.stringify(corruptValue(body, wrong))
  } catch {
    // Not JSON: passed on unchanged.
    return text
  }
}

function corruptValue(value: unknown, wrong: CorruptResponse): unknown {
  if (Array.isArray(value)) return wrong.keepsRecords || !value.every((item) => typeof item === 'object') ? value : []
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value)
    .filter(([name]) => !NEXT_PAGE.test(name))
    .map(([name, member]): [string, unknown] => {
      if (typeof member === 'boolean' && HAS_MORE.test(name)) return [name, false]
      if (member === false && name === 'done') return [name, true]
      if (typeof member === 'number' && COUNT.test(name)) return [name, wrong.keepsCounts ? member : 0]
      return [name, corruptValue(member, wrong)]
    })
  return Object.fromEntries(members)
}

/** Field names that APIs use for the next page, for its existence, and for counts. */
const NEXT_PAGE = /^(?:paging|offset|next|nextRecordsUrl|next_token|@odata\.nextLink|__next)$/
const HAS_MORE = /^(?:has_more|hasMore|hasNextPage)$/
const COUNT = /^(?:total|totalSize|totalCount|total_count|count|result_count|@odata\.count)$/
