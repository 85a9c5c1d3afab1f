import {
  SyncError,
  type Execute,
  type JsonValue,
  type Lookup,
  type SyncContext,
  type TimeRange,
} from '../../contract/index.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { requireNumber } from '../../strategies/kit/strategy-errors.ts'
import { streams } from '../../strategies/streams.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { connectionAuth, connectionBaseUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient, type HttpClient, type HttpClientOptions } from '../kit/http-client.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { reportIncomplete } from '../kit/incomplete-answers.ts'
import { limitRange, withSinceScope } from '../kit/since.ts'
import { getAtPath } from './field-path.ts'
import { createEndpoint, requestAnswer, type ListEndpoint } from './list-endpoint.ts'
import { createChangesReader, createListReader } from './read-stream.ts'
import { listPartitionParameters, planPartitions, readPartitions, type PartitionPlan } from './partitions.ts'
import { filterChanges, filterListing, matchesFilters } from './record-filter.ts'
import { toChange, toDelete } from './record-mapping.ts'
import { listPlaceholders } from './request-template.ts'
import { createFormat } from './response-format.ts'
import type { ChangesPaging, DeletesStream, EventPaging, PartitionRule, RestStream } from './stream.ts'
import { findUnknownField } from './stream-schema.ts'
import { createTimeFilter, type TimeFilter } from './time-filter.ts'

export { anonymous, apiKey, basic, bearer, type Auth } from '../kit/auth.ts'
export { clientCredentials, refreshToken } from '../kit/oauth.ts'
export { session, type SessionOptions } from '../kit/session-auth.ts'
export type { TokenStore } from '../kit/token-store.ts'
export type { HttpLimits, Query } from '../kit/http-client.ts'
export type { ResponseClassifier, ResponseClass } from '../kit/classify-response.ts'
export { Secret } from '../../redaction/secret.ts'
export type { FieldPath } from './field-path.ts'
export type { TimeFormat } from './record-mapping.ts'
export type {
  DeletesStream,
  EventPaging,
  ChangesPaging,
  ExportDownload,
  ExportPaging,
  ExportPoll,
  KeysetPaging,
  LinkPaging,
  ListPaging,
  ListPartitions,
  OffsetPaging,
  PageNumberPaging,
  PageSizeParameter,
  ParentPartitions,
  PartitionRule,
  RelayPaging,
  RestStream,
  TimestampPaging,
  TokenPaging,
  NoPaging,
  WindowPaging,
  WindowPartitions,
} from './stream.ts'
export type { ErrorRule, WaitRule } from './error-rules.ts'
export type { RecordFilter } from './record-filter.ts'
export type {
  FormBody,
  GraphqlQuery,
  JsonBody,
  ParameterValue,
  RequestBody,
  RequestTemplate,
  TextTemplate,
} from './request-template.ts'
export type { CsvRule, DecodeRule } from './response-format.ts'

/** The API and its streams. See `RestStream`. */
export interface RestOptions<Streams extends readonly RestStream[]> extends HttpClientOptions, ConnectionOption {
  readonly streams: Streams
}

/** A stream without a change feed, read completely in each cycle, for `worker.sync`. */
export interface ListedStream {
  readonly mode: 'replace'
  readonly execute: Execute<any>
  readonly lookup?: Lookup
  readonly lagMs?: number
}

/** A stream with a change feed, for `worker.track`. */
export interface TrackedStream {
  readonly backfill: Execute<any>
  readonly delta: Execute<any>
  readonly anchor: (context: SyncContext) => Promise<any>
  readonly lookup?: Lookup
  readonly lagMs: number
}

/** The streams of an API by name. A stream with `follow` goes to `worker.track`, others to `worker.sync`. */
export type RestSource<Streams extends readonly RestStream[]> = {
  readonly [Stream in Streams[number] as Stream['name']]: StreamSource<Stream>
}

type StreamSource<Stream extends RestStream> = Stream extends { readonly deletes: 'sweep' }
  ? ListedStream
  : Stream extends { readonly follow: object }
    ? TrackedStream
    : // Unknown at compile time if the stream is not a literal.
      'follow' extends keyof Stream
      ? ListedStream | TrackedStream
      : ListedStream

