import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stripe, type StripeOptions } from '../../src/sources/stripe/source.ts'
import { StripeSimulator } from '../../simulators/src/index.ts'
import { MINUTE, SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'
import { NO_PARTITIONS } from '../../src/values/partition-overlay.ts'

let stage: VendorFixture<StripeSimulator>
let vendor: StripeSimulator

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new StripeSimulator(ports))
  vendor = stage.vendor
})
afterEach(() => stage.close())

const source = (options: Partial<StripeOptions> = {}): ReturnType<typeof stripe> =>
  stripe({ apiKey: 'STRIPE_KEY', ...options })
const fill = (count: number): void =>
  void Array.from({ length: count }, (_, n) => vendor.create('customer', { name: `c${n}` }))
const changeAll = (times: number): void =>
  vendor.updateAll('customer', times, (id, round) => ({ name: `${id} ${round}` }))

describe('many objects that change several times within one second', () => {
  test.each([
    ['a fast vendor', 0, 0],
    ['a vendor that takes 1.3 s for each answer', 1_300, 0],
    ['a vendor that takes 1.3 s and fails 5 % of the requests', 1_300, 0.05],
  ])('cost %s one request per object beside the pages of the log', async (_, latencyMs, failures) => {
    fill(250)
    stage.pass(MINUTE)
    stage.track(source().customers)
    await stage.backfill()
    changeAll(4)
    stage.asked()
    vendor.conditions = { latencyMs }
    vendor.faults.injectAtRates([[{ kind: 'server-error' }, failures]])
    const result = await stage.delta({ retriesMax: 5 })
    expect(result).toMatchObject({ stopReason: 'complete', error: null, counts: { updated: 250 } })
    expect(await stage.rows()).toEqual(stage.truth('customer'))
    const asked = stage.asked()
    const answered = asked.filter(({ status }) => status === 200)
    expect(answered.filter(({ path }) => path === '/v1/events').length).toBeLessThanOrEqual(12)
    expect(answered.filter(({ path }) => path.startsWith('/v1/customers/')).length).toBe(250)
    expect(asked.length - answered.length).toBeLessThanOrEqual(failures === 0 ? 0 : 40)
  })

  test('are committed as they are read, so that an interrupted run keeps its progress', async () => {
    fill(30)
    stage.pass(MINUTE)
    stage.track(source({ limit: 25, followUpsMax: 4 }).customers)
    await stage.backfill()
    changeAll(3)
    stage.asked()
    let runs = 0
    for (;;) {
      const result = await stage.delta({
        onRequest: (request) => {
          if (request > 6) throw new Error('broken off')
        },
      })
      runs++
      if (result.stopReason === 'complete') break
      expect(runs).toBeLessThan(20)
    }
    expect(runs).toBeGreaterThan(5)
    expect(await stage.rows()).toEqual(stage.truth('customer'))
    // Only the interrupted page is read again.
    expect(stage.asked().filter(({ path }) => path.startsWith('/v1/customers/')).length).toBeLessThanOrEqual(
      30 + 4 * runs,
    )
  })

  test('are read in batches if there are more than a state can hold', async () => {
    fill(1_300)
    stage.pass(MINUTE)
    stage.track(source().customers)
    await stage.backfill()
    changeAll(2)
    stage.pass(2 * SECOND)
    vendor.create('customer', { name: 'after' })
    stage.asked()
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete' })
    expect(await stage.rows()).toEqual(stage.truth('customer'))
    expect(stage.asked().filter(({ path }) => path.startsWith('/v1/customers/')).length).toBeLessThanOrEqual(1_300)
  })

  test('never show an older version, however the log is paged', async () => {
    for (const limit of [1, 2, 3, 7]) {
      await stage.close()
      stage = await VendorFixture.open((ports) => new StripeSimulator(ports), limit)
      vendor = stage.vendor
      fill(5)
      stage.pass(MINUTE)
      stage.track(source({ limit }).customers)
      await stage.backfill()
      for (let cycle = 0; cycle < 3; cycle++) {
        for (let second = 0; second < 3; second++) {
          stage.pass(SECOND)
          vendor.updateAll('customer', 3, (_id, round) => ({
            name: String(cycle * 100 + second * 10 + round).padStart(4, '0'),
          }))
        }
        await stage.delta({ afterMs: cycle * 11 * SECOND })
      }
      await stage.delta()
      expect(await stage.rows()).toEqual(stage.truth('customer'))
      const newest = new Map<string, string>()
      for (const { key, text, action } of await stage.scene.feed()) {
        if (action === 'created') continue
        const { name } = JSON.parse(text!) as { name: string }
        expect(name > (newest.get(key) ?? ''), `${limit}: ${key} ${name} after ${newest.get(key)}`).toBe(true)
        newest.set(key, name)
      }
    }
  })
})

