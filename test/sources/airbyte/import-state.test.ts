import { afterEach, describe, expect, test } from 'vitest'
import { SyncError, type ImportedState, type JsonValue } from '../../../src/contract/index.ts'
import { manifestOf, openSource, Shop } from './shop.ts'

let shop: Shop | undefined
afterEach(async () => {
  await shop?.scene.close()
  shop = undefined
})

const cursor = `    incremental_sync:
      type: DatetimeBasedCursor
      cursor_field: updated_at
      datetime_format: '%Y-%m-%dT%H:%M:%SZ'
      cursor_datetime_formats: ['%s']
      cursor_granularity: PT1S
      start_datetime: "{{ config['start_date'] }}"
      start_time_option: { type: RequestOption, inject_into: request_parameter, field_name: since }`

const plainStream = (name: string, path: string, more: string, router = ''): string => `
  - type: DeclarativeStream
    name: ${name}
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester: { $ref: '#/definitions/requester', path: "${path}" }
      record_selector: { $ref: '#/definitions/records' }
${router}
${more}`

const router = `      partition_router:
        type: SubstreamPartitionRouter
        parent_stream_configs: [{ stream: '#/streams/0', parent_key: id, partition_field: shop }]`

const MANIFEST = manifestOf(
  plainStream('shops', '/shops', '') +
    plainStream('orders', '/orders', cursor) +
    plainStream('items', '/shops/{{ stream_partition.shop }}/items', cursor, router),
)

function importOf(document: JsonValue, stream: string, named?: string): ImportedState<any> {
  const convert = openSource(MANIFEST).stream(stream, { lagMs: 0 }).execute.importState?.airbyte
  if (convert === undefined) throw new Error('no import')
  return convert(document, named)
}

const described = (name: string, state: JsonValue): JsonValue => ({
  stream_descriptor: { name, namespace: null },
  stream_state: state,
})
const AT = '2026-02-10T00:00:00Z'
const MICROS = String(Date.parse(AT) * 1_000)
const ORDERS = { updated_at: AT }

describe('the state of an Airbyte connection', () => {
  test.each<[string, JsonValue]>([
    ['as an object of streams', { orders: ORDERS, others: {} }],
    ['as a list of streams', [{ type: 'STREAM', stream: described('orders', ORDERS) }]],
    ['as a message', { type: 'STATE', state: { type: 'STREAM', stream: described('orders', ORDERS) } }],
    [
      'as one of all streams',
      { type: 'GLOBAL', global: { shared_state: {}, stream_states: [described('orders', ORDERS)] } },
    ],
    ['as a legacy message', { type: 'LEGACY', data: { orders: ORDERS } }],
    [
      'as the API returns it',
      { stateType: 'stream', streamState: [{ streamDescriptor: { name: 'orders' }, streamState: ORDERS }] },
    ],
    [
      'as the API returns one of all streams',
      {
        stateType: 'global',
        globalState: { streamStates: [{ streamDescriptor: { name: 'orders' }, streamState: ORDERS }] },
      },
    ],
    ['as the API returns a legacy one', { stateType: 'legacy', state: { orders: ORDERS } }],
    ['after an earlier message', [{ orders: { updated_at: '2020-01-01T00:00:00Z' } }, { orders: ORDERS }]],
    [
      'with ranges that were read at the same time',
      {
        orders: {
          state_type: 'date-range',
          slices: [
            { start: '2026-02-15T00:00:00Z', end: '2026-02-20T00:00:00Z' },
            { start: '2026-02-01T00:00:00Z', end: AT },
          ],
        },
      },
    ],
    [
      'with the newest record of a range',
      {
        orders: {
          slices: [{ start: '2026-02-01T00:00:00Z', end: '2026-02-20T00:00:00Z', most_recent_cursor_value: AT }],
        },
      },
    ],
    ['with a time in another format of the cursor', { orders: { updated_at: Date.parse(AT) / 1_000 } }],
    ['with a fraction of a second', { orders: { updated_at: '2026-02-10T00:00:00.000+00:00' } }],
    ['with a global cursor of a stream without partitions', { orders: { state: ORDERS } }],
  ])('is read %s', (_, document) => {
    expect(importOf(document, 'orders')).toEqual({ state: { since: MICROS } })
  })

  test('may name the stream otherwise', () => {
    expect(importOf({ 'all orders': ORDERS }, 'orders', 'all orders')).toEqual({ state: { since: MICROS } })
  })

  const partition = (shop: JsonValue): JsonValue => ({ shop, parent_slice: {} })
  const row = (shop: JsonValue) => ({
    key: JSON.stringify({ parent_slice: {}, shop }),
    state: { value: { partition: partition(shop), extra: {} }, listed: 0, done: 0, state: { since: MICROS } },
  })

  test.each<[string, JsonValue, unknown]>([
    [
      'per partition',
      { states: [1, 'b'].map((shop) => ({ partition: partition(shop), cursor: ORDERS })), parent_state: {} },
      { state: {}, partitions: [row(1), row('b')] },
    ],
    [
      'per partition, beside a global cursor that is not in use',
      {
        use_global_cursor: false,
        state: { updated_at: '2026-02-20T00:00:00Z' },
        states: [{ partition: partition(1), cursor: ORDERS }],
      },
      { state: {}, partitions: [row(1)] },
    ],
    [
      'by a global cursor, with its lookback',
      {
        use_global_cursor: true,
        state: ORDERS,
        states: [{ partition: partition(1), cursor: ORDERS }],
        lookback_window: 60,
      },
      { state: { imported: '2026-02-09T23:59:00.000Z' } },
    ],
    ['by a global cursor alone', { state: ORDERS }, { state: { imported: '2026-02-10T00:00:00.000Z' } }],
    [
      'by the value of the partition',
      { b: ORDERS, 1: ORDERS },
      { state: {}, partitions: [row('1'), row(1), row('b')] },
    ],
  ])('of a stream with partitions is read %s', (_, state, expected) => {
    expect(importOf({ items: state }, 'items')).toEqual(expected)
  })

  test.each<[string, JsonValue, string, string]>([
    ['a text', 'x', 'orders', '$: it is not the state of an Airbyte connection'],
    ['another kind', { type: 'RECORD' }, 'orders', '$: `type` is not a kind of Airbyte state'],
    ['a list without names', [{ type: 'STREAM', stream: {} }], 'orders', '$[0].stream: it does not name its stream'],
    [
      'no state of the stream',
      { order: ORDERS },
      'orders',
      'no state of stream "orders". Its streams are order. Did you mean "order"?',
    ],
    [
      'an empty state',
      [{ type: 'STREAM', stream: described('orders', {}) }],
      'orders',
      'Stream "orders", $[0].stream.stream_state: it has no state',
    ],
    [
      'another field',
      { orders: { created: AT } },
      'orders',
      'Stream "orders", $.orders: it has no field `updated_at`. Its fields are created',
    ],
    [
      'a time that is none',
      { orders: { updated_at: 'canary' } },
      'orders',
      'Stream "orders", $.orders.updated_at: it is not a time in the format %Y',
    ],
    ['no ranges', { orders: { slices: [] } }, 'orders', 'Stream "orders", $.orders.slices: it is empty'],
    [
      'a range without an end',
      { orders: { slices: [{ start: AT }] } },
      'orders',
      '$.orders.slices[0].end: it is not a time',
    ],
    [
      'partitions of a stream without any',
      { orders: { states: [] } },
      'orders',
      '$.orders.states: the manifest does not split',
    ],
    [
      'a partition without a cursor',
      { items: { states: [{ partition: {} }] } },
      'items',
      '$.items.states[0]: it is not a partition',
    ],
    [
      'a lookback that is none',
      { items: { state: ORDERS, lookback_window: 'x' } },
      'items',
      '$.items.lookback_window: it is not a number',
    ],
    ['neither form', { items: { updated_at: AT } }, 'items', '$.items: it has neither `states` nor `state`'],
    ['a stream that is listed', { shops: ORDERS }, 'shops', 'Stream "shops" is read completely in every cycle'],
  ])('with %s is refused, with the stream and the place, without the value', (_, document, stream, message) => {
    const attempt = (): unknown => importOf(document, stream)
    expect(attempt).toThrow(message)
    expect(attempt).toThrow(expect.objectContaining({ code: 'ARGUMENT_INVALID' }) as SyncError)
    expect(attempt).not.toThrow('canary')
  })
})