/**
 * Reads any HTTP API that is described declaratively. Choose by the features of the API:
 *
 *   event log                            follow: events; the backfill starts with its anchor
 *   filter by time                       follow: keyset (time and id), timestamp (time alone), or window (pages inside)
 *   neither                              no follow: every cycle reads the complete list and sweeps deleted records
 *   deletions are reported               in the record (`deleted`), in an event (`deletions`), or elsewhere (`deletes: { … }`)
 *   deletions matter, not reported       deletes: 'sweep': every cycle reads the complete list
 *   deletions do not matter              deletes: 'ignore'
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { bearer, rest } from 'tidemark/sources/rest'
 *
 * const worker = new Worker({ name: 'crm' })
 * const crm = rest({
 *   baseUrl: 'https://api.example.com/v1',
 *   auth: bearer('CRM_TOKEN'),
 *   streams: [
 *     { name: 'countries', path: '/countries', key: 'code', page: { kind: 'none' } },
 *     {
 *       name: 'contacts', path: '/contacts', records: 'data', key: 'id', updatedAt: 'updated_at', deleted: 'archived',
 *       page: { kind: 'token', parameter: 'after', next: 'paging.next' },
 *       follow: { kind: 'window', since: 'updated_since', page: { kind: 'token', parameter: 'after', next: 'paging.next' } },
 *     },
 *   ],
 * })
 * worker.sync('countries', { database: worker.database('countries'), ...crm.countries })
 * worker.track('contacts', { database: worker.database('contacts'), source: crm.contacts })
 * ```
 */
export function rest<const Streams extends readonly RestStream[]>(options: RestOptions<Streams>): RestSource<Streams> {
  const { streams, connection, ...http } = options
  if (connection !== undefined && http.auth !== undefined)
    throw new SyncError('SYNC_INVALID', 'Set either `auth` or `connection` of an API.')
  const client = createHttpClient(
    connection === undefined
      ? http
      : { ...http, auth: connectionAuth(), baseUrl: connectionBaseUrl(connection, http.baseUrl) },
  )
  const names = streams.map(({ name }) => name)
  const duplicate = names.find((name, index) => names.indexOf(name) !== index)
  if (duplicate !== undefined)
    throw new SyncError('NAME_TAKEN', `Two streams are named "${duplicate}". Rename one of them.`)
  const created = Object.fromEntries(streams.map((stream) => [stream.name, createStream(stream, { client, streams })]))
  return withConnection(connection, created) as RestSource<Streams>
}

interface Api {
  readonly client: HttpClient
  readonly streams: readonly RestStream[]
}

const DEFAULT_LAG_MS = 30_000

function createStream(stream: RestStream, api: Api): ListedStream | TrackedStream {
  checkStream(stream)
  const { client } = api
  const { name, lagMs = DEFAULT_LAG_MS, page, follow, deletes } = stream
  const filter = createTimeFilter(stream)
  const start = filter?.start
  const endpoint = createStreamEndpoint(stream, client)
  const listing = selectTimes(endpoint, filter, start === undefined ? {} : { from: start })
  const plan = createPlan(stream, api)
  const createList = (selected: ListEndpoint): Execute<any> =>
    finishListing(
      readAll(stream, selected, plan, (part) => createListReader(part, page)),
      stream,
      lagMs,
    )
  const list = Object.assign(
    withSinceScope(createList(listing), start),
    filter === undefined
      ? { rangeUnsupported: 'the stream has no filter by time: `follow` by window or timestamp, or timestamp paging' }
      : { range: (range: TimeRange) => createList(selectTimes(endpoint, filter, limitRange(range, start))) },
  )
  const lookup = stream.lookup === undefined ? {} : { lookup: createLookup(stream, stream.lookup, client) }
  // A stream that only reads the list has no lag unless it is configured.
  if (follow === undefined || deletes === 'sweep')
    return { mode: 'replace', execute: list, ...lookup, ...(stream.lagMs !== undefined && { lagMs }) }
  const reportsDeletions = stream.deleted !== undefined || (follow.kind === 'events' && follow.deletions !== undefined)
  if (deletes === undefined && !reportsDeletions) {
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${name}" does not say how deletions are reported. Set \`deleted\` or \`deletes: { … }\`, or \`deletes: 'sweep'\` to read the complete list in every cycle, or \`deletes: 'ignore'\`.`,
    )
  }
  const backfill = Object.assign(list, { lagMs, ...lookup })
  const readChanges = (part: ListEndpoint): AnchoredExecute<any> => createChangesReader(part, follow, start)
  const changes =
    plan?.isFollowed === true
      ? withoutAnchor(readAll(stream, listing, plan, readChanges, globalStateOf(follow)))
      : readChanges(follow.kind === 'events' ? createFeedEndpoint(stream, follow, client) : listing)
  const delta = reportIncomplete(limitRetention(filterChanges(changes, stream.filter), stream.retentionMs, lagMs))
  if (deletes === undefined || deletes === 'ignore') return { backfill, delta, anchor: delta.anchor, lagMs, ...lookup }

  const deleted = limitRetention(
    createChangesReader(createDeletesEndpoint(stream, deletes, client), deletes.follow),
    deletes.retentionMs,
    lagMs,
  )
  const both = reportIncomplete(streams({ changes: delta, deletes: deleted }))
  return { ...lookup, lagMs, backfill, delta: both, anchor: both.anchor }
}

