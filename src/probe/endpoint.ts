import { isSyncError, type JsonValue, type SyncContext } from '../contract/index.ts'
import type { HttpClient } from '../sources/kit/http-client.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { createEndpoint, requestAnswer, type ListEndpoint, type RecordsPage } from '../sources/rest/list-endpoint.ts'
import { getAtPath } from '../sources/rest/field-path.ts'
import { buildSizeQuery, readCount, readHasMore, readLinkedPage, readPage } from '../sources/rest/read-stream.ts'
import { buildKey, toChange } from '../sources/rest/record-mapping.ts'
import { listPlaceholders, type ParameterValue, type Parameters } from '../sources/rest/request-template.ts'
import { createFormat } from '../sources/rest/response-format.ts'
import type { ListPaging, PageSizeParameter, RestStream } from '../sources/rest/stream.ts'
import type { RequestJournal } from './request-journal.ts'
import { formatTimeLike, parseTime, type TimeText } from './time-text.ts'

/** A row as the probe keeps it: no other values. */
export interface ProbeRow {
  readonly key: string
  readonly time: TimeText | null
  /** The fields that mark deleted or archived records, as they are in this row. */
  readonly flags: Readonly<Record<string, boolean>>
}

/** One page of a list, or the reason why there is none. */
export interface ProbePage {
  /** The number of its request. */
  readonly request: number
  readonly rows: readonly ProbeRow[]
  /** The parameters or the link of the next page; null at the end of the list. */
  readonly next: NextPage | null
  /** The number of all records, if the API counts them. */
  readonly total: number | null
  readonly asked: number | null
  /** The status of a failed request. */
  readonly failure: RequestFailure | null
}

/** A request without a page. */
export interface RequestFailure {
  readonly code: string
  readonly status: number | null
  readonly message: string
}

type NextPage = { readonly token: string } | { readonly parameters: Parameters }

/** The parameters of a request for a page. */
export interface PageQuestion {
  readonly since?: string | number
  readonly until?: string | number
  readonly size?: number
  /** Replaces query parameters. */
  readonly query?: Readonly<Record<string, string>>
}

/** The answer to the request for one record. */
export interface LookupAnswer {
  readonly request: number
  readonly key: string
  readonly status: number | null
  readonly row: ProbeRow | null
}

/** The parameters that select records by time. */
export interface TimeParameters {
  readonly since: string
  readonly until: string | null
}

/** Null if the stream has no time filter. */
export function findTimeParameters({ follow, page }: RestStream): TimeParameters | null {
  if (follow?.kind === 'window' || follow?.kind === 'timestamp')
    return { since: follow.since, until: follow.until ?? null }
  if (page.kind === 'timestamp') return { since: page.since, until: page.until ?? null }
  if (follow?.kind === 'keyset') return { since: follow.after, until: follow.until ?? null }
  return page.kind === 'keyset' ? { since: page.after, until: page.until ?? null } : null
}

/** The parameter of the page size; null if the stream has none. */
export function findPageSize({ page, follow }: RestStream): PageSizeParameter | null {
  if ('size' in page && page.size !== undefined) return page.size
  return follow !== undefined && 'size' in follow ? follow.size : null
}

/** The method of a stream that declares none. */
export function methodOf({ method, body, graphql }: RestStream): 'GET' | 'POST' {
  return method ?? (body === undefined && graphql === undefined ? 'GET' : 'POST')
}

/** A list of an API, as a stream of the `rest` source describes it. */
export class ProbeEndpoint {
  readonly stream: RestStream
  readonly journal: RequestJournal
  readonly #client: HttpClient
  readonly #context: SyncContext

  /** `context` must be one of the journal. */
  constructor(stream: RestStream, client: HttpClient, journal: RequestJournal, context: SyncContext) {
    this.stream = stream
    this.journal = journal
    this.#client = client
    this.#context = context
  }

  get filter(): TimeParameters | null {
    return findTimeParameters(this.stream)
  }

  get size(): PageSizeParameter | null {
    return findPageSize(this.stream)
  }

