import { SyncError, type JsonObject, type JsonValue } from '../contract/index.ts'
import type { HttpResponse } from '../sources/kit/http-client.ts'
import { parseNextLink } from '../sources/kit/link-header.ts'
import { getAtPath } from '../sources/rest/field-path.ts'
import type { TimeFormat } from '../sources/rest/record-mapping.ts'
import type { ListPaging, RestStream } from '../sources/rest/stream.ts'
import { OpenApiDocument } from '../sources/rest/openapi/document.ts'
import { guessPaging, type ManifestPaging } from '../sources/rest/openapi/paging.ts'
import type { ApiParameter } from '../sources/rest/openapi/parameters.ts'
import { findTimeFilter, guessDeleted, guessKey, guessUpdatedAt } from '../sources/rest/openapi/records.ts'
import { findList } from '../sources/rest/openapi/schema.ts'
import { parseTime } from './time-text.ts'

/** Facts that the author of a connector knows already; the rest is derived from the first answer. */
export interface UrlHints {
  readonly records?: string
  readonly key?: string
  readonly cursor?: string
  readonly since?: string
  readonly until?: string
  readonly lookup?: string
}

/** A list at a URL, as a stream of the `rest` source. */
export interface DescribedUrl {
  readonly stream: RestStream
  /** `page` in the form of a manifest. */
  readonly page: ManifestPaging
  /** Assumptions. */
  readonly notes: readonly string[]
}

/** Splits a URL into the base of the API and the path of the list. */
export function splitUrl(url: URL): { readonly baseUrl: string; readonly path: string; readonly id: string } {
  const segments = url.pathname.split('/').filter((segment) => segment !== '')
  const last = segments.at(-1) ?? ''
  const baseUrl = `${url.origin}${segments
    .slice(0, -1)
    .map((segment) => `/${segment}`)
    .join('')}`
  return { baseUrl, path: `/${last}`, id: last.replace(/\.\w+$/, '').replace(/\W+/g, '_') || 'records' }
}

/** The parameters of a URL. One without a value, such as `updated_since=`, is known to the API and not sent. */
export function sentQuery(url: URL): Record<string, string> {
  return Object.fromEntries([...url.searchParams].filter(([, value]) => value !== ''))
}

/** Derives how to read a list from its URL and one answer. */
export function describeUrl(url: URL, response: HttpResponse, hints: UrlHints): DescribedUrl {
  const { path, id } = splitUrl(url)
  const schema = inferSchema(response.body)
  const document = new OpenApiDocument(url.pathname, {})
  const place = `GET ${url.pathname}`
  const list = hints.records === undefined ? findList(document, schema, { place, path }) : { at: hints.records }
  if (typeof list === 'string') throw unclear(`the list of records cannot be found: ${list}`, '--records <path>')
  const found = getAtPath(response.body, list.at)
  if (!Array.isArray(found)) throw unclear(`the answer has no list at ${JSON.stringify(list.at)}`, '--records <path>')
  const item = inferSchema(found).items as JsonObject | undefined
  const key = hints.key ?? guessKey(document, item, { place, name: id, detail: null })
  if (key === null)
    throw unclear(found.length === 0 ? 'the list is empty' : 'no field looks like the key of a record', '--key <field>')
  const parameters = listParameters(url, response)
  const guess = guessPaging({
    document,
    place,
    parameters,
    headers: [...response.headers.keys()],
    schema,
    key,
  })
  const page: ManifestPaging = typeof guess === 'string' ? { kind: 'none' } : guess.page
  const notes = typeof guess === 'string' ? [guess] : guess.notes
  const cursor = hints.cursor ?? guessUpdatedAt(document, item, place).field ?? findTimeField(found[0])
  const sample = found.map((record) => getAtPath(record, cursor ?? '')).find((value) => parseTime(value) !== null)
  const filter = findTimeFilter(parameters)
  const since = hints.since ?? filter?.since
  const until = hints.until ?? filter?.until
  const deleted = guessDeleted(document, item, place)
  const used = new Set([...listNames(page), since, until])
  const query = Object.fromEntries(Object.entries(sentQuery(url)).filter(([name]) => !used.has(name)))
  const listing = toListPaging(page)
  return {
    page,
    notes,
    stream: {
      name: id,
      path,
      ...(list.at !== '' && { records: list.at }),
      key,
      ...(cursor !== null && { updatedAt: cursor }),
      ...timeFormat(sample),
      ...(deleted !== null && { deleted }),
      ...(Object.keys(query).length > 0 && { query }),
      page: listing,
      ...(since !== undefined && {
        follow: {
          kind: 'window',
          since,
          ...(until !== undefined && { until }),
          page: listing as Extract<ListPaging, { kind: 'none' | 'token' | 'link' }>,
        },
      }),
      lookup: { path: hints.lookup ?? `${path}/{key}` },
    },
  }
}