function selectTimes(endpoint: ListEndpoint, filter: TimeFilter | undefined, range: TimeRange): ListEndpoint {
  return filter === undefined ? endpoint : { ...endpoint, fixed: { ...endpoint.fixed, ...filter.select(range) } }
}

function createPlan(stream: RestStream, { client, streams }: Api): PartitionPlan | undefined {
  const { name, partitions: rule, follow, time } = stream
  if (rule === undefined) return undefined
  const plan = planPartitions({
    stream: name,
    rule,
    time,
    placeholders: listPlaceholders(stream),
    included: Object.values(includeOf(rule)),
    readParent: (parent) => createParentReader(findParent(stream, parent, streams), client),
  })
  if (plan.isFollowed && follow?.kind === 'events')
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${name}": an event log has no partitions. Follow each partition by time, or leave out \`partitions\`.`,
    )
  return plan
}

function findParent({ name }: RestStream, parent: string, streams: readonly RestStream[]): RestStream {
  const found = streams.find((stream) => stream.name === parent)
  if (found === undefined || found.name === name) {
    const others = streams.map((stream) => stream.name).filter((other) => other !== name)
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${name}" has an unknown parent "${parent}".${didYouMean(parent, others) || ` The other streams are ${others.join(', ')}.`}`,
    )
  }
  if (found.partitions !== undefined)
    throw new SyncError('SYNC_INVALID', `Stream "${name}": its parent "${parent}" has partitions itself.`)
  return found
}

/** The complete list of the parents; those that the source marks as deleted have no children. */
function createParentReader(parent: RestStream, client: HttpClient): Execute<any> {
  checkStream(parent)
  return filterListing(createListReader(createStreamEndpoint(parent, client), parent.page), parent.filter)
}

function readAll(
  { lagMs = DEFAULT_LAG_MS, partitions: rule }: RestStream,
  listing: ListEndpoint,
  plan: PartitionPlan | undefined,
  createReader: (listing: ListEndpoint) => Execute<any>,
  globalState?: (since: string) => JsonValue,
): Execute<any> {
  if (plan === undefined || rule === undefined) return createReader(listing)
  return readPartitions({ plan, listing, lagMs, include: includeOf(rule), createReader, globalState })
}

function includeOf(rule: PartitionRule): Readonly<Record<string, string>> {
  return 'include' in rule ? (rule.include ?? {}) : {}
}

/** The state with which changes are read from a time on. */
function globalStateOf(follow: ChangesPaging): ((since: string) => JsonValue) | undefined {
  if (follow.kind === 'window') return (since) => ({ since })
  return follow.kind === 'timestamp' ? (cursor) => ({ cursor }) : undefined
}

/** A partition without a state is read from its beginning, so no change is missed without an anchor. */
function withoutAnchor(execute: Execute<any>): AnchoredExecute<any> {
  return Object.assign(execute, { anchor: () => Promise.resolve(undefined) })
}

function finishListing(reader: Execute<any>, stream: RestStream, lagMs: number): Execute<any> {
  return reportIncomplete(withLaggedTidemark(filterListing(reader, stream.filter), lagMs))
}

