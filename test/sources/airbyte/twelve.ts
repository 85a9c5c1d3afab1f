/** A row of one of the APIs. */
export interface Row {
  readonly id: string
  /** ISO, whole seconds. */
  at: string
  readonly parent?: string
}

export interface ApiRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface ApiAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: unknown
}

const DAY_MS = 86_400_000
const PARENTS = ['p1', 'p2', 'p3']

/** The streams of the manifest, each with the component shapes of one public connector. */
export const STREAMS = [
  'cells',
  'replays',
  'calls',
  'transcripts',
  'assets',
  'bounces',
  'spend',
  'transactions',
  'devices',
  'tickets',
  'points',
  'commissions',
  'guests',
] as const
export type StreamName = (typeof STREAMS)[number]

/** Streams that are read by a cursor; the others are listed. */
export const FOLLOWED: readonly StreamName[] = [
  'replays',
  'calls',
  'assets',
  'bounces',
  'spend',
  'transactions',
  'tickets',
  'points',
  'commissions',
]

/** Twelve APIs that behave as the public connectors of these shapes expect, over rows in memory. */
export class TwelveApis {
  readonly base: string
  readonly rows = new Map<StreamName, Row[]>()
  readonly asked: ApiRequest[] = []
  #login = 0

  constructor(base: string, nowMs: number, count = 7) {
    this.base = base
    for (const name of STREAMS)
      this.rows.set(
        name,
        Array.from({ length: count }, (_, n) => ({
          id: `${name}-${n}`,
          at: toSeconds(nowMs - (count - n) * 3 * DAY_MS),
          parent: PARENTS[n % PARENTS.length] ?? '',
        })),
      )
  }

  add(name: StreamName, id: string, nowMs: number): void {
    this.rows.get(name)?.push({ id, at: toSeconds(nowMs), parent: 'p1' })
  }

  handle(request: ApiRequest): ApiAnswer {
    this.asked.push(request)
    return this.#answer(request)
  }