describe('a cycle from an imported state', () => {
  const answer =
    (rows: readonly { id: string; updated_at: string }[]) =>
    ({ query }: { query: Record<string, string> }) => ({
      data: rows.filter(({ updated_at: at }) => at >= (query['since'] ?? '')),
    })

  async function follow(state: JsonValue, stream: string): Promise<Shop> {
    shop = await Shop.open(MANIFEST)
    await shop.setState(stream, importOf({ [stream]: state }, stream))
    shop.answers = {
      '/shops': () => ({ data: [{ id: 1 }, { id: 2 }] }),
      '/orders': answer([
        { id: 'old', updated_at: '2026-02-09T00:00:00Z' },
        { id: 'new', updated_at: '2026-02-11T00:00:00Z' },
      ]),
      '/shops/1/items': answer([
        { id: '1 old', updated_at: '2026-02-09T00:00:00Z' },
        { id: '1 new', updated_at: '2026-02-11T00:00:00Z' },
      ]),
      '/shops/2/items': answer([
        { id: '2 old', updated_at: '2026-02-09T00:00:00Z' },
        { id: '2 new', updated_at: '2026-02-11T00:00:00Z' },
      ]),
      '/shops/3/items': answer([{ id: '3 old', updated_at: '2026-02-09T00:00:00Z' }]),
    }
    expect(await shop.run(stream)).toMatchObject({ stopReason: 'complete' })
    return shop
  }

  test('reads only what is new', async () => {
    const { scene } = await follow(ORDERS, 'orders')
    expect(await scene.keys()).toEqual(['new'])
  })

  test('reads only what is new of each partition, and all of a partition that Airbyte had not read', async () => {
    const { scene } = await follow({ states: [{ partition: { shop: 1, parent_slice: {} }, cursor: ORDERS }] }, 'items')
    expect(await scene.keys()).toEqual(['1 new', '2 new', '2 old'])
  })

  test('applies a global cursor to the partitions of the first cycle alone', async () => {
    const { scene, answers } = await follow({ use_global_cursor: true, state: ORDERS }, 'items')
    expect(await scene.keys()).toEqual(['1 new', '2 new'])
    answers['/shops'] = () => ({ data: [{ id: 1 }, { id: 2 }, { id: 3 }] })
    shop?.taken()
    await shop?.run('items')
    expect(await scene.keys()).toEqual(['1 new', '2 new', '3 old'])
    const asked = shop?.taken().filter(({ path }) => path === '/shops/1/items')
    expect(asked?.map(({ query }) => query['since'])).toEqual(['2026-02-10T23:59:59Z'])
  })
})