  /** Throws only if the budget is spent or the probe is cancelled. */
  read(question: PageQuestion = {}, next: NextPage | null = null): Promise<ProbePage> {
    const { since, until, size, query } = question
    const { filter, journal } = this
    const paging = resize(this.stream.page, size)
    const listing = this.#open(query)
    const fixed: Record<string, ParameterValue> = {}
    if (filter !== null && since !== undefined) fixed[filter.since] = since
    if (filter?.until != null && until !== undefined) fixed[filter.until] = until
    return this.#attempt(question, async () => {
      const selected = { ...listing, fixed }
      const page = await readOnce(selected, paging, next, this.#context)
      const rows = page.records.map((record) => this.#toRow(record))
      return {
        request: journal.last,
        rows,
        next: page.next ?? stepNext(paging, next, page, rows),
        total: page.total,
        asked: size ?? null,
        failure: null,
      }
    })
  }

  async lookUp(key: string): Promise<LookupAnswer> {
    const { path = '', record = '' } = this.stream.lookup ?? {}
    const request = { path, ...this.#requestParts() }
    const endpoint = createEndpoint(this.#client, {
      ...this.#endpointParts(),
      request,
      pagings: [],
      fixed: ['key', ...listPlaceholders({ ...request, path: '' })],
    })
    const { journal } = this
    try {
      const { response } = await requestAnswer(endpoint, { answers: LOOKUP_ANSWERS }, (options) =>
        endpoint.send({ key }, this.#context, options),
      )
      const found = response.status >= 400 ? undefined : getAtPath(response.body, record)
      const row = found === undefined || found === null ? null : this.#toRow(found)
      return { request: journal.last, key, status: response.status, row: row?.key === key ? row : null }
    } catch (error) {
      rethrowEnd(error, this.#context)
      return { request: journal.last, key, status: journal.entries.at(-1)?.status ?? null, row: null }
    }
  }

  async #attempt(question: PageQuestion, read: () => Promise<ProbePage>): Promise<ProbePage> {
    try {
      return await read()
    } catch (error) {
      rethrowEnd(error, this.#context)
      const failure = isSyncError(error)
        ? { code: error.code, status: this.journal.entries.at(-1)?.status ?? null, message: maskSecrets(error.message) }
        : { code: 'INTERNAL', status: null, message: String(error) }
      return { request: this.journal.last, rows: [], next: null, total: null, asked: question.size ?? null, failure }
    }
  }

  #open(query: PageQuestion['query']): ListEndpoint {
    const { stream } = this
    const request = query === undefined ? stream : { ...stream, query: { ...stream.query, ...query } }
    return createEndpoint(this.#client, {
      ...this.#endpointParts(),
      request,
      pagings: [stream.page, ...(stream.follow === undefined ? [] : [stream.follow])],
    })
  }

  #requestParts(): Partial<Pick<RestStream, 'query' | 'headers'>> {
    const { query, headers } = this.stream
    return { ...(query !== undefined && { query }), ...(headers !== undefined && { headers }) }
  }

  #endpointParts() {
    const { name, records = '', decode, errors = [] } = this.stream
    return {
      name,
      recordsPath: records,
      format: createFormat(decode),
      errors,
      mapping: this.stream,
      lagMs: 0,
      toChange: (record: JsonValue) => toChange(record, this.stream),
    }
  }

  #toRow(record: JsonValue): ProbeRow {
    const { key, updatedAt, deleted } = this.stream
    const time = updatedAt === undefined ? null : parseTime(getAtPath(record, updatedAt))
    const flags = readFlags(record)
    const declared = deleted === undefined ? {} : { [String(deleted)]: Boolean(getAtPath(record, deleted)) }
    return { key: buildKey(record, key), time, flags: { ...flags, ...declared } }
  }
}

/** Statuses with which APIs answer for a key that they do not have, or for a path. */
const LOOKUP_ANSWERS = [400, 403, 404, 405, 410, 422]

/** The end of the probe, not of one request. */
function rethrowEnd(error: unknown, { signal }: SyncContext): void {
  signal.throwIfAborted()
  if (isSyncError(error) && ['CANCELLED', 'AUTH_REJECTED', 'RATE_LIMITED', 'SYNC_INVALID'].includes(error.code))
    throw error
}