  #answer({ method, path, query, headers, body }: ApiRequest): ApiAnswer {
    const select = (name: StreamName, test: (row: Row) => boolean = () => true): Row[] =>
      (this.rows.get(name) ?? []).filter(test)
    const within =
      (from: string, to: string) =>
      (row: Row): boolean =>
        row.at >= from && row.at <= to
    const number = (name: string): number => Number(query.get(name) ?? 0)
    const link = (to: string | null): Record<string, string> =>
      to === null ? {} : { link: `<${this.base}${to}>; rel="next"` }
    const token = headers['authorization'] ?? ''
    if (path === '/parents') return { body: { data: PARENTS.map((id) => ({ id, name: `name of ${id}` })) } }
    switch (path.split('/')[1]) {
      // An offset in the body of the response, records that are nested and flattened, two ways to authenticate.
      case 'cells': {
        if (token !== 'Bearer key') return { status: 401, body: {} }
        const rows = select('cells', ({ parent }) => parent === path.split('/')[2])
        const at = number('offset')
        const records = rows.slice(at, at + 2).map(({ id }) => ({ id, Fields: { 'Full Name': id } }))
        return { body: { records, ...(at + 2 < rows.length && { offset: String(at + 2) }) } }
      }
      // A session token in the query; offsets from the first request on; a window in the query.
      case 'session':
        return token === 'Bearer key' ? { body: { token: `s${++this.#login}` } } : { status: 401, body: {} }
      case 'replays': {
        if (query.get('token') !== `s${this.#login}` || !query.has('offset')) return { status: 401, body: {} }
        const rows = select('replays', within(toIso(query.get('start')), toIso(query.get('end'))))
        return { body: { rows: rows.slice(number('offset'), number('offset') + number('limit')) } }
      }
      // 404 if a window has no records; the cursor of the next page inside the records.
      case 'calls': {
        if (!token.startsWith('Basic ')) return { status: 401, body: {} }
        const rows = select('calls', within(query.get('from') ?? '', query.get('to') ?? ''))
        if (rows.length === 0) return { status: 404, body: { errors: ['no calls'] } }
        const at = number('cursor')
        return {
          body: {
            calls: rows.slice(at, at + 2),
            records: { cursor: at + 2 < rows.length ? String(at + 2) : undefined },
          },
        }
      }
      // Groups of ids in a body.
      case 'transcripts': {
        const { ids } = JSON.parse(body) as { ids: string[] }
        return { body: { data: select('transcripts', ({ parent }) => ids.includes(parent ?? '')) } }
      }
      // Page numbers, until the number of pages is exceeded; a key in a header.
      case 'assets': {
        if (headers['token'] !== 'key') return { status: 401, body: {} }
        const rows = select('assets', ({ at }) => at >= (query.get('since') ?? ''))
        return { body: { assets: rows.slice((number('page') - 1) * 2, number('page') * 2) } }
      }
      // Offsets and times as seconds since 1970.
      case 'bounces': {
        const [from, to] = [number('start_time'), number('end_time')]
        const rows = select('bounces', ({ at }) => Date.parse(at) / 1_000 >= from && Date.parse(at) / 1_000 <= to)
        return {
          body: rows
            .slice(number('offset'), number('offset') + 2)
            .map(({ id, at }) => ({ id, created: Date.parse(at) / 1_000 })),
        }
      }
      // Client credentials; a report by days, without pages.
      case 'token':
        return { body: { access_token: `t${++this.#login}`, expires_in: 3_600 } }
      case 'spend': {
        if (method !== 'POST' || token !== `Bearer t${this.#login}`) return { status: 401, body: {} }
        const { startDate, endDate } = JSON.parse(body) as { startDate: string; endDate: string }
        const rows = select('spend', ({ at }) => at.slice(0, 10) >= startDate && at.slice(0, 10) <= endDate)
        return { body: { Rows: rows.map(({ id, at }) => ({ CampaignId: id, Day: at.slice(0, 10) })) } }
      }
      // A login with a form and basic credentials; the address of the next page in the body; a list of partitions.
      case 'login':
        return token.startsWith('Basic ') && body === 'grant_type=client_credentials'
          ? { body: { access_token: `l${++this.#login}` } }
          : { status: 401, body: {} }
      case 'transactions': {
        if (token !== `Bearer l${this.#login}`) return { status: 401, body: {} }
        const rows = select(
          'transactions',
          ({ at, parent }) => at >= (query.get('from') ?? '') && parent === query.get('entity'),
        )
        const at = number('at')
        const next = new URLSearchParams([...query].filter(([name]) => name !== 'at'))
        next.set('at', String(at + 2))
        const records = rows.slice(at, at + 2).map(({ id, at: time }) => ({ id, syncedAt: time }))
        return {
          body: {
            data: records,
            page: { next: at + 2 < rows.length ? `${this.base}/transactions?${next.toString()}` : null },
          },
        }
      }
      // Two levels of parents, and links in a header.
      case 'networks': {
        const start = query.get('after') ?? ''
        const ids = ['n1', 'n2'].map((id) => `${path.split('/')[2]}-${id}`).filter((id) => id > start)
        return {
          body: ids.slice(0, 1).map((id) => ({ id })),
          headers: link(ids.length > 1 ? `${path}?after=${ids[0]}` : null),
        }
      }
      case 'devices': {
        const [parent, network] = (path.split('/')[2] ?? '').split('-')
        const rows = select('devices').filter((row, n) => row.parent === parent && (n % 2 === 0) === (network === 'n1'))
        return { body: rows.map(({ id }) => ({ id })) }
      }
      // Links, and a limit of two pages, after which a search starts again from the newest record.
      case 'tickets': {
        if (token !== `Basic ${btoa('key:X')}`) return { status: 401, body: {} }
        const page = query.has('page') ? number('page') : 1
        if (page > 2) return { status: 400, body: { errors: [{ message: 'page limit' }] } }
        const rows = select('tickets', ({ at }) => at >= (query.get('since') ?? ''))
        const since = encodeURIComponent(query.get('since') ?? '')
        return {
          body: rows.slice((page - 1) * 2, page * 2),
          headers: link(page * 2 < rows.length ? `/tickets?since=${since}&page=${page + 1}` : null),
        }
      }
      // A body of text with a window in milliseconds; the response is the list.
      case 'points': {
        const [from = 0, to = 0] = [...body.matchAll(/"value":\s*(\d+)/g)].map(([, value]) => Number(value))
        const rows = select('points', ({ at }) => Date.parse(at) >= from && Date.parse(at) <= to)
        return {
          body: rows
            .slice(number('offset'), number('offset') + 2)
            .map(({ id, at }) => ({ id, timestamp: Date.parse(at) })),
        }
      }
      // GraphQL: the last id continues a result that is not complete.
      case 'graphql': {
        const { query: text } = JSON.parse(body) as { query: string }
        const read = (name: string): string => new RegExp(`${name}: "([^"]*)"`).exec(text)?.[1] ?? ''
        const rows = select('commissions', within(read('since'), read('before'))).filter(
          ({ id }) => id > read('afterId'),
        )
        const shown = rows.slice(0, 2)
        const commissions = { payloadComplete: rows.length <= 2, maxId: shown.at(-1)?.id ?? null, records: shown }
        return { body: { data: { commissions } } }
      }
      // A cursor in the response; children of parents.
      case 'guests': {
        if (headers['x-api-key'] !== 'key') return { status: 401, body: {} }
        const rows = select('guests', ({ parent }) => parent === query.get('event_id'))
        const at = number('pagination_cursor')
        const entries = rows.slice(at, at + 2).map(({ id }) => ({ guest: { id }, internal: 1 }))
        return {
          body: { entries, has_more: at + 2 < rows.length, next_cursor: at + 2 < rows.length ? String(at + 2) : null },
        }
      }
      default:
        return { status: 404, body: { message: 'not found' } }
    }
  }
}