describe('objects inside objects', () => {
  const lines = (count: number, note = ''): object[] =>
    Array.from({ length: count }, (_, n) => ({ amount: n, description: `line ${n} ${note}` }))
  /** The expected rows of a nested database. */
  const wholeLines = (): Record<string, unknown> =>
    Object.fromEntries(
      vendor.records.current('invoice').flatMap(({ id, fields }) =>
        (fields['lines'] as object[]).map((line, at) => {
          const key = `il_${id.slice('in_'.length)}${String(at).padStart(4, '0')}`
          return [key, { id: key, object: 'line_item', ...line }]
        }),
      ),
    )

  test('N43 a page whose lists exceed the request budget is split and always makes progress', async () => {
    for (let n = 0; n < 31; n++) vendor.create('invoice', { number: `i${n}`, lines: lines(250) })
    stage.pass(MINUTE)
    stage.track(source({ nested: { line_item: 'lines' } }).invoices, ['lines'])
    const result = await stage.backfill()
    expect(result).toMatchObject({ stopReason: 'complete', error: null })
    // Three more pages each.
    expect(stage.asked().filter(({ path }) => path.endsWith('/lines'))).toHaveLength(93)
    expect(result.pages).toBeGreaterThan(3)
    expect(await stage.rows('lines')).toEqual(wholeLines())
    expect(Object.keys(await stage.rows())).toHaveLength(31)

    vendor.updateAll('invoice', 2, (_id, round) => ({ lines: lines(250, `round ${round}`) }))
    expect(await stage.delta()).toMatchObject({ stopReason: 'complete', error: null })
    expect(await stage.rows('lines')).toEqual(wholeLines())
  })

  test('N43 one object whose lists exceed the request budget is read completely', async () => {
    vendor.create('invoice', { lines: lines(2_600) })
    stage.pass(MINUTE)
    stage.track(source({ nested: { line_item: 'lines' } }).invoices, ['lines'])
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete', error: null })
    expect(Object.keys(await stage.rows('lines'))).toHaveLength(2_600)
  })

  test('N43 a failed request for one list does not discard the lists before it', async () => {
    for (let n = 0; n < 10; n++) vendor.create('invoice', { lines: lines(105) })
    stage.pass(MINUTE)
    stage.track(source().invoices)
    let nested = 0
    vendor.faults.plan({ kind: 'server-error' }, { on: ({ url }) => url.includes('/lines') && ++nested === 8 })
    expect(await stage.backfill({ retriesMax: 3 })).toMatchObject({ stopReason: 'complete', error: null })
    expect(stage.asked().filter(({ path }) => path.endsWith('/lines'))).toHaveLength(11)
  })

  test('N43 a previous page served again for a nested list is not accepted as the next', async () => {
    vendor.create('invoice', { lines: lines(330) })
    stage.pass(MINUTE)
    stage.track(source({ nested: { line_item: 'lines' } }).invoices, ['lines'])
    vendor.faults.plan({ kind: 'duplicate-page' }, { on: ({ url }) => url.includes('/lines') && url.includes('0109') })
    expect(await stage.backfill({ retriesMax: 3 })).toMatchObject({ stopReason: 'complete', error: null })
    expect(await stage.rows('lines')).toEqual(wholeLines())
  })

  describe('N43 an object that changes while its lists are read', () => {
    const read = async (half: 'backfill' | 'delta', change: (id: string) => void): Promise<void> => {
      const id = vendor.records.current('invoice')[0]!.id
      let isChanged = false
      await stage[half]({
        onRequest() {
          const isListed = stage.vendor.requests.entries.some(
            ({ path }) => path.endsWith(`/${id}`) || path.endsWith('/invoices'),
          )
          if (!isListed || isChanged) return
          isChanged = true
          change(id)
        },
      })
    }
    const landed = async (): Promise<unknown[]> =>
      (await stage.scene.feed())
        .filter(({ text }) => text !== null)
        .map(({ text }) => {
          const {
            number,
            lines: { data },
          } = JSON.parse(text!) as { number: string; lines: { data: Array<{ description: string }> } }
          return [number, data.length, [...new Set(data.map(({ description }) => description.split(' ')[2]))]]
        })

    test.each(['backfill', 'delta'] as const)('lands complete in one of its versions, in the %s', async (half) => {
      const id = vendor.create('invoice', { number: 'one', lines: lines(25, 'one') })
      stage.pass(MINUTE)
      stage.track(source().invoices)
      if (half === 'delta') await stage.backfill()
      if (half === 'delta') vendor.update('invoice', id, { number: 'two', lines: lines(25, 'two') })
      stage.asked()
      await read(half, () => vendor.update('invoice', id, { number: 'last', lines: lines(12, 'last') }))
      expect((await landed()).at(-1)).toEqual(['last', 12, ['last']])
      for (const version of await landed())
        expect(version).toEqual([expect.anything(), expect.anything(), [(version as unknown[])[0]]])
    })

    test('is omitted when it is deleted', async () => {
      const id = vendor.create('invoice', { number: 'one', lines: lines(25, 'one') })
      vendor.create('invoice', { number: 'two', lines: lines(2, 'two') })
      stage.pass(MINUTE)
      stage.track(source().invoices)
      await read('backfill', () => vendor.remove('invoice', id))
      expect(await landed()).toEqual([['two', 2, ['two']]])
    })
  })

  test('N42 are extracted by the delta and by the backfill alike', async () => {
    const options = { nested: { payment_method: 'payment_methods' }, expand: ['data.payment_method'] }
    const methods = Array.from({ length: 3 }, () => vendor.create('payment_method', {}))
    vendor.create('payment_intent', { payment_method: methods[0]!, amount: 100 })
    stage.pass(MINUTE)
    stage.track(source(options).paymentIntents, ['payment_methods'])
    await stage.backfill()
    expect(Object.keys(await stage.rows('payment_methods'))).toEqual([methods[0]])
    // Events contain only the id of the method, and Stripe sends none for the method itself.
    vendor.create('payment_intent', { payment_method: methods[1]!, amount: 200 })
    const plain = vendor.create('payment_intent', { amount: 300 })
    vendor.update('payment_method', methods[1]!, { metadata: { note: 'new' } })
    stage.asked()
    await stage.delta()
    const byKey = stage.truth('payment_method')
    expect(await stage.rows('payment_methods')).toEqual({
      [methods[0]!]: byKey[methods[0]!],
      [methods[1]!]: byKey[methods[1]!],
    })
    expect(await stage.rows()).toEqual(stage.truth('payment_intent'))
    // Nothing to expand, so no request.
    expect(stage.asked().filter(({ path }) => path.endsWith(plain))).toHaveLength(0)
  })

  test('N42 without their own database they stay in the record, in the delta and in the backfill', async () => {
    const method = vendor.create('payment_method', {})
    stage.pass(MINUTE)
    const { paymentIntents } = source({ expand: ['data.payment_method'] })
    stage.track(paymentIntents)
    await stage.backfill()
    const intent = vendor.create('payment_intent', { payment_method: method })
    await stage.delta()
    const whole = { ...stage.truth('payment_intent')[intent], payment_method: stage.truth('payment_method')[method] }
    expect(await stage.rows()).toEqual({ [intent]: whole })
    await stage.backfill()
    expect(await stage.rows()).toEqual({ [intent]: whole })
  })

  test('N42 an object nested in others that change within the same second lands in its current version', async () => {
    const price = vendor.create('price', { unit_amount: 1 })
    const subscriptions = Array.from({ length: 6 }, () =>
      vendor.create('subscription', { items: [{ price, quantity: 1 }] }),
    )
    stage.pass(MINUTE)
    stage.track(source({ nested: { subscription_item: 'items', price: 'prices' }, limit: 4 }).subscriptions, [
      'items',
      'prices',
    ])
    await stage.backfill()
    for (let cycle = 0; cycle < 4; cycle++) {
      subscriptions.forEach((id, at) => {
        vendor.update('subscription', id, { items: [{ price, quantity: cycle * 100 + at }] })
        vendor.update('price', price, { unit_amount: cycle * 100 + at })
      })
      await stage.delta({ afterMs: cycle % 2 === 0 ? MINUTE : 12 * SECOND })
    }
    await stage.delta()
    expect(await stage.rows('prices')).toEqual(stage.truth('price'))
  })

  test('a lookup returns the record that the backfill lists', async () => {
    vendor.create('invoice', { lines: lines(130) })
    stage.pass(MINUTE)
    const { invoices } = source()
    stage.track(invoices)
    await stage.backfill()
    const [[key, row]] = Object.entries(await stage.rows()) as [[string, unknown]]
    const context = {
      ...stage.scene.ports,
      fetch: (url: string | URL, init?: RequestInit) => vendor.handle(new Request(url, init)),
      signal: new AbortController().signal,
      secrets: { get: () => 'key' },
      pacer: { wait: async () => {} },
      partitions: NO_PARTITIONS,
      cycle: { id: 1, mode: 'replace', startedAt: 0, page: 1 },
    } as const
    expect(await invoices.lookup(key, context)).toMatchObject({ type: 'upsert', key, record: row })
  })
})