function createStreamEndpoint(stream: RestStream, client: HttpClient): ListEndpoint {
  const { name, page, follow, records = '', errors = [], lagMs = DEFAULT_LAG_MS } = stream
  if (page.kind === 'export' && follow !== undefined && follow.kind !== 'events')
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${name}": its request creates an export job, so it cannot be followed by ${follow.kind}. Declare a second stream without \`export\`, or follow events.`,
    )
  return createEndpoint(client, {
    name,
    request: stream,
    pagings: follow === undefined || follow.kind === 'events' ? [page] : [page, follow],
    recordsPath: records,
    format: createFormat(stream.decode),
    errors,
    mapping: stream,
    lagMs,
    toChange: (record) => toChange(record, stream),
    fixed: listPartitionParameters(stream.partitions, listPlaceholders(stream)),
  })
}

/** A change may become visible up to `lagMs` late, so the usable retention is shorter by `lagMs`. */
function limitRetention(
  changes: AnchoredExecute<any>,
  retentionMs: number | undefined,
  lagMs: number,
): AnchoredExecute<any> {
  if (retentionMs === undefined) return changes
  requireNumber('rest', 'retentionMs', retentionMs, 1)
  return Object.assign(changes, {
    retentionMs: Math.min(changes.retentionMs ?? Infinity, Math.max(1, retentionMs - lagMs)),
  })
}

function createLookup(
  stream: RestStream,
  { path, record = '' }: NonNullable<RestStream['lookup']>,
  client: HttpClient,
): Lookup {
  const { name, query, headers, page, follow, filter, errors = [] } = stream
  // Placeholders of the list have no value here, so that the parameters with them are left out.
  const request = { path, ...omitUndefined({ query, headers }) }
  const pagings = [page, ...(follow === undefined ? [] : [follow])]
  const endpoint = createEndpoint(client, {
    name,
    request,
    pagings,
    errors,
    recordsPath: '',
    lagMs: 0,
    mapping: stream,
    fixed: ['key', ...listPlaceholders({ path: '', ...omitUndefined({ query, headers }) })],
    format: createFormat(stream.decode),
    toChange: (found) => toChange(found, stream),
  })
  return async (key, context) => {
    const { response, isIgnored } = await requestAnswer(endpoint, { answers: [404, 410] }, (options) =>
      endpoint.send({ key }, context, options),
    )
    const found = isIgnored || response.status >= 400 ? undefined : getAtPath(response.body, record)
    if (found === undefined || found === null || !matchesFilters(found, filter ?? [])) return null
    const change = toChange(found, stream)
    return change.key === key ? change : null
  }
}

/** Validates streams that no compiler has checked. */
function checkStream(stream: Partial<RestStream>): void {
  const missing = (['name', 'path', 'key', 'page'] as const).find((name) => stream?.[name] === undefined)
  if (missing !== undefined)
    throw new SyncError('SYNC_INVALID', `Stream "${stream?.name ?? ''}" has no \`${missing}\`.`)
  const unknown = findUnknownField(stream)
  if (unknown !== null)
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${stream.name ?? ''}" has an unknown field \`${unknown.field}\`. Known fields: ${unknown.known.join(', ')}.`,
    )
}

function createFeedEndpoint(stream: RestStream, follow: EventPaging, client: HttpClient): ListEndpoint {
  return createEndpoint(client, {
    name: stream.name,
    request: { path: follow.path, query: follow.query ?? {} },
    pagings: [follow],
    recordsPath: follow.records ?? '',
    format: undefined,
    errors: stream.errors ?? [],
    mapping: stream,
    lagMs: stream.lagMs ?? DEFAULT_LAG_MS,
    toChange: (record) => toChange(record, stream),
  })
}

function createDeletesEndpoint(stream: RestStream, deletes: DeletesStream, client: HttpClient): ListEndpoint {
  return createEndpoint(client, {
    name: stream.name,
    request: deletes,
    pagings: [deletes.follow],
    recordsPath: deletes.records ?? '',
    format: createFormat(stream.decode),
    errors: stream.errors ?? [],
    mapping: deletes,
    lagMs: stream.lagMs ?? DEFAULT_LAG_MS,
    toChange: (record) => toDelete(record, deletes),
  })
}