function toSeconds(ms: number): string {
  return new Date(Math.floor(ms / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}

/** `2026-01-31 12:00:00` as the rows have it. */
function toIso(text: string | null): string {
  return `${(text ?? '').replace(' ', 'T')}Z`
}

const cursor = (field: string, more: string): string => `    incremental_sync:
      type: DatetimeBasedCursor
      cursor_field: ${field}
      start_datetime: { type: MinMaxDatetime, datetime: "{{ config['start_date'] }}", datetime_format: '%Y-%m-%dT%H:%M:%SZ' }
${more}`
const SECONDS = `      datetime_format: '%Y-%m-%dT%H:%M:%SZ'\n      cursor_granularity: PT1S\n`
const parentsOf = (field: string, stream = "'#/streams/0'"): string =>
  `{ type: SubstreamPartitionRouter, parent_stream_configs: [{ stream: ${stream}, parent_key: id, partition_field: ${field} }] }`
const inQuery = (name: string): string => `{ type: RequestOption, inject_into: request_parameter, field_name: ${name} }`
const records = (path: string): string =>
  `{ type: RecordSelector, extractor: { type: DpathExtractor, field_path: [${path}] } }`

/** A manifest of our own with the component shapes of twelve public connectors. */
export function manifestOfTwelve(base: string): string {
  const stream = (name: string, key: string, retriever: string, more = ''): string => `
  - type: DeclarativeStream
    name: ${name}
    primary_key: ${key}
    retriever:
      type: SimpleRetriever
${retriever}
${more}`
  return `version: 6.0.0
type: DeclarativeSource
check: { type: CheckStream, stream_names: [parents] }
streams:
${stream(
  'parents',
  'id',
  `      requester: { type: HttpRequester, url_base: ${base}, path: /parents }
      record_selector: ${records('data')}`,
)}
${stream(
  'cells',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: "cells/{{ stream_partition['table'] }}"
        authenticator:
          type: SelectiveAuthenticator
          authenticator_selection_path: [credentials, kind]
          authenticators:
            token: { type: BearerAuthenticator, api_token: "{{ config['credentials']['key'] }}" }
            none: { type: NoAuth }
      record_selector: ${records('records')}
      paginator:
        type: DefaultPaginator
        page_token_option: ${inQuery('offset')}
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ response.get('offset', '') }}", stop_condition: "{{ not response.get('offset') }}" }
      partition_router: ${parentsOf('table')}`,
  `    transformations:
      - { type: KeysToLower }
      - { type: DpathFlattenFields, field_path: [fields], delete_origin_value: true }
      - { type: KeysReplace, old: ' ', new: _ }`,
)}
${stream(
  'replays',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /replays
        authenticator:
          type: SessionTokenAuthenticator
          session_token_path: [token]
          expiration_duration: PT10M
          login_requester: { type: HttpRequester, url_base: ${base}, path: /session, http_method: POST, request_headers: { Authorization: "Bearer {{ config['api_key'] }}" } }
          request_authentication: { type: ApiKey, inject_into: ${inQuery('token')} }
        request_parameters:
          start: "{{ stream_interval.start_time if stream_interval else (now_utc() - duration('P18M')).strftime('%Y-%m-%d %H:%M:%S') }}"
          end: "{{ stream_interval['end_time'] }}"
      record_selector: ${records('rows')}
      paginator:
        type: DefaultPaginator
        page_token_option: ${inQuery('offset')}
        page_size_option: ${inQuery('limit')}
        pagination_strategy: { type: OffsetIncrement, page_size: 2, inject_on_first_request: true }`,
  cursor(
    'at',
    `      datetime_format: '%Y-%m-%d %H:%M:%S'\n      cursor_datetime_formats: ['%Y-%m-%dT%H:%M:%SZ']\n      cursor_granularity: PT1S\n      step: P10D`,
  ),
)}
${stream(
  'calls',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /calls
        authenticator: { type: BasicHttpAuthenticator, username: "{{ config['api_key'] }}", password: secret }
        error_handler:
          type: CompositeErrorHandler
          error_handlers:
            - { type: DefaultErrorHandler, backoff_strategies: [{ type: WaitTimeFromHeader, header: Retry-After }], response_filters: [{ type: HttpResponseFilter, http_codes: [429], action: RATE_LIMITED }] }
            - { type: DefaultErrorHandler, response_filters: [{ type: HttpResponseFilter, predicate: "{{ 'no calls' in response.get('errors', []) }}", action: SUCCESS }] }
      record_selector: ${records('calls')}
      paginator:
        type: DefaultPaginator
        page_token_option: ${inQuery('cursor')}
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ response.get('records', {}).get('cursor', '') }}", stop_condition: "{{ 'cursor' not in response.get('records', {}) }}" }`,
  cursor(
    'at',
    `${SECONDS}      step: P10D\n      start_time_option: ${inQuery('from')}\n      end_time_option: ${inQuery('to')}`,
  ),
)}
${stream(
  'transcripts',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /transcripts
        http_method: POST
        request_body_json: { ids: "{{ stream_partition['ids'] }}" }
      record_selector: ${records('data')}
      partition_router: { type: GroupingPartitionRouter, group_size: 2, underlying_partition_router: ${parentsOf('ids')} }`,
)}
${stream(
  'assets',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: assets.api
        authenticator: { type: ApiKeyAuthenticator, api_token: "{{ config['api_key'] }}", inject_into: { type: RequestOption, inject_into: header, field_name: token } }
        error_handler:
          type: CompositeErrorHandler
          error_handlers:
            - { type: DefaultErrorHandler, backoff_strategies: [{ type: WaitUntilTimeFromHeader, header: RateLimit-Reset }], response_filters: [{ type: HttpResponseFilter, http_codes: [429], action: RATE_LIMITED }] }
      record_selector: ${records('assets')}
      paginator:
        type: DefaultPaginator
        page_token_option: ${inQuery('page')}
        pagination_strategy: { type: PageIncrement, start_from_page: 1, page_size: 2, inject_on_first_request: true }`,
  cursor('at', `${SECONDS}      start_time_option: ${inQuery('since')}`),
).replace('assets.api', '/assets')}
${stream(
  'bounces',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /bounces
        authenticator: { type: BearerAuthenticator, api_token: "{{ config['api_key'] }}" }
      record_selector: ${records('')}
      paginator:
        type: DefaultPaginator
        page_token_option: ${inQuery('offset')}
        pagination_strategy: { type: OffsetIncrement, page_size: 2 }`,
  cursor(
    'created',
    `      datetime_format: '%s'\n      cursor_granularity: PT1S\n      step: P30D\n      start_time_option: ${inQuery('start_time')}\n      end_time_option: ${inQuery('end_time')}`,
  ),
)}
${stream(
  'spend',
  '[CampaignId, Day]',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /spend
        http_method: POST
        authenticator: { type: OAuthAuthenticator, grant_type: client_credentials, token_refresh_endpoint: ${base}/token, client_id: "{{ config['api_key'] }}", client_secret: "{{ config['api_key'] }}" }
        request_body: { type: RequestBodyJsonObject, value: { startDate: "{{ stream_interval.start_time }}", endDate: "{{ stream_interval.end_time }}", metrics: [Cost] } }
      record_selector: ${records('Rows')}`,
  `    incremental_sync:
      type: DatetimeBasedCursor
      cursor_field: Day
      datetime_format: '%Y-%m-%d'
      lookback_window: P3D
      start_datetime: "{{ config['start_date'][:10] }}"
      end_datetime: "{{ now_utc().strftime('%Y-%m-%d') }}"`,
)}
${stream(
  'transactions',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /transactions
        authenticator:
          type: SessionTokenAuthenticator
          session_token_path: [access_token]
          login_requester:
            type: HttpRequester
            url_base: ${base}
            path: /login
            http_method: POST
            authenticator: { type: BasicHttpAuthenticator, username: "{{ config['api_key'] }}", password: secret }
            request_body: { type: RequestBodyUrlEncodedForm, value: { grant_type: client_credentials } }
          request_authentication: { type: Bearer }
      record_selector: ${records('data')}
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestPath }
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ response['page']['next'] }}", stop_condition: "{{ not response['page']['next'] }}" }
      partition_router: { type: ListPartitionRouter, cursor_field: entity, values: [p1, p2, p3], request_option: ${inQuery('entity')} }`,
  `${cursor('synced_at', `${SECONDS}      start_time_option: ${inQuery('from')}`)}
    transformations: [{ type: KeysToSnakeCase }]`,
)}
${stream(
  'networks',
  'id',
  `      requester: { type: HttpRequester, url_base: ${base}, path: "networks/{{ stream_partition.org }}" }
      record_selector: ${records('')}
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestPath }
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ headers['link']['next']['url'] }}", stop_condition: "{{ 'next' not in headers['link'] }}" }
      partition_router: ${parentsOf('org')}`,
)}
${stream(
  'devices',
  'id',
  `      requester: { type: HttpRequester, url_base: ${base}, path: "devices/{{ stream_partition.network }}" }
      record_selector: ${records('')}
      partition_router: ${parentsOf('network', "'#/streams/9'")}`,
)}
${stream(
  'tickets',
  'id',
  `      pagination_reset: { type: PaginationReset, action: SPLIT_USING_CURSOR }
      requester:
        type: HttpRequester
        url_base: ${base}
        path: /tickets
        authenticator: { type: BasicHttpAuthenticator, username: "{{ config['api_key'] }}", password: X }
        error_handler:
          type: DefaultErrorHandler
          backoff_strategies: [{ type: WaitTimeFromHeader, header: Retry-After }]
          response_filters: [{ type: HttpResponseFilter, http_codes: [400], error_message_contains: page limit, action: RESET_PAGINATION }]
      record_selector: ${records('')}
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestPath }
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ headers['link']['next']['url'] }}", stop_condition: "{{ 'next' not in headers['link'] }}" }`,
  cursor('at', `${SECONDS}      start_time_option: ${inQuery('since')}`),
)}
${stream(
  'points',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /points
        http_method: POST
        authenticator: { type: BearerAuthenticator, api_token: "{{ config['api_key'] }}" }
        request_body_data: '[{"clause": [{"value": {{ stream_slice["start_time"] | int * 1000 }} }, {"value": {{ stream_slice["end_time"] | int * 1000 + 999 }} }]}]/'
        request_headers: { Content-Type: application/json }
      record_selector: ${records('')}
      paginator:
        type: DefaultPaginator
        page_token_option: ${inQuery('offset')}
        pagination_strategy: { type: OffsetIncrement, page_size: 2 }`,
  `${cursor('seconds', `      datetime_format: '%s'\n      cursor_granularity: PT1S\n      step: P10D`)}
    transformations:
      - { type: AddFields, fields: [{ path: [seconds], value: "{{ (record['timestamp'] | int / 1000) | int }}" }] }`,
)}
${stream(
  'commissions',
  '[id]',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /graphql
        http_method: POST
        authenticator: { type: BearerAuthenticator, api_token: "{{ config['api_key'] }}" }
        request_body:
          type: RequestBodyGraphQL
          value: { query: "query { commissions(since: \\"{{ stream_interval.start_time }}\\", before: \\"{{ stream_interval.end_time }}\\"{% if next_page_token and next_page_token['next_page_token'] %}, afterId: \\"{{ next_page_token['next_page_token'] }}\\"{% endif %}) { maxId payloadComplete records { id at } } }" }
      record_selector: ${records('data, commissions, records')}
      paginator:
        type: DefaultPaginator
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ response.get('data', {}).get('commissions', {}).get('maxId') }}", stop_condition: "{{ response['data']['commissions']['payloadComplete'] == True }}" }`,
  cursor('at', `${SECONDS}      lookback_window: P1D\n      step: P30D`),
)}
${stream(
  'guests',
  'id',
  `      requester:
        type: HttpRequester
        url_base: ${base}
        path: /guests
        authenticator: { type: ApiKeyAuthenticator, api_token: "{{ config['api_key'] }}", inject_into: { type: RequestOption, inject_into: header, field_name: x-api-key } }
        request_parameters: { event_id: "{{ stream_partition.event }}" }
      record_selector: ${records("entries, '*', guest")}
      paginator:
        type: DefaultPaginator
        page_token_option: ${inQuery('pagination_cursor')}
        pagination_strategy: { type: CursorPagination, cursor_value: "{{ response.get('next_cursor', '') }}", stop_condition: "{{ not response.get('has_more', False) }}" }
      partition_router: ${parentsOf('event')}`,
  `    transformations:
      - { type: AddFields, fields: [{ path: [event], value: "{{ stream_partition.event }}" }] }`,
)}
spec:
  type: Spec
  connection_specification:
    type: object
    properties:
      api_key: { type: string, airbyte_secret: true }
      start_date: { type: string }
      credentials: { type: object, properties: { kind: { type: string }, key: { type: string, airbyte_secret: true } } }
`
}
