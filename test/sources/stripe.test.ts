import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stripe } from '../../src/sources/stripe/source.ts'
import { churn, StripeSimulator } from '../../simulators/src/index.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<StripeSimulator>
let vendor: StripeSimulator

async function open(options: ConstructorParameters<typeof StripeSimulator>[1] = {}): Promise<void> {
  stage = await VendorFixture.open((ports) => new StripeSimulator(ports, options))
  vendor = stage.vendor
}
beforeEach(() => open())
afterEach(() => stage.close())

const source = (options: Partial<Parameters<typeof stripe>[0]> = {}): ReturnType<typeof stripe> =>
  stripe({ apiKey: 'STRIPE_KEY', ...options })
const customers = (options?: Partial<Parameters<typeof stripe>[0]>): void => void stage.track(source(options).customers)
const fill = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => vendor.create('customer', { name: `c${n}` }))
const queries = (): string[] =>
  stage.asked().map(({ path, query }) => `${path}?${new URLSearchParams(query).toString()}`)

describe('the backfill', () => {
  test('N32 N33 N34 N35: takes the anchor first, then follows the last id until has_more is false', async () => {
    fill(250)
    customers()
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 250 } })
    const asked = queries()
    expect(asked).toHaveLength(4)
    expect(asked[0]).toBe('/v1/events?limit=1')
    expect(asked[1]).toBe('/v1/customers?limit=100')
    expect(asked[2]).toMatch(/^\/v1\/customers\?starting_after=cus_\w+&limit=100$/)
    expect(await stage.rows()).toEqual(stage.truth('customer'))
    expect(await stage.state('sync-backfill')).toBeNull()
    expect((await stage.state()).cursor).toBe(vendor.events()[0]!.id)
  })

  test('N33: a short page is not the end, and a full one may be', async () => {
    fill(200)
    customers()
    vendor.faults.plan({ kind: 'short-page' }, { on: (request) => request.url.includes('/customers') })
    await stage.backfill()
    expect(await stage.rows()).toEqual(stage.truth('customer'))
    stage.asked()
    await stage.backfill()
    // Two full pages, and the last one again.
    expect(queries()).toHaveLength(3)
  })

  test('XC34 N35 the anchor is an event below which no other can appear, because the delta would miss it', async () => {
    const ids = fill(10)
    const [anchor] = vendor.events()
    stage.pass(60 * SECOND)
    vendor.update('customer', ids[0]!, { name: 'young' })
    customers()
    await stage.backfill({ afterMs: 200 })
    expect((await stage.state()).cursor).toBe(anchor!.id)
    // In the same second as the young event; some of these are below it in the log.
    for (const id of ids) vendor.update('customer', id, { name: 'changed' })
    await stage.delta()
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('invariant 6: a read with slow responses is not older than a fast one before it', async () => {
    const [id] = fill(1)
    customers()
    await stage.backfill()
    vendor.update('customer', id!, { name: 'changed' })
    const handle = vendor.handle.bind(vendor)
    vendor.handle = async (request) => {
      const answer = await handle(request)
      if (request.url.includes('/customers')) stage.pass(30 * SECOND)
      return answer
    }
    await stage.backfill({ afterMs: 5 * SECOND })
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('an empty account completes without rows', async () => {
    customers()
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { created: 0 } })
  })
})

