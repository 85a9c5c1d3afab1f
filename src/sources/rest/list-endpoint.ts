import { SyncError, type Change, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { classifyGraphqlResponse, isObject } from '../kit/classify-response.ts'
import type { HttpClient, HttpResponse, RequestOptions, ResponseFormat } from '../kit/http-client.ts'
import { GONE_STATUSES, markIncomplete } from '../kit/incomplete-answers.ts'
import { classifyByRules, isIgnored, type ErrorRule } from './error-rules.ts'
import { getAtPath, type FieldPath } from './field-path.ts'
import type { RecordMapping } from './record-mapping.ts'
import { createRequester, type Parameters, type RequestTemplate } from './request-template.ts'
import type { ChangesPaging, ListPaging, PageSizeParameter } from './stream.ts'

/** A list endpoint and the mapping of its records. */
export interface ListEndpoint {
  readonly client: HttpClient
  readonly name: string
  /** Sends the request with these parameters. */
  readonly send: (parameters: Parameters, context: SyncContext, options: RequestOptions) => Promise<HttpResponse>
  /** Parameters of every request, such as the fields of a partition. */
  readonly fixed: Parameters
  readonly recordsPath: FieldPath
  readonly format: ResponseFormat | undefined
  readonly errors: readonly ErrorRule[]
  readonly isGraphql: boolean
  readonly mapping: RecordMapping
  readonly lagMs: number
  toChange(record: JsonValue): Change
}

/** Creates the endpoint of a request. Checks its placeholders against the parameters of `pagings` and `fixed`. */
export function createEndpoint(
  client: HttpClient,
  { name, request, pagings, fixed = [], ...endpoint }: EndpointOptions,
): ListEndpoint {
  const known = [...fixed, ...pagings.flatMap(listParameters)]
  return {
    ...endpoint,
    client,
    name,
    send: createRequester(client, name, request, known),
    fixed: {},
    isGraphql: request.graphql !== undefined,
  }
}

export interface EndpointOptions extends Pick<
  ListEndpoint,
  'name' | 'recordsPath' | 'format' | 'errors' | 'mapping' | 'lagMs' | 'toChange'
> {
  readonly request: RequestTemplate
  readonly pagings: readonly (ListPaging | ChangesPaging)[]
  /** Names of the parameters that every request has. */
  readonly fixed?: readonly string[]
}

/** The names of the parameters that a paging sets. */
function listParameters(page: ListPaging | ChangesPaging): string[] {
  const names = Object.values(page).flatMap((value: unknown) =>
    typeof value === 'object' && value !== null && 'parameter' in value ? [(value as PageSizeParameter).parameter] : [],
  )
  switch (page.kind) {
    case 'none':
    case 'link':
    case 'export':
      return names
    case 'relay':
      return [...names, page.parameter ?? RELAY_PARAMETER]
    case 'token':
    case 'pageNumber':
    case 'offset':
      return [...names, page.parameter]
    case 'keyset':
      return [...names, page.after, page.afterId, ...[page.until ?? []].flat()]
    case 'timestamp':
      return [...names, page.since, ...[page.until ?? []].flat()]
    case 'window':
      return [...names, page.since, ...[page.until ?? []].flat(), ...listParameters(page.page)]
    case 'events':
      return [...names, page.after]
    default:
      page satisfies never
      return names
  }
}

/** The variable of the cursor in GraphQL. */
export const RELAY_PARAMETER = 'after'

export interface RecordsPage {
  readonly response: HttpResponse
  readonly records: readonly JsonValue[]
  /** A rule says that this answer has no records. */
  readonly isIgnored: boolean
}

/** Sends a request and applies the rules of the stream to its answer. */
export async function requestRecords(
  listing: ListEndpoint,
  context: SyncContext,
  options: RequestOptions,
  send: (options: RequestOptions) => Promise<HttpResponse>,
  isConnection = false,
): Promise<RecordsPage> {
  const answer = await requestAnswer(listing, options, send)
  if (answer.isIgnored && !GONE_STATUSES.includes(answer.response.status)) markIncomplete(context)
  return { ...answer, records: answer.isIgnored ? [] : extractRecords(answer.response, listing, isConnection) }
}

export async function requestAnswer(
  { errors, format, isGraphql }: Pick<ListEndpoint, 'errors' | 'format' | 'isGraphql'>,
  options: RequestOptions,
  send: (options: RequestOptions) => Promise<HttpResponse>,
): Promise<Omit<RecordsPage, 'records'>> {
  let ignored = false
  const response = await send({
    ...options,
    ...(format !== undefined && { format }),
    ...(errors.length > 0 && {
      // A refused cursor is never the end of a list.
      accepts: (facts) =>
        (ignored = options.cursorRefusals?.includes(facts.status) !== true && isIgnored(errors, facts)),
    }),
    ...((errors.length > 0 || isGraphql) && {
      classifyResponse: (facts) =>
        ignored ? null : (classifyByRules(errors, facts) ?? (isGraphql ? classifyGraphqlResponse(facts) : null)),
    }),
  })
  return { response, isIgnored: ignored }
}

/** A response without the list is an error, not an empty list: a sweep would delete every row. */
function extractRecords(
  { body }: HttpResponse,
  { recordsPath: records, name }: ListEndpoint,
  isConnection: boolean,
): readonly JsonValue[] {
  const found = getAtPath(body, records)
  const list = isConnection ? extractNodes(found) : found
  if (!Array.isArray(list))
    throw new SyncError(
      'SOURCE_INVALID',
      `Stream "${name}": the response has no ${isConnection ? 'connection' : 'list'} ${records.length === 0 ? 'of records' : `at \`${String(records)}\``}.`,
    )
  return list
}

function extractNodes(connection: JsonValue | undefined): JsonValue | undefined {
  if (!isObject(connection)) return undefined
  const { nodes, edges } = connection
  return nodes ?? (Array.isArray(edges) ? edges.map((edge) => getAtPath(edge, 'node') ?? null) : undefined)
}
