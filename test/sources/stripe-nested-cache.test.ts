import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stripe } from '../../src/sources/stripe/source.ts'
import { StripeSimulator } from '../../simulators/src/index.ts'
import { MINUTE, SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<StripeSimulator>
let vendor: StripeSimulator

beforeEach(async () => {
  stage = await VendorFixture.open((ports) => new StripeSimulator(ports))
  vendor = stage.vendor
  vendor.conditions = { isCached: () => false }
  stage.track(stripe({ apiKey: 'STRIPE_KEY' }).invoices)
})
afterEach(() => stage.close())

const isNested = ({ url }: Request): boolean => url.includes('/lines')
const lines = (count: number, note: string): object[] =>
  Array.from({ length: count }, (_, n) => ({ amount: n, description: note }))

interface Invoice {
  readonly number: string
  readonly lines: { readonly data: ReadonlyArray<{ readonly description: string; readonly price?: unknown }> }
}

/** All published versions of each record, as its number and the notes of its lines. */
async function published(): Promise<unknown[]> {
  return (await stage.scene.feed()).map(({ text }) => {
    const {
      number,
      lines: { data },
    } = JSON.parse(text!) as Invoice
    return [number, data.length, [...new Set(data.map(({ description }) => description))]]
  })
}

describe('a cached page of a nested list', () => {
  test.each(['backfill', 'delta'] as const)(
    'N43 is not joined to a newer version of the object, in the %s',
    async (half) => {
      const id = vendor.create('invoice', { number: 'one', lines: lines(25, 'one') })
      stage.pass(MINUTE)
      await stage.backfill()
      vendor.update('invoice', id, { number: 'two', lines: lines(25, 'two') })
      vendor.conditions = { isCached: isNested }
      expect((await stage[half]()).error).toMatchObject({ code: 'SOURCE_INVALID' })
      expect(await published()).toEqual([['one', 25, ['one']]])
      vendor.conditions = {}
      expect(await stage[half]()).toMatchObject({ stopReason: 'complete' })
      expect(await published()).toEqual([
        ['one', 25, ['one']],
        ['two', 25, ['two']],
      ])
    },
  )

  test('N43 is not accepted as the complete list after lines were added', async () => {
    const id = vendor.create('invoice', { number: 'one', lines: lines(25, 'same') })
    stage.pass(MINUTE)
    await stage.backfill()
    vendor.update('invoice', id, { number: 'two', lines: lines(26, 'same') })
    vendor.conditions = { isCached: isNested }
    expect((await stage.backfill()).error).toMatchObject({ code: 'SOURCE_INVALID' })
    vendor.conditions = {}
    await stage.backfill()
    expect(await published()).toEqual([
      ['one', 25, ['same']],
      ['two', 26, ['same']],
    ])
  })

  test('N43 is read again with the event of a change that it does not contain yet', async () => {
    const id = vendor.create('invoice', { number: 'one', lines: lines(25, '') })
    const other = vendor.create('invoice', { number: 'other', lines: [] })
    const change = (number: string): void =>
      vendor.update('invoice', id, { number, lines: lines(25, '').with(20, { amount: 20, description: number }) })
    const landed = async (): Promise<unknown[]> => {
      const {
        number,
        lines: { data },
      } = (await stage.rows())[id] as unknown as Invoice
      return [number, data[20]!.description]
    }
    stage.pass(MINUTE)
    await stage.backfill()
    change('two')
    stage.pass(8 * SECOND)
    const { path, query } = stage.asked().findLast((request) => request.path.endsWith('/lines'))!
    const url = `https://api.stripe.com${path}?${new URLSearchParams(query).toString()}`
    await vendor.handle(new Request(url, { headers: { authorization: 'Bearer x' } }))
    // Nothing in this change reveals that the cached page is older.
    stage.pass(SECOND)
    change('three')
    stage.pass(SECOND)
    vendor.update('invoice', other, { number: 'other too' })
    vendor.conditions = { isCached: isNested }
    await stage.delta({ afterMs: 2 * SECOND })
    expect(await landed()).toEqual(['three', 'two'])
    vendor.conditions = {}
    await stage.delta()
    expect(await landed()).toEqual(['three', 'three'])
  })
})

test('N43 an object that changes while its lists are read is landed in one version', async () => {
  const id = vendor.create('invoice', { number: 'one', lines: lines(25, 'one') })
  stage.pass(MINUTE)
  let isChanged = false
  const result = await stage.backfill({
    spoil(body, { pathname }) {
      if (isChanged || !pathname.endsWith('/invoices')) return body
      // This response is of the old version, and the rest of the list of the new one.
      isChanged = true
      vendor.update('invoice', id, { number: 'two', lines: lines(25, 'one').with(20, lines(1, 'two')[0]!) })
      return body
    },
  })
  expect(result).toMatchObject({ stopReason: 'complete', error: null })
  const [{ number, lines: list }] = Object.values(await stage.rows()) as unknown as [Invoice]
  expect([isChanged, number, list.data[20]?.description]).toEqual([true, 'two', 'two'])
})

test('N43 the first items of a list may be expanded although later ones are not', async () => {
  vendor.create('invoice', {
    lines: Array.from({ length: 25 }, (_, n) => ({ amount: n, price: `price_${n}`, description: 'x' })),
  })
  stage.pass(MINUTE)
  const result = await stage.backfill({
    spoil(body) {
      const expand = ({ lines: list }: any): void =>
        list.data.forEach((line: any) => {
          line.price = { id: line.price, object: 'price', tiers: [] }
          line.only_on_request = 'sent'
        })
      for (const invoice of body.object === 'invoice' ? [body] : (body.data ?? []))
        if (invoice.lines !== undefined) expand(invoice)
      return body
    },
  })
  expect(result).toMatchObject({ stopReason: 'complete', error: null })
  const [invoice] = Object.values(await stage.rows()) as unknown as Invoice[]
  expect(invoice!.lines.data).toHaveLength(25)
})