describe('the delta', () => {
  test('N43 an object whose event has a truncated list is read in its current version, also if the list became shorter', async () => {
    const lines = (count: number): object[] => Array.from({ length: count }, (_, at) => ({ amount: at }))
    const invoice = vendor.create('invoice', { lines: lines(3) })
    stage.track(source().invoices)
    await stage.backfill()
    vendor.update('invoice', invoice, { lines: lines(25) })
    stage.pass(2 * SECOND)
    vendor.update('invoice', invoice, { lines: lines(2) })
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete', error: null })
    expect(await stage.rows()).toEqual(stage.truth('invoice'))
  })

  test('N36 N41 NX13: alone applies changes made during the backfill', async () => {
    fill(230)
    customers()
    await stage.backfill({
      onRequest(request) {
        if (request === 1) return
        stage.pass(2 * SECOND)
        churn(vendor, {
          type: 'customer',
          writes: 25,
          random: new RandomStream(request, 'churn'),
          fields: (n) => ({ name: `r${request}-${n}` }),
          updates: 0.5,
          deletes: 0.2,
        })
        vendor.update('customer', vendor.records.current('customer')[request]!.id, { name: `touched ${request}` })
      },
    })
    await stage.delta()
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('N37 N44: continues from the newest applied event', async () => {
    fill(3)
    customers()
    await stage.backfill()
    const { cursor } = await stage.state()
    stage.asked()
    stage.pass(SECOND)
    fill(250)
    await stage.delta()
    const asked = queries()
    expect(asked[0]).toBe(`/v1/events?ending_before=${cursor}&limit=100`)
    expect(asked).toHaveLength(3)
    expect((await stage.state()).cursor).toBe(vendor.events()[0]!.id)
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('N38 N39 N40: events younger than ten seconds wait and do not move the cursor', async () => {
    fill(1)
    customers()
    await stage.backfill()
    const before = await stage.state()
    fill(150)
    stage.asked()
    expect(await stage.delta({ afterMs: 9 * SECOND })).toMatchObject({ stopReason: 'complete', counts: { created: 0 } })
    expect(stage.asked()).toHaveLength(1)
    expect(await stage.state()).toEqual(before)
    await stage.delta({ afterMs: 3 * SECOND })
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('N9: late events below others are not skipped', async () => {
    await stage.close()
    await open({ lag: { share: 0.5, maxMs: 9 * SECOND } })
    fill(20)
    customers()
    await stage.backfill()
    for (let round = 0; round < 25; round++) {
      churn(vendor, {
        type: 'customer',
        writes: 12,
        random: new RandomStream(round, 'late'),
        fields: (n) => ({ name: `${round}-${n}` }),
        updates: 0.5,
        deletes: 0.2,
      })
      await stage.delta({ afterMs: 1_700 })
    }
    await stage.delta({ afterMs: 30 * SECOND })
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('objects created after the anchor of an empty log are landed from the first event', async () => {
    customers()
    await stage.backfill()
    expect(await stage.state()).toEqual({ cursor: null })
    await stage.delta()
    fill(120)
    stage.pass(SECOND)
    fill(130)
    await stage.delta({ afterMs: 3 * SECOND })
    expect(await stage.rows()).toEqual({})
    await stage.delta()
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('a key deleted in the second of its last change stays deleted', async () => {
    const [first, second] = fill(2)
    customers()
    await stage.backfill()
    vendor.update('customer', first!, { name: 'x' })
    vendor.remove('customer', first!)
    vendor.update('customer', second!, { name: 'y' })
    vendor.update('customer', second!, { name: 'z' })
    await stage.delta()
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('NX13: updates of one second that span two pages end with the last one', async () => {
    const ids = fill(60)
    customers({ limit: 25 })
    await stage.backfill()
    stage.pass(SECOND)
    for (const round of [1, 2, 3]) for (const id of ids) vendor.update('customer', id, { name: `${id} ${round}` })
    await stage.delta()
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test('a cursor older than the log is an error', async () => {
    fill(1)
    customers()
    await stage.backfill()
    expect((await stage.delta({ afterMs: 31 * 86_400_000 })).error).toMatchObject({ code: 'HISTORY_LOST' })
  })
})

describe('faults', () => {
  test.each([
    ['a rate limit', { kind: 'rate-limit', retryAfter: '3' }],
    ['a server error', { kind: 'server-error', status: 503 }],
    ['a body cut off', { kind: 'truncated', how: 'cut-off' }],
    ['half a body', { kind: 'truncated', how: 'short' }],
    ['a page of HTML', { kind: 'html' }],
  ] as const)('%s is asked again, and nothing is lost', async (_, fault) => {
    fill(150)
    customers()
    vendor.faults.plan(fault, { times: 2, on: (request) => request.url.includes('/customers') })
    expect(await stage.backfill({ retriesMax: 5 })).toMatchObject({ stopReason: 'complete' })
    stage.pass(SECOND)
    fill(120)
    vendor.faults.plan(fault, { times: 2 })
    expect(await stage.delta({ retriesMax: 5 })).toMatchObject({ stopReason: 'complete' })
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })

  test.each(['backfill', 'delta'] as const)(
    'SOURCE_INVALID an empty page of the %s with has_more is not the end',
    async (half) => {
      fill(half === 'delta' ? 3 : 0)
      customers()
      if (half === 'delta') await stage.backfill()
      vendor.faults.plan(
        { kind: 'end-flag', value: 'more' },
        { times: 9, on: ({ url }) => /customers|ending_before/.test(url) },
      )
      expect((await stage[half]()).error).toMatchObject({
        code: 'SOURCE_INVALID',
        message: expect.stringContaining('empty page'),
      })
    },
  )

  test('rejected credentials are not retried', async () => {
    fill(1)
    customers()
    vendor.faults.plan({ kind: 'unauthorized' }, { times: 9 })
    expect((await stage.backfill()).error).toMatchObject({ code: 'AUTH_REJECTED' })
    expect(stage.asked()).toHaveLength(1)
  })

  test('a run that is interrupted anywhere is resumed, and no page is read twice', async () => {
    fill(450)
    customers()
    expect(await stage.untilComplete('backfill')).toBeGreaterThan(4)
    expect(await stage.rows()).toEqual(stage.truth('customer'))
    expect(
      queries()
        .filter((text) => text.startsWith('/v1/customers'))
        .filter((text, index, all) => all.indexOf(text) !== index),
    ).toEqual([])
    stage.pass(SECOND)
    fill(350)
    expect(await stage.untilComplete('delta')).toBeGreaterThan(3)
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })
})

test('a canceled subscription is listed and not swept', async () => {
  const ids = Array.from({ length: 10 }, () => vendor.create('subscription', { items: [] }))
  stage.track(source().subscriptions)
  vendor.remove('subscription', ids[0]!)
  await stage.backfill()
  vendor.remove('subscription', ids[1]!)
  await stage.delta()
  expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { deleted: 0 } })
  expect(await stage.rows()).toEqual(stage.truth('subscription'))
  expect(Object.keys(await stage.rows())).toHaveLength(10)
})

describe('objects inside objects', () => {
  const nested = { payment_method: 'payment_methods' }

  test('N42: land in their own database and are replaced by their ids', async () => {
    const methods = Array.from({ length: 5 }, () => vendor.create('payment_method', {}))
    for (const method of methods) vendor.create('payment_intent', { payment_method: method, amount: 100 })
    stage.track(source({ nested, expand: ['data.payment_method'] }).paymentIntents, ['payment_methods'])
    await stage.backfill()
    expect(await stage.rows()).toEqual(stage.truth('payment_intent'))
    expect(await stage.rows('payment_methods')).toEqual(stage.truth('payment_method'))
    vendor.create('payment_intent', { payment_method: methods[0]! })
    vendor.update('payment_method', methods[0]!, { metadata: { note: 'new' } })
    await stage.delta()
    expect(await stage.rows()).toEqual(stage.truth('payment_intent'))
  })

  test('N43 NX10: a nested list is read to its end', async () => {
    const lines = Array.from({ length: 230 }, (_, n) => ({ amount: n, description: `line ${n}` }))
    const invoice = vendor.create('invoice', { lines })
    stage.track(source({ nested: { line_item: 'lines' } }).invoices, ['lines'])
    await stage.backfill()
    expect(Object.keys(await stage.rows('lines'))).toHaveLength(230)
    const asked = queries()
    expect(asked.filter((text) => text.includes(`/v1/invoices/${invoice}/lines`))).toHaveLength(3)
  })

  test('N42 N43: the items of a subscription and their prices, which have their own endpoint, are read from the list and from events', async () => {
    const prices = [vendor.create('price', { unit_amount: 500 }), vendor.create('price', { unit_amount: 900 })]
    const subscription = vendor.create('subscription', {
      items: Array.from({ length: 25 }, (_, n) => ({ price: prices[n % 2]!, quantity: n })),
    })
    const ended = vendor.create('subscription', { items: [{ price: prices[0]!, quantity: 1 }] })
    stage.track(source({ nested: { subscription_item: 'items', price: 'prices' } }).subscriptions, ['items', 'prices'])
    const landed = async (): Promise<unknown> => {
      const [rows, items] = [(await stage.rows()) as any, (await stage.rows('items')) as any]
      return [
        rows[subscription].items.data.length,
        rows[ended]?.status,
        Object.keys(items).length,
        [...new Set(rows[subscription].items.data.map((id: string) => items[id].price))],
        items[rows[subscription].items.data[24]].quantity,
      ]
    }
    await stage.backfill()
    expect(
      queries().filter((text) => text.startsWith(`/v1/subscription_items?subscription=${subscription}&`)),
    ).toHaveLength(1)
    expect(await landed()).toEqual([25, 'active', 26, prices, 24])
    expect(await stage.rows('prices')).toEqual(stage.truth('price'))

    vendor.update('subscription', subscription, {
      items: Array.from({ length: 25 }, (_, n) => ({ price: prices[n % 2]!, quantity: n * 10 })),
    })
    vendor.remove('subscription', ended)
    await stage.delta()
    expect(await landed()).toEqual([25, 'canceled', 26, prices, 240])
  })
})

describe('a state of version 0.2.0, with its progress beside the cursor', () => {
  test('is continued: the pending objects are read and the wait is kept', async () => {
    const [id] = fill(1)
    customers()
    await stage.backfill()
    const { cursor, cursorTime } = await stage.state()
    const second = Math.floor(Date.parse(cursorTime as string) / 1_000)
    const waiting = { second: second + 100, atMs: 0 }
    const reading = { since: second, hasMore: false }
    await stage.setState({ cursor, cursorTime, pending: { customer: [id] }, reading, waiting })
    stage.asked()
    await stage.delta()
    expect(queries()).toContain(`/v1/customers/${id}?`)
    const state = await stage.state()
    expect(state).toMatchObject({ cursor, extra: { waiting, read: [{ since: second }] } })
    expect(Object.keys(state).toSorted()).toEqual(['cursor', 'cursorTime', 'extra'])
  })

  test('that waits for the first event is continued', async () => {
    customers()
    await stage.backfill()
    await stage.setState({ cursor: null, waiting: { second: 1, atMs: 0 } })
    await stage.delta()
    expect(await stage.state()).toEqual({ cursor: null })
    fill(1)
    await stage.delta()
    expect(await stage.rows()).toEqual(stage.truth('customer'))
  })
})