function resize(page: ListPaging, size: number | undefined): ListPaging {
  if (size === undefined || !('size' in page) || page.size === undefined) return page
  return { ...page, size: { ...page.size, value: size } } as ListPaging
}

interface ReadPage extends RecordsPage {
  readonly next: NextPage | null | undefined
  readonly total: number | null
}

async function readOnce(
  listing: ListEndpoint,
  page: ListPaging,
  next: NextPage | null,
  context: SyncContext,
): Promise<ReadPage> {
  switch (page.kind) {
    case 'none':
    case 'token':
    case 'link':
    case 'relay': {
      const token = next !== null && 'token' in next ? next.token : undefined
      const read = await readLinkedPage(listing, page, token, {}, context)
      return { ...read, next: read.next === undefined ? null : { token: read.next }, total: countOf(read) }
    }
    case 'export':
      throw new TypeError('A list that is exported by a job has no pages to probe.')
    default: {
      const parameters = next !== null && 'parameters' in next ? next.parameters : firstParameters(page)
      const read = await readPage(listing, { ...buildSizeQuery(page.size), ...parameters }, context)
      return {
        ...read,
        next: undefined,
        total: 'total' in page ? (readCount(read, page.total) ?? null) : countOf(read),
      }
    }
  }
}

type CountedPaging = Exclude<ListPaging, { readonly kind: 'none' | 'token' | 'link' | 'relay' | 'export' }>

function firstParameters(page: CountedPaging): Parameters {
  if (page.kind === 'pageNumber') return { [page.parameter]: page.first ?? 1 }
  return page.kind === 'offset' ? { [page.parameter]: 0 } : {}
}

/** The parameters of the page after this one, where they do not come from the response. */
function stepNext(
  page: ListPaging,
  current: NextPage | null,
  read: ReadPage,
  rows: readonly ProbeRow[],
): NextPage | null {
  if (read.next === null) return null
  const last = rows.at(-1)
  if (last === undefined) return null
  if ('more' in page && page.more !== undefined && page.kind !== 'token' && !readHasMore(read, page.more)) return null
  const parameters = current !== null && 'parameters' in current ? current.parameters : {}
  switch (page.kind) {
    case 'pageNumber': {
      const number = Number(parameters[page.parameter] ?? page.first ?? 1)
      const pages = readCount(read, page.pages)
      if (pages !== undefined && number - (page.first ?? 1) + 1 >= pages) return null
      return { parameters: { [page.parameter]: number + 1 } }
    }
    case 'offset': {
      const offset = Number(parameters[page.parameter] ?? 0) + rows.length
      return read.total !== null && offset >= read.total ? null : { parameters: { [page.parameter]: offset } }
    }
    case 'keyset':
      return last.time === null
        ? null
        : { parameters: { [page.after]: formatTimeLike(last.time.micros, last.time), [page.afterId]: last.key } }
    case 'timestamp':
      return last.time === null ? null : { parameters: { [page.since]: formatTimeLike(last.time.micros, last.time) } }
    default:
      return null
  }
}

const TOTALS = ['total', 'total_count', 'totalCount', 'totalSize', '@odata.count']

/** The count of all records beside the list, if there is one of a usual name. */
function countOf({ response }: RecordsPage): number | null {
  const found = TOTALS.map((name) => getAtPath(response.body, [name])).find((value) => typeof value === 'number')
  const header = response.headers.get('x-total-count')
  return typeof found === 'number' ? found : header === null || !/^\d+$/.test(header) ? null : Number(header)
}

const FLAG = /^(?:is|was)?_?(?:deleted|archived|trashed|removed)(?:_?(?:at|on|time|date))?$/i

/** Members of a record whose names say that it is deleted or archived. */
function readFlags(record: JsonValue): Record<string, boolean> {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return {}
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]) => (FLAG.test(name) ? [[name, isSet(value as JsonValue)]] : [])),
  )
}

function isSet(value: JsonValue): boolean {
  return value !== null && value !== false && value !== '' && value !== 0 && value !== 'false'
}
