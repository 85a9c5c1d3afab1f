import { afterEach, describe, expect, test } from 'vitest'
import { counts } from '../../engine/engine-fixture.ts'
import { BASE, manifestOf, openSource, Shop } from './shop.ts'

let shop: Shop
afterEach(() => shop?.scene.close())

const rows = (from: number, to: number): { id: number }[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => ({ id: from + index }))

const stream = (retriever: string, more = ''): string => `
  - type: DeclarativeStream
    name: items
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester: { $ref: '#/definitions/requester', path: /items }
      record_selector: { $ref: '#/definitions/records' }
${retriever}
${more}`

describe('pagination', () => {
  test('by page number ends at a page that is not full, and missing records are swept', async () => {
    shop = await Shop.open(
      manifestOf(
        stream(`
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestOption, inject_into: request_parameter, field_name: page }
        page_size_option: { type: RequestOption, inject_into: request_parameter, field_name: per_page }
        pagination_strategy: { type: PageIncrement, start_from_page: 1, page_size: "{{ config['page_size'] }}" }`),
      ),
    )
    let list = rows(1, 5)
    shop.answers['/items'] = ({ query }) => {
      const page = Number(query.page ?? 1)
      return { data: list.slice((page - 1) * 2, page * 2) }
    }
    expect(await shop.run('items')).toMatchObject({ stopReason: 'complete' })
    expect(await shop.scene.keys()).toEqual(['1', '2', '3', '4', '5'])
    expect(shop.taken().map(({ query }) => [query.page, query.per_page])).toEqual([
      [undefined, '2'],
      ['2', '2'],
      ['3', '2'],
    ])
    list = rows(2, 6)
    expect((await shop.run('items')).counts).toEqual(counts({ created: 1, unchanged: 4, swept: 1 }))
  })

  test('by offset counts the records before the filter', async () => {
    shop = await Shop.open(
      manifestOf(
        stream(`
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestOption, inject_into: request_parameter, field_name: offset }
        pagination_strategy: { type: OffsetIncrement, page_size: 2, inject_on_first_request: true }`).replace(
          `record_selector: { $ref: '#/definitions/records' }`,
          `record_selector:
        type: RecordSelector
        extractor: { type: DpathExtractor, field_path: [data] }
        record_filter: { type: RecordFilter, condition: "{{ record['id'] is even }}" }`,
        ),
      ),
    )
    shop.answers['/items'] = ({ query }) => ({ data: rows(1, 5).slice(Number(query.offset), Number(query.offset) + 2) })
    await shop.run('items')
    expect(await shop.scene.keys()).toEqual(['2', '4'])
    expect(shop.taken().map(({ query }) => query.offset)).toEqual(['0', '2', '4', '4'])
  })

  test('by a cursor of the response follows links on the same host, and no other', async () => {
    shop = await Shop.open(
      manifestOf(
        stream(`
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestPath }
        pagination_strategy:
          type: CursorPagination
          cursor_value: "{{ headers['link']['next']['url'] }}"
          stop_condition: "{{ 'next' not in headers['link'] }}"`),
      ),
    )
    let host = BASE
    shop.answers['/items'] = ({ query }) => {
      const at = Number(query.after ?? 0)
      const link: Record<string, string> = at < 4 ? { Link: `<${host}/items?after=${at + 2}>; rel="next"` } : {}
      return Response.json({ data: rows(at + 1, at + 2) }, { headers: link })
    }
    await shop.run('items')
    expect(await shop.scene.keys()).toEqual(['1', '2', '3', '4', '5', '6'])
    host = 'https://elsewhere.example'
    const result = await shop.run('items')
    expect(result.error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(await shop.scene.keys()).toHaveLength(6)
  })
})

describe('records', () => {
  test('are transformed: fields are added, removed and typed', async () => {
    shop = await Shop.open(
      manifestOf(
        stream(
          '',
          `    transformations:
      - type: AddFields
        fields:
          - { path: [hash], value: "{{ record['email'] | hash }}" }
          - { path: [nested, code], value: '0012' }
          - { path: [count], value: "{{ record['tags'] | length }}" }
          - { path: [text], value: '42', value_type: string }
      - { type: RemoveFields, field_pointers: [[email], [deep, '*', secret]] }`,
        ),
      ),
    )
    shop.answers['/items'] = () => ({
      data: [{ id: 1, email: 'a@b.example', tags: ['x', 'y'], deep: { a: { secret: 1, kept: 2 } } }],
    })
    await shop.run('items')
    expect((await shop.scene.rows())['1']).toEqual({
      id: 1,
      tags: ['x', 'y'],
      deep: { a: { kept: 2 } },
      hash: 'd3ce9fe2208376bd39cf85fbcc2a90c7',
      nested: { code: '0012' },
      count: 2,
      text: '42',
    })
  })

  test('have names in snake case, and are the same when a page is requested again', async () => {
    shop = await Shop.open(
      manifestOf(
        stream(
          '',
          `    transformations:
      - { type: KeysToSnakeCase }
      - { type: AddFields, fields: [{ path: [read_at], value: "{{ now_utc().isoformat() }}" }] }`,
        ),
      ),
    )
    const started = new Date(shop.scene.clock.now()).toISOString()
    shop.answers['/items'] = () => {
      shop.scene.clock.step(1_000)
      return { data: [{ id: 1, camelCaseName: { HTTPCode: 2 }, 'with space': 3, '1st': 4, _x_: 5, ID2: 6 }] }
    }
    await shop.run('items')
    expect((await shop.scene.rows())['1']).toEqual({
      id: 1,
      camel_case_name: { httpcode: 2 },
      with_space: 3,
      _1_st: 4,
      _x_: 5,
      id_2: 6,
      read_at: started.replace('.000Z', '+00:00'),
    })
  })

  test('without a primary key are keyed by their content', async () => {
    shop = await Shop.open(manifestOf(stream('').replace('primary_key: id', 'description: none')))
    shop.answers['/items'] = () => ({ data: [{ a: 1, b: 2 }, { b: 2, a: 1 }, { a: 2 }] })
    await shop.run('items')
    const before = await shop.scene.keys()
    expect(before).toHaveLength(2)
    shop.answers['/items'] = () => ({ data: [{ a: 1, b: 2 }, { a: 3 }] })
    expect((await shop.run('items')).counts).toEqual(counts({ created: 1, unchanged: 1, swept: 1 }))
  })
})

const incremental = (cursor: string): string =>
  stream(
    '',
    `    incremental_sync:
      type: DatetimeBasedCursor
      cursor_field: updated_at
      start_datetime: { type: MinMaxDatetime, datetime: "{{ config['start_date'] }}", datetime_format: '%Y-%m-%dT%H:%M:%SZ' }
      start_time_option: { type: RequestOption, inject_into: request_parameter, field_name: since }
      end_time_option: { type: RequestOption, inject_into: request_parameter, field_name: until }
${cursor}`,
  )

interface Item {
  readonly id: number
  readonly updated_at: string
}

describe('a DatetimeBasedCursor', () => {
  const seconds = `
      datetime_format: '%Y-%m-%dT%H:%M:%SZ'
      cursor_datetime_formats: ['%Y-%m-%dT%H:%M:%S.%fZ', '%Y-%m-%dT%H:%M:%SZ']
      cursor_granularity: PT1S
      step: P7D`

  const answerWith =
    (items: readonly Item[], isWithin: (item: Item, since: string, until: string) => boolean) =>
    ({ query }: { query: Record<string, string> }) => ({
      data: items.filter((item) => isWithin(item, query.since ?? '', query.until ?? '')),
    })

  test.each([
    ['inclusive', (at: number, since: number, until: number) => at >= since && at <= until],
    ['without the end', (at: number, since: number, until: number) => at >= since && at < until],
    ['without the start', (at: number, since: number, until: number) => at > since && at <= until],
  ])('reads every record at the border of two windows, if the bounds are %s', async (_, isWithin) => {
    shop = await Shop.open(manifestOf(incremental(seconds)))
    const items = [
      { id: 1, updated_at: '2026-02-01T00:00:00.500Z' },
      { id: 2, updated_at: '2026-02-07T23:59:59.500Z' },
      { id: 3, updated_at: '2026-02-08T00:00:00.000Z' },
      { id: 4, updated_at: '2026-02-08T00:00:00.001Z' },
      { id: 5, updated_at: '2026-02-14T23:59:59.999Z' },
      { id: 6, updated_at: '2026-02-20T12:00:00.000Z' },
    ]
    shop.answers['/items'] = answerWith(items, (item, since, until) =>
      isWithin(Date.parse(item.updated_at), Date.parse(since), Date.parse(until)),
    )
    expect(await shop.run('items')).toMatchObject({ stopReason: 'complete' })
    expect(await shop.scene.keys()).toEqual(['1', '2', '3', '4', '5', '6'])
  })

  test('reads only what is new in the second cycle, and again the newest time', async () => {
    shop = await Shop.open(manifestOf(incremental(seconds)))
    const items: Item[] = [
      { id: 1, updated_at: '2026-02-10T00:00:00Z' },
      { id: 2, updated_at: '2026-02-28T10:00:00Z' },
    ]
    shop.answers['/items'] = answerWith(
      items,
      (item, since, until) => item.updated_at >= since && item.updated_at <= until,
    )
    await shop.run('items')
    shop.taken()
    // Has the time of the newest record, and became visible later.
    items.push({ id: 3, updated_at: '2026-02-28T10:00:00Z' })
    items[0] = { id: 1, updated_at: '2026-02-28T23:00:00Z' }
    const result = await shop.run('items')
    expect(result.counts).toMatchObject({ created: 1, updated: 1 })
    expect(shop.taken().map(({ query }) => query.since)).toEqual(['2026-02-28T09:59:59Z'])
  })

  test('starts earlier by the lookback window', async () => {
    shop = await Shop.open(manifestOf(incremental(`${seconds}\n      lookback_window: P3D`)))
    const items = [{ id: 1, updated_at: '2026-02-28T10:00:00Z' }]
    shop.answers['/items'] = answerWith(
      items,
      (item, since, until) => item.updated_at >= since && item.updated_at <= until,
    )
    await shop.run('items')
    shop.taken()
    await shop.run('items')
    expect(shop.taken()[0]?.query.since).toBe('2026-02-25T09:59:59Z')
  })

  test('does not move past the horizon: a record from the future skips none', async () => {
    shop = await Shop.open(manifestOf(incremental(seconds)))
    const items: Item[] = [{ id: 1, updated_at: '2026-12-24T00:00:00Z' }]
    shop.answers['/items'] = () => ({ data: items })
    await shop.run('items')
    shop.taken()
    items.push({ id: 2, updated_at: '2026-03-01T00:00:00Z' })
    await shop.run('items')
    expect(await shop.scene.keys()).toEqual(['1', '2'])
    expect(shop.taken()[0]?.query.since).toBe('2026-02-28T23:59:59Z')
  })

  test('requests an empty window twice', async () => {
    shop = await Shop.open(manifestOf(incremental(seconds)))
    const items = [
      { id: 1, updated_at: '2026-02-03T00:00:00Z' },
      { id: 2, updated_at: '2026-02-20T00:00:00Z' },
    ]
    const answer = answerWith(items, (item, since, until) => item.updated_at >= since && item.updated_at <= until)
    let wrong = 1
    shop.answers['/items'] = (asked) => (wrong-- > 0 ? { data: [] } : answer(asked))
    await shop.run('items')
    expect(await shop.scene.keys()).toEqual(['1', '2'])
  })

  test('resumes within the cycle after a failure', async () => {
    shop = await Shop.open(manifestOf(incremental(seconds)))
    const items = rows(1, 25).map(({ id }) => ({ id, updated_at: `2026-02-${String(id).padStart(2, '0')}T12:00:00Z` }))
    const answer = answerWith(items, (item, since, until) => item.updated_at >= since && item.updated_at <= until)
    let calls = 0
    shop.answers['/items'] = (asked) => (++calls > 2 ? Response.json({}, { status: 400 }) : answer(asked))
    expect((await shop.run('items')).error).toMatchObject({ code: 'CONNECTOR_FAILED' })
    shop.taken()
    shop.answers['/items'] = answer
    await shop.run('items')
    expect(await shop.scene.keys()).toHaveLength(25)
    expect(shop.taken().map(({ query }) => query.since)).toEqual(['2026-02-15T00:00:00Z', '2026-02-22T00:00:00Z'])
  })

  test('starts at the later of its start and `since`, and reads a range again without its state', async () => {
    shop = await Shop.open(manifestOf(incremental(seconds)))
    const items = [1, 5, 9, 13, 17, 21].map((day) => ({
      id: day,
      updated_at: new Date(Date.UTC(2026, 1, day)).toISOString(),
    }))
    shop.answers['/items'] = answerWith(
      items,
      (item, since, until) =>
        Date.parse(item.updated_at) >= Date.parse(since) && Date.parse(item.updated_at) <= Date.parse(until),
    )
    await shop.run('items', { since: '2026-02-09' })
    expect(await shop.scene.keys()).toEqual(['13', '17', '21', '9'])
    const { committed } = await shop.scene.checkpoint()
    shop.taken()
    const result = await shop.readRange('items', { from: '2026-02-05', to: '2026-02-13' })
    expect(result).toMatchObject({
      stopReason: 'complete',
      tidemark: null,
      counts: counts({ created: 1, unchanged: 1 }),
    })
    expect([...new Set(shop.taken().map(({ query }) => `${query.since} ${query.until}`))]).toEqual([
      '2026-02-05T00:00:00Z 2026-02-12T00:00:00Z',
      '2026-02-12T00:00:00Z 2026-02-13T00:00:00Z',
    ])
    expect((await shop.scene.checkpoint()).committed).toBe(committed)
    const limited = await shop.readRange('items', { from: '2026-02-01', to: '2026-02-07' }, { since: '2026-02-09' })
    expect(limited.counts).toEqual(counts({}))
  })

  test('alone has a range and a start', () => {
    const source = openSource(manifestOf(stream('')))
    expect(() => source.stream('items', { since: '2026-02-09' })).toThrow(/cannot start at a time/)
    expect(source.stream('items').execute.range).toBeUndefined()
  })

  test('is refused without a primary key, and as a full refresh', () => {
    const source = openSource(manifestOf(incremental(seconds).replace('primary_key: id', 'description: none')))
    expect(() => source.stream('items')).toThrow(/no primary key/)
    expect(() => source.stream('items', { key: ['id'], mode: 'full_refresh' })).toThrow(/windows of time/)
    expect(source.stream('items', { key: ['id'] }).mode).toBe('incremental')
  })
})

describe('partitions', () => {
  const partitioned = (router: string, more = ''): string =>
    stream(
      `      partition_router:
${router}`,
      more,
    )

  test('of a list are read one after the other', async () => {
    shop = await Shop.open(
      manifestOf(
        partitioned(`        type: ListPartitionRouter
        cursor_field: region
        values: [eu, us]
        request_option: { type: RequestOption, inject_into: header, field_name: X-Region }`),
      ),
    )
    shop.answers['/items'] = ({ headers }) => ({ data: [{ id: `${headers['x-region']}1` }] })
    await shop.run('items')
    expect(await shop.scene.keys()).toEqual(['eu1', 'us1'])
  })

  test('are grouped, so that a request reads several', async () => {
    shop = await Shop.open(
      manifestOf(
        partitioned(`        type: GroupingPartitionRouter
        group_size: 2
        underlying_partition_router: { type: ListPartitionRouter, cursor_field: region, values: [a, b, b, c] }`).replace(
          'path: /items',
          `path: /items, request_parameters: { regions: "{{ stream_partition.region | join(',') }}" }`,
        ),
      ),
    )
    shop.answers['/items'] = ({ query }) => ({ data: (query.regions ?? '').split(',').map((id) => ({ id })) })
    await shop.run('items')
    expect(shop.taken().map(({ query }) => query.regions)).toEqual(['a,b', 'c'])
    expect(await shop.scene.keys()).toEqual(['a', 'b', 'c'])
  })

  const children = (more = ''): string => `
  - type: DeclarativeStream
    name: parents
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester: { $ref: '#/definitions/requester', path: /parents }
      record_selector: { $ref: '#/definitions/records' }
${stream(
  `
      partition_router:
        type: SubstreamPartitionRouter
        parent_stream_configs:
          - stream: '#/streams/0'
            parent_key: id
            partition_field: parent_id
            incremental_dependency: true
            extra_fields: [[name]]`,
  more,
).replace('path: /items', `path: "/parents/{{ stream_partition.parent_id }}/items"`)}`

  test('of parents are read, and children of a vanished parent are swept', async () => {
    shop = await Shop.open(
      manifestOf(
        children(`    transformations:
      - type: AddFields
        fields: [{ path: [parent], value: "{{ stream_slice.extra_fields['name'] }}" }]`),
      ),
    )
    const parents = [{ id: 1, name: 'one' }, { id: 2, name: 'two' }, { name: 'without a key' }]
    shop.answers['/parents'] = () => ({ data: parents })
    for (const id of [1, 2])
      shop.answers[`/parents/${id}/items`] = () => ({ data: [{ id: `${id}a` }, { id: `${id}b` }] })
    await shop.run('items')
    expect(await shop.scene.rows()).toMatchObject({ '1a': { parent: 'one' }, '2b': { parent: 'two' } })
    parents.splice(0, 1)
    expect((await shop.run('items')).counts).toMatchObject({ swept: 2, unchanged: 2 })
  })

  test('keep a cursor each: a new parent is read from the start', async () => {
    shop = await Shop.open(
      manifestOf(
        children(`    incremental_sync:
      type: DatetimeBasedCursor
      cursor_field: updated_at
      datetime_format: '%Y-%m-%dT%H:%M:%SZ'
      start_datetime: "{{ config['start_date'] }}"
      start_time_option: { type: RequestOption, inject_into: request_parameter, field_name: since }`),
      ),
    )
    const parents = [{ id: 1 }]
    shop.answers['/parents'] = () => ({ data: parents })
    shop.answers['/parents/1/items'] = () => ({ data: [{ id: 'a', updated_at: '2026-02-20T00:00:00Z' }] })
    shop.answers['/parents/2/items'] = () => ({ data: [{ id: 'b', updated_at: '2026-02-02T00:00:00Z' }] })
    await shop.run('items')
    parents.push({ id: 2 })
    shop.taken()
    await shop.run('items')
    expect(await shop.scene.keys()).toEqual(['a', 'b'])
    const asked = shop.taken().filter(({ path }) => path.endsWith('/items'))
    expect(asked.map(({ path, query }) => [path, query.since])).toEqual([
      ['/parents/1/items', '2026-02-19T23:59:59Z'],
      ['/parents/2/items', '2026-02-01T00:00:00Z'],
    ])
  })
})

describe('requests', () => {
  const withRequester = (requester: string): string =>
    manifestOf(
      stream('').replace(
        `requester: { $ref: '#/definitions/requester', path: /items }`,
        `requester:
        $ref: '#/definitions/requester'
        path: /items
${requester}`,
      ),
    )

  test.each([
    ['BearerAuthenticator', `api_token: "{{ config['api_key'] }}"`, 'authorization', 'Bearer canary-key'],
    [
      'BasicHttpAuthenticator',
      `username: "{{ config['api_key'] }}"\n          password: x`,
      'authorization',
      'Basic Y2FuYXJ5LWtleTp4',
    ],
    [
      'ApiKeyAuthenticator',
      `api_token: "{{ config['api_key'] }}"\n          inject_into: { type: RequestOption, inject_into: header, field_name: X-Key }`,
      'x-key',
      'canary-key',
    ],
  ])('carry the credentials of a %s, from a secret', async (type, fields, header, value) => {
    shop = await Shop.open(
      withRequester(`        authenticator:
          type: ${type}
          ${fields}`),
      { api_key: '${SHOP_KEY}' },
    )
    shop.answers['/items'] = () => ({ data: rows(1, 1) })
    await shop.run('items')
    expect(shop.taken()[0]?.headers[header]).toBe(value)
  })

  test('carry the token of a session, which is requested once', async () => {
    shop = await Shop.open(
      withRequester(`        authenticator:
          type: SessionTokenAuthenticator
          session_token_path: [auth, token]
          expiration_duration: PT1H
          login_requester: { type: HttpRequester, url_base: ${BASE}, path: /login, http_method: POST, request_body_json: { key: "{{ config['api_key'] }}" } }
          request_authentication: { type: ApiKey, inject_into: { type: RequestOption, inject_into: header, field_name: X-Session } }`),
      { api_key: '${SHOP_KEY}' },
    )
    shop.answers['/login'] = () => ({ auth: { token: 'session-1' } })
    shop.answers['/items'] = () => ({ data: rows(1, 1) })
    await shop.run('items')
    await shop.run('items')
    const asked = shop.taken()
    expect(asked.filter(({ path }) => path === '/login').map(({ body }) => body)).toEqual(['{"key":"canary-key"}'])
    expect(asked.at(-1)?.headers['x-session']).toBe('session-1')
  })

  test('send parameters, headers and a nested body', async () => {
    shop = await Shop.open(
      withRequester(`        http_method: POST
        request_parameters: { empty: "{{ config.get('nothing') }}", list: "{{ ['a', 'b'] }}", flag: 'true' }
        request_headers: { X-Page: "{{ config['page_size'] }}" }
        request_body_json: { filter: { from: "{{ config['start_date'] }}", size: "{{ config['page_size'] }}" } }`),
    )
    shop.answers['/items'] = () => ({ data: rows(1, 1) })
    await shop.run('items')
    const [asked] = shop.taken()
    expect(asked).toMatchObject({ method: 'POST', query: { list: 'b', flag: 'true' } })
    expect(asked?.query).not.toHaveProperty('empty')
    expect(asked?.headers['x-page']).toBe('2')
    expect(JSON.parse(asked?.body ?? '')).toEqual({ filter: { from: '2026-02-01T00:00:00Z', size: 2 } })
  })

  const handled = (filters: string): string =>
    withRequester(`        error_handler:
          type: CompositeErrorHandler
          error_handlers:
            - type: DefaultErrorHandler
              backoff_strategies: [{ type: WaitTimeFromHeader, header: X-Wait }]
              response_filters:
${filters}`)

  test('wait as long as a response asks', async () => {
    shop = await Shop.open(handled(`                - { http_codes: [420], action: RATE_LIMITED }`))
    let limited = 1
    shop.answers['/items'] = () =>
      limited-- > 0 ? Response.json({}, { status: 420, headers: { 'x-wait': '30' } }) : { data: rows(1, 2) }
    expect(await shop.run('items')).toMatchObject({ stopReason: 'complete' })
    const [first, second] = shop.taken()
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(30_000)
  })

  test('take a response as empty that a filter ignores, and fail for one that it refuses', async () => {
    shop = await Shop.open(
      handled(`                - { predicate: "{{ response.get('code') == 7 }}", action: IGNORE }
                - { error_message_contains: broken, action: FAIL, error_message: The account is broken }`),
    )
    shop.answers['/items'] = () => Response.json({ code: 7 }, { status: 403 })
    expect(await shop.run('items')).toMatchObject({ stopReason: 'complete', counts: counts({}) })
    shop.answers['/items'] = () => Response.json({ message: 'it is broken, canary' }, { status: 200 })
    const { error } = await shop.run('items')
    expect(error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(error?.message).toContain('The account is broken')
    expect(error?.message).not.toContain('canary')
  })

  describe('that a filter ignores', () => {
    const ignoring = handled(`                - { http_codes: [403, 404], action: IGNORE }`)

    test('delete no rows, and the status names the reason', async () => {
      shop = await Shop.open(ignoring)
      shop.answers['/items'] = () => ({ data: rows(1, 3) })
      await shop.run('items')
      for (const status of [403, 404]) {
        shop.answers['/items'] = () => Response.json({}, { status })
        const result = await shop.run('items')
        expect(result).toMatchObject({ stopReason: 'complete', endReason: 'incomplete', counts: { swept: 0 } })
      }
      expect(await shop.scene.keys()).toHaveLength(3)
      shop.answers['/items'] = () => ({ data: rows(1, 2) })
      expect(await shop.run('items')).toMatchObject({ endReason: null, counts: { swept: 1 } })
    })

    const children = (more = ''): string =>
      manifestOf(`
  - type: DeclarativeStream
    name: parents
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester:
        $ref: '#/definitions/requester'
        path: /parents
        error_handler: { type: DefaultErrorHandler, response_filters: [{ http_codes: [403], action: IGNORE }] }
      record_selector: { $ref: '#/definitions/records' }
${stream(
  `
      partition_router:
        type: SubstreamPartitionRouter
        parent_stream_configs: [{ stream: '#/streams/0', parent_key: id, partition_field: parent }]`,
  more,
).replace(
  'path: /items',
  `path: "/parents/{{ stream_partition.parent }}/items", error_handler: { type: DefaultErrorHandler, response_filters: [{ http_codes: [403, 404], action: IGNORE }] }`,
)}`)

    test.each([
      ['of the parents', '/parents', 403, 0],
      ['of the children of one parent', '/parents/1/items', 403, 0],
      ['of the children of a parent that is gone', '/parents/1/items', 404, 1],
    ])('%s delete no rows, unless the parent is gone', async (_, path, status, swept) => {
      shop = await Shop.open(children())
      const answers = {
        '/parents': () => ({ data: rows(1, 3) }),
        '/parents/1/items': () => ({ data: [{ id: 'a' }] }),
        '/parents/2/items': () => ({ data: [{ id: 'b' }] }),
        '/parents/3/items': () => ({ data: [{ id: 'c' }] }),
      }
      shop.answers = answers
      await shop.run('items')
      shop.answers = { ...answers, [path]: () => Response.json({}, { status }) }
      expect(await shop.run('items')).toMatchObject({ stopReason: 'complete', counts: { swept } })
    })
  })

  test('a window of an incremental stream that is ignored is read again: the cursor and the tidemark stay', async () => {
    shop = await Shop.open(
      manifestOf(
        incremental(`
      datetime_format: '%Y-%m-%dT%H:%M:%SZ'
      cursor_granularity: PT1S
      step: P7D`).replace(
          'path: /items',
          `path: /items, error_handler: { type: DefaultErrorHandler, response_filters: [{ http_codes: [403], action: IGNORE }] }`,
        ),
      ),
    )
    const items = [
      { id: 1, updated_at: '2026-02-03T00:00:00Z' },
      { id: 2, updated_at: '2026-02-20T00:00:00Z' },
    ]
    let forbidden = '2026-02-01T00:00:00Z'
    shop.answers['/items'] = ({ query }) =>
      query.since === forbidden
        ? Response.json({}, { status: 403 })
        : { data: items.filter(({ updated_at: at }) => at >= (query.since ?? '') && at <= (query.until ?? '')) }
    expect(await shop.run('items')).toMatchObject({ stopReason: 'complete', endReason: 'incomplete', tidemark: null })
    expect(await shop.scene.keys()).toEqual(['2'])
    forbidden = ''
    const { tidemark } = await shop.run('items')
    expect(tidemark).not.toBe(null)
    expect(await shop.scene.keys()).toEqual(['1', '2'])
  })

  test('keep to the rate of the budget', async () => {
    shop = await Shop.open(
      `${withRequester('')}
api_budget:
  type: HTTPAPIBudget
  policies:
    - type: MovingWindowCallRatePolicy
      matchers: [{ url_path_pattern: /items }]
      rates: [{ type: Rate, limit: 2, interval: PT10S }]
`.replace(
        `record_selector: { $ref: '#/definitions/records' }`,
        `record_selector: { $ref: '#/definitions/records' }
      paginator:
        type: DefaultPaginator
        page_token_option: { type: RequestOption, inject_into: request_parameter, field_name: page }
        pagination_strategy: { type: PageIncrement, page_size: 1 }`,
      ),
    )
    shop.answers['/items'] = ({ query }) => ({ data: Number(query.page ?? 0) < 5 ? [{ id: query.page ?? '0' }] : [] })
    await shop.run('items')
    const times = shop.taken().map(({ at }) => at)
    expect(times.length).toBeGreaterThan(5)
    for (const [index, at] of times.entries())
      if (index >= 2) expect(at - (times[index - 2] ?? 0)).toBeGreaterThanOrEqual(10_000)
  })

  test.each([
    ['XmlDecoder', '<data><item id="1"><name>A &amp; B</name></item><item id="2"/></data>', ['data', 'item'], '@id'],
    ['JsonlDecoder', '{"id":1}\n{"id":2}\n', [], 'id'],
    ['CsvDecoder', 'id;name\n1;"a;b"\n2;c\n', [], 'id'],
  ])('read the answer of a %s', async (type, text, path, key) => {
    shop = await Shop.open(
      manifestOf(
        stream(`      decoder: { type: ${type}, delimiter: ';' }`)
          .replace('primary_key: id', `primary_key: '${key}'`)
          .replace(
            `{ $ref: '#/definitions/records' }`,
            `{ type: RecordSelector, extractor: { type: DpathExtractor, field_path: ${JSON.stringify(path)} } }`,
          ),
      ),
    )
    shop.answers['/items'] = () => new Response(text)
    await shop.run('items')
    expect(await shop.scene.keys()).toEqual(['1', '2'])
    shop.answers['/items'] = () => new Response(type === 'CsvDecoder' ? new Uint8Array([0xff, 0x22, 0x31]) : '<canary')
    if (type !== 'CsvDecoder') expect((await shop.run('items')).error).toMatchObject({ code: 'SOURCE_INVALID' })
  })

  test('show no secret in errors and logs', async () => {
    shop = await Shop.open(
      withRequester(`        authenticator: { type: BearerAuthenticator, api_token: "{{ config['api_key'] }}" }
        request_parameters: { token: "{{ config['api_key'] }}" }`),
      { api_key: '${SHOP_KEY}' },
    )
    shop.answers['/items'] = () => Response.json({ message: 'canary-key is wrong' }, { status: 401 })
    const { error } = await shop.run('items')
    expect(error).toMatchObject({ code: 'AUTH_REJECTED' })
    expect(`${error?.message} ${shop.scene.logged.join()}`).not.toContain('canary')
  })
})

describe('a manifest that is partly supported', () => {
  test('runs its other streams, and names the component and its line', async () => {
    const manifest = manifestOf(
      `${stream('').replace('name: items', 'name: other')}${stream('').replace('type: SimpleRetriever', 'type: AsyncRetriever')}`,
    )
    const source = openSource(manifest)
    const line = manifest.split('\n').findIndex((text) => text.includes('AsyncRetriever')) + 1
    expect(() => source.stream('items')).toThrow(new RegExp(`needs AsyncRetriever \\(line ${line}\\)`))
    expect(source.stream('other').mode).toBe('replace')
    expect(() => source.stream('others')).toThrow(/Did you mean "other"/)
  })

  test.each(['access_token_name', 'refresh_token_name', 'client_id_name', 'client_secret_name', 'grant_type_name'])(
    'does not authenticate with another `%s`',
    (field) => {
      const oauth = (name: string): string =>
        manifestOf(
          stream('').replace(
            'path: /items',
            `path: /items, authenticator: { type: OAuthAuthenticator, token_refresh_endpoint: ${BASE}/token, client_id: a, client_secret: b, ${field}: ${name} }`,
          ),
        )
      const source = openSource(oauth('token'))
      expect(() => source.stream('items')).toThrow(new RegExp(`OAuthAuthenticator.${field}: "token" \\(line \\d+\\)`))
      expect(openSource(oauth(field.slice(0, -5))).stream('items').mode).toBe('replace')
    },
  )
})