/** The list of a URL before any answer, for the plan of the requests. */
export function sketchUrl(url: URL, { since: given, until: givenUntil, lookup }: UrlHints): RestStream {
  const { path, id } = splitUrl(url)
  const parameters = toParameters(url.searchParams)
  const document = new OpenApiDocument(url.pathname, {})
  const guess = guessPaging({ document, place: path, parameters, headers: ['link'], schema: {}, key: 'id' })
  const page = typeof guess === 'string' ? { kind: 'link' } : guess.page
  const filter = findTimeFilter(parameters)
  const since = given ?? filter?.since
  const until = givenUntil ?? filter?.until
  const used = new Set([...listNames(page), since, until])
  return {
    name: id,
    path,
    key: 'id',
    query: Object.fromEntries(Object.entries(sentQuery(url)).filter(([name]) => !used.has(name))),
    page: toListPaging(page),
    ...(since !== undefined && {
      follow: { kind: 'window', since, ...(until !== undefined && { until }), page: { kind: 'link' } },
    }),
    lookup: { path: lookup ?? `${path}/{key}` },
  }
}

function unclear(what: string, flag: string): SyncError {
  return new SyncError('ARGUMENT_INVALID', `Nothing can be probed, because ${what}. Add ${flag}.`)
}

function toListPaging(page: ManifestPaging): ListPaging {
  // The fields of these pagings have the same names in a manifest.
  return { ...page, kind: page.kind === 'page_number' ? 'pageNumber' : page.kind } as unknown as ListPaging
}

function timeFormat(sample: JsonValue | undefined): { time?: TimeFormat } {
  const form = parseTime(sample)?.form
  return form === 's' || form === 'ms' || form === 'date' ? { time: form } : {}
}

/** The parameters of the URL, and those of the link to the next page. */
function listParameters(url: URL, response: HttpResponse): ApiParameter[] {
  const link = parseNextLink(response.headers)
  const linked = link !== null && URL.canParse(link, url.href) ? new URL(link, url.href).searchParams : []
  return toParameters([...linked, ...url.searchParams])
}

function toParameters(pairs: Iterable<readonly [string, string]>): ApiParameter[] {
  return [...new Map(pairs)].map(([name, value]) => ({
    name,
    in: 'query',
    isRequired: false,
    schema: /^\d+$/.test(value) ? { type: 'integer', default: Number(value) } : { type: 'string' },
    value,
  }))
}

/** The names of the parameters that a paging sets. */
function listNames({ parameter, size }: ManifestPaging): unknown[] {
  return [parameter, (size as JsonObject | undefined)?.parameter]
}

const TIME_NAMES = [/updat|modif|chang|edit/i, /creat/i, /^(?:date|time|timestamp)$/i]

/** A field with a time, the time of the last change first. */
function findTimeField(record: JsonValue | undefined): string | null {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return null
  const names = Object.entries(record).flatMap(([name, value]) =>
    parseTime(value as JsonValue) === null ? [] : [name],
  )
  for (const pattern of TIME_NAMES) {
    const found = names.find((name) => pattern.test(name))
    if (found !== undefined) return found
  }
  return null
}

const SCHEMA_ITEMS_MAX = 20

/** A schema that the value matches. */
function inferSchema(value: JsonValue | undefined): JsonObject {
  if (Array.isArray(value)) {
    const items = value.slice(0, SCHEMA_ITEMS_MAX).map(inferSchema)
    const properties = Object.assign({}, ...items.map((item) => item.properties ?? {})) as JsonObject
    const [first] = items
    return {
      type: 'array',
      items:
        first === undefined ? { type: 'object' } : first.type === 'object' ? { type: 'object', properties } : first,
    }
  }
  if (typeof value === 'object' && value !== null)
    return {
      type: 'object',
      properties: Object.fromEntries(
        Object.entries(value).map(([name, member]) => [name, inferSchema(member as JsonValue)]),
      ),
    }
  if (typeof value === 'string') {
    if (parseTime(value)?.form === 'text') return { type: 'string', format: 'date-time' }
    return /^https?:\/\//.test(value) ? { type: 'string', format: 'uri' } : { type: 'string' }
  }
  if (typeof value === 'number') return { type: Number.isInteger(value) ? 'integer' : 'number' }
  if (typeof value === 'bigint') return { type: 'integer' }
  // Null: any type.
  return typeof value === 'boolean' ? { type: 'boolean' } : {}
}
