import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import type { OpenApiDocument } from './document.ts'
import { normalizeName, type ApiParameter } from './parameters.ts'
import { listPaths, typeOf } from './schema.ts'

/** `page` of a stream in a manifest. */
export type ManifestPaging = JsonObject & { readonly kind: string }

export interface PagingGuess {
  readonly page: ManifestPaging
  /** Assumptions that the document does not state. */
  readonly notes: readonly string[]
}

export interface PagingInput {
  readonly document: OpenApiDocument
  readonly place: string
  readonly parameters: readonly ApiParameter[]
  readonly headers: readonly string[]
  readonly schema: JsonValue | undefined
  readonly key: string | null
}

const CURSORS = new Set(
  'cursor pagetoken nexttoken nextpagetoken continuationtoken continuation after startingafter startafter pagecursor nextcursor pageafter token marker nextkey offsettoken scrollid bookmark startkey'.split(
    ' ',
  ),
)
const PAGES = new Set('page pagenumber pageno pagenum pageindex p currentpage'.split(' '))
const OFFSETS = new Set('offset skip startindex pageoffset start startat'.split(' '))
const SIZES = new Set(
  'limit perpage pagesize size maxresults count pagelimit first take top resultsperpage recordsperpage maxitems'.split(
    ' ',
  ),
)
const NEXT_TOKENS = new Set(
  'nextcursor nextpagetoken nexttoken nextpagecursor continuationtoken continuation endcursor cursor after nextpage next marker nextmarker nextkey scrollid bookmark pagetoken startingafter'.split(
    ' ',
  ),
)
const NEXT_LINKS =
  /(?:^|\.)(?:next|nextLink|next_link|nextUrl|next_url|next_page_url|nextPageUrl|nextPageLink|@odata\.nextLink|next\.href|next\.url)$/
const MORE = new Set('hasmore hasnext hasnextpage more moreresults hasmorepages hasmoreitems'.split(' '))
const TOTALS = new Set('total totalcount totalresults totalitems totalrecords totalelements totalhits'.split(' '))
const PAGE_COUNTS = new Set('totalpages pagecount lastpage numpages pages'.split(' '))

/** The paging of a list by its parameters and its response; a text if it has one that cannot be derived. */
export function guessPaging(input: PagingInput): PagingGuess | string {
  const query = input.parameters.filter((parameter) => parameter.in === 'query')
  const find = (names: ReadonlySet<string>): ApiParameter | undefined =>
    query.find(({ name }) => names.has(normalizeName(name)))
  const members = listPaths(input.document, input.schema, input.place)
  const link = findNextLink(members)
  const cursor = find(CURSORS)
  const size = find(SIZES)
  const notes: string[] = []
  const sized = size === undefined ? {} : { size: toSize(size, notes) }
  if (input.headers.some((name) => name.toLowerCase() === 'link')) return { page: { kind: 'link', ...sized }, notes }
  if (cursor !== undefined) {
    const guess = guessToken(input, cursor, members)
    if (typeof guess !== 'string') return { page: { ...guess, ...sized }, notes }
    return link === undefined ? guess : { page: { kind: 'link', next: link, ...sized }, notes }
  }
  if (link !== undefined) return { page: { kind: 'link', next: link, ...sized }, notes }
  const page = find(PAGES)
  if (page !== undefined) {
    const { default: first, minimum } = page.schema
    const start = typeof first === 'number' ? first : minimum
    if (typeof start !== 'number') notes.push(`the number of its first page is assumed to be 1`)
    const counts = findCounts(members, true)
    if (Object.keys(counts).length === 0)
      notes.push('its response has no count of pages, so an empty page ends the list')
    return {
      page: {
        kind: 'page_number',
        parameter: page.name,
        ...(typeof start === 'number' && start !== 1 && { first: start }),
        ...sized,
        ...counts,
      },
      notes,
    }
  }
  const offset = find(OFFSETS)
  if (offset !== undefined) {
    const { default: first, minimum } = offset.schema
    if (first === 1 || minimum === 1) return `its parameter \`${offset.name}\` counts from 1`
    if (size === undefined) return `it has \`${offset.name}\`, but no parameter for the size of a page`
    return { page: { kind: 'offset', parameter: offset.name, ...sized, ...findCounts(members, false) }, notes }
  }
  if (size !== undefined) return `it has \`${size.name}\`, but no parameter or link for the next page`
  const more = members.find(([path]) => MORE.has(normalizeName(last(path))))
  if (more !== undefined) return `its response has \`${more[0]}\`, but no parameter or link for the next page`
  return { page: { kind: 'none' }, notes: ['it has no paging, so a response is assumed to be the complete list'] }
}

function guessToken(
  { document, place, key }: PagingInput,
  cursor: ApiParameter,
  members: ReadonlyArray<readonly [string, JsonObject]>,
): ManifestPaging | string {
  const tokens = members.filter(
    ([path, schema]) =>
      NEXT_TOKENS.has(normalizeName(last(path))) &&
      ['string', 'integer', 'number', ''].includes(typeOf(document, schema, place)) &&
      schema.format !== 'uri' &&
      schema.format !== 'url',
  )
  const rank = ([path]: readonly [string, JsonObject]): number => (/next|end/i.test(path) ? 0 : 1)
  const [token] = tokens.toSorted((a, b) => rank(a) - rank(b))
  const more = members.find(([path]) => MORE.has(normalizeName(last(path))))
  const parameter = { kind: 'token', parameter: cursor.name }
  if (token !== undefined && rank(token) === 0) return { ...parameter, next: token[0] }
  if (/after|start/i.test(cursor.name) && more !== undefined && key !== null)
    return { ...parameter, next: { last: key }, more: more[0] }
  if (token !== undefined) return { ...parameter, next: token[0] }
  return `its response does not say where the value of \`${cursor.name}\` for the next page is`
}

function findNextLink(members: ReadonlyArray<readonly [string, JsonObject]>): string | undefined {
  const isLink = ([path, { format, description }]: readonly [string, JsonObject]): boolean =>
    NEXT_LINKS.test(path) &&
    (format === 'uri' ||
      format === 'url' ||
      format === 'uri-reference' ||
      /link|url|href/i.test(path) ||
      (typeof description === 'string' && /\burl\b|\blink\b/i.test(description)))
  return members.find(isLink)?.[0]
}

function findCounts(members: ReadonlyArray<readonly [string, JsonObject]>, isPaged: boolean): JsonObject {
  const find = (names: ReadonlySet<string>, types: readonly string[]): string | undefined =>
    members.find(([path, { type }]) => names.has(normalizeName(last(path))) && types.includes(String(type)))?.[0]
  const numbers = ['integer', 'number']
  const total = find(TOTALS, numbers)
  if (total !== undefined) return { total }
  const pages = isPaged ? find(PAGE_COUNTS, numbers) : undefined
  if (pages !== undefined) return { pages }
  const more = find(MORE, ['boolean'])
  return more === undefined ? {} : { more }
}

function toSize({ name, schema }: ApiParameter, notes: string[]): JsonObject {
  const { maximum, default: usual } = schema
  const value = typeof maximum === 'number' && maximum > 0 ? Math.min(maximum, SIZE_MAX) : usual
  if (typeof value === 'number' && value > 1) return { parameter: name, value }
  notes.push(`the largest \`${name}\` is not stated; 100 was chosen`)
  return { parameter: name, value: 100 }
}

const SIZE_MAX = 1_000

function last(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}
