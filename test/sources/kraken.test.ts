import { afterEach, describe, expect, test } from 'vitest'
import type { FailoverState } from '../../src/strategies/index.ts'
import { kraken, type KrakenOptions } from '../../src/sources/kraken/source.ts'
import { signRequest } from '../../src/sources/kraken/sign-request.ts'
import { Secret } from '../../src/redaction/secret.ts'
import { KRAKEN_CREDENTIALS, KrakenSimulator } from '../../simulators/src/kraken/simulator.ts'
import { MINUTE, SECOND } from '../engine/engine-fixture.ts'
import { VendorFixture } from './vendor-fixture.ts'

let stage: VendorFixture<KrakenSimulator>
afterEach(() => stage?.close())

const SECRETS = { apiKey: new Secret(KRAKEN_CREDENTIALS.key), apiSecret: new Secret(KRAKEN_CREDENTIALS.secret) }

async function open(
  stream: 'ledgers' | 'trades' = 'ledgers',
  options: Partial<KrakenOptions> = {},
  sim: ConstructorParameters<typeof KrakenSimulator>[1] = {},
): Promise<KrakenSimulator> {
  stage = await VendorFixture.open((ports) => new KrakenSimulator(ports, sim))
  stage.list(kraken({ ...SECRETS, ...options })[stream])
  return stage.vendor
}

const rows = async (): Promise<string[]> => Object.keys(await stage.rows()).toSorted()
const truth = (type = 'ledger'): string[] => Object.keys(stage.truth(type)).toSorted()
const state = (): Promise<FailoverState> => stage.state()
const forms = (): URLSearchParams[] => stage.asked().map(({ body }) => new URLSearchParams(body))
const fill = (vendor: KrakenSimulator, fills: number, apartMs = SECOND): void => {
  for (let n = 0; n < fills; n++) {
    vendor.addFill()
    stage.pass(apartMs)
  }
}

describe('a start date', () => {
  test('only entries from it on are read, and the next cycle continues as without one', async () => {
    const vendor = await open()
    fill(vendor, 5)
    stage.pass(10 * MINUTE)
    const since = new Date(stage.scene.clock.now()).toISOString()
    const before = truth()
    fill(vendor, 60)
    stage.list(kraken({ ...SECRETS, since }).ledgers)
    expect(await stage.backfill()).toMatchObject({ stopReason: 'complete' })
    expect(Number(forms()[0]?.get('start'))).toBe(Math.floor(Date.parse(since) / SECOND) - 1)
    const wanted = truth().filter((id) => !before.includes(id))
    expect(await rows()).toEqual(wanted)
    fill(vendor, 3)
    await stage.backfill()
    expect(await rows()).toEqual(truth().filter((id) => !before.includes(id)))
  })

  test('a range reads the entries between its times, from its start up to, not at, its end', async () => {
    const vendor = await open()
    fill(vendor, 70)
    const from = new Date(stage.scene.clock.now()).toISOString()
    const before = truth()
    fill(vendor, 70)
    const to = new Date(stage.scene.clock.now()).toISOString()
    const between = truth().filter((id) => !before.includes(id))
    fill(vendor, 70)
    expect(await stage.range({ from, to })).toMatchObject({ stopReason: 'complete' })
    expect(await rows()).toEqual(between)
    await stage.backfill()
    const state = JSON.stringify(await stage.state())
    await stage.range({ from })
    expect(JSON.stringify(await stage.state())).toBe(state)
    expect(await rows()).toEqual(truth())
  })

  test('a date that is none is refused', () => {
    expect(() => kraken({ ...SECRETS, since: 'soon' })).toThrow('`since` is "soon"')
  })
})

describe('kraken', () => {
  test('the signature matches the documentation', () => {
    const form = new URLSearchParams('nonce=1616492376594&ordertype=limit&pair=XBTUSD&price=37500&type=buy&volume=1.25')
    const secret = new Secret(
      'kQH5HW/8p1uGOVjbgWA7FunAmGO8lsSUXNsu3eow76sz84Q18fWxnyRzBHCd3pd5nE9qa99HAZtuZuj6F1huXg==',
    )
    expect(signRequest('/0/private/AddOrder', form, secret)).toBe(
      '4/dpxb3iT4tp/ZCVEwSnEsLxx0bqyhLpdfOpc6fn7OR8+UClSV5n9E6aSS8MPtnRfp32bAb0nmbRn6H8ndwLUQ==',
    )
  })

  test('E42 E43 E44 the cursor is a time, the offset is kept beside it, and an empty batch ends the list', async () => {
    const vendor = await open()
    fill(vendor, 60)
    expect((await stage.backfill({ pagesMax: 2 })).stopReason).toBe('max_pages')
    const under = JSON.parse((await stage.scene.checkpoint()).inflight!.state!) as FailoverState
    expect(under.cursors.ledger).toMatchObject({
      primary: { type: 'timestamp', value: 0 },
      metadata: { offset: 100, isComplete: false },
    })
    const last = await stage.backfill()
    expect(last.stopReason).toBe('complete')
    expect(await rows()).toEqual(truth())
    const { cursors } = await state()
    expect(cursors.ledger).toMatchObject({
      primary: { type: 'timestamp' },
      totalFetched: 120,
      metadata: { offset: 0, isComplete: true },
    })
    expect(forms().map((form) => form.get('ofs'))).toEqual(['0', '50', '100', '120'])
  })

  test('EX7 the bounds stay fixed while the offset advances, and the next cycle starts where this one ended', async () => {
    const vendor = await open()
    fill(vendor, 60)
    await stage.backfill()
    const first = forms()
    expect(new Set(first.map((form) => `${form.get('start')}..${form.get('end')}`)).size).toBe(1)
    fill(vendor, 60)
    await stage.backfill()
    const second = forms()
    expect(new Set(second.map((form) => `${form.get('start')}..${form.get('end')}`)).size).toBe(1)
    expect(Number(second[0]!.get('start'))).toBeLessThan(Number(first[0]!.get('end')))
    expect(await rows()).toEqual(truth())
  })

  test('T7 a wrong empty list does not move the boundary, and its entries arrive with the next cycle', async () => {
    const vendor = await open()
    fill(vendor, 20)
    await stage.backfill()
    fill(vendor, 20, MINUTE)
    await stage.backfill({ spoil: () => ({ error: [], result: { ledger: {}, count: 0 } }) })
    stage.pass(30 * MINUTE)
    await stage.backfill()
    expect(await rows()).toEqual(truth())
  })

  test('EX7 entries written during the read hide no other entry', async () => {
    const vendor = await open()
    fill(vendor, 130)
    await stage.backfill({ onRequest: () => fill(vendor, 3, 10) })
    expect((await stage.backfill({ afterMs: 5 * MINUTE })).stopReason).toBe('complete')
    expect(await rows()).toEqual(truth())
  })

  test('a late entry within the bounds is not skipped', async () => {
    const vendor = await open()
    fill(vendor, 60)
    const late = stage.scene.clock.now() / 1_000 - 10
    await stage.backfill({
      onRequest: (request) => {
        if (request === 3) vendor.create('ledger', { time: late })
      },
    })
    expect(await rows()).toEqual(truth())
    expect(forms().map((form) => form.get('ofs'))).toEqual(['0', '50', '100', '0', '50', '100', '121'])
  })

  test('a new cycle re-reads the newest entries, so that a late one is found', async () => {
    const vendor = await open()
    fill(vendor, 5)
    await stage.backfill()
    vendor.create('ledger', { time: stage.scene.clock.now() / 1_000 - 30 })
    await stage.backfill({ afterMs: 30 * SECOND })
    expect(await rows()).toEqual(truth())
    const feed = (await stage.scene.feed()).map(({ key }) => key)
    expect(feed.length).toBe(new Set(feed).size)
  })

  test('trades are read the same way', async () => {
    const vendor = await open('trades')
    fill(vendor, 75)
    await stage.backfill()
    expect(await rows()).toEqual(truth('trade'))
  })

  test.each(['starter', 'intermediate', 'pro'] as const)(
    'NX2 within the counter of the %s tier no call is rejected',
    async (tier) => {
      const vendor = await open('ledgers', { tier }, { tier })
      fill(vendor, 600)
      expect(await stage.backfill({ retriesMax: 5 })).toMatchObject({ stopReason: 'complete', retries: 0 })
      expect(await rows()).toEqual(truth())
      expect(stage.asked().length).toBe(25)
    },
  )

  test('NX2 a counter that others have filled is waited for once, and landed entries stay', async () => {
    // The source assumes a faster tier than the account has, as if others used its key.
    const vendor = await open('ledgers', { tier: 'pro' }, { tier: 'starter' })
    fill(vendor, 250)
    const result = await stage.backfill({ retriesMax: 5 })
    expect(result).toMatchObject({ stopReason: 'complete', pages: 11 })
    expect(result.retries).toBeLessThanOrEqual(4)
    expect(stage.asked().length).toBe(11 + result.retries)
    expect(await rows()).toEqual(truth())
  })

  test('NX2 a counter that never decays ends the cycle after a few rejections, and the next cycle continues', async () => {
    const vendor = await open('ledgers')
    fill(vendor, 250)
    await stage.backfill({ pagesMax: 7 })
    vendor.faults.injectAtRates([[{ kind: 'rate-limit' }, 1]])
    expect((await stage.backfill({ retriesMax: 5 })).error).toMatchObject({ code: 'RATE_LIMITED' })
    expect(stage.asked().length).toBe(7 + 6)
    expect((await rows()).length).toBe(350)
    vendor.faults.clear()
    expect((await stage.backfill({ afterMs: 10 * MINUTE })).stopReason).toBe('complete')
    expect(await rows()).toEqual(truth())
  })

  test('NX2 a throttled request is retried at the time that Kraken specifies', async () => {
    const vendor = await open('ledgers')
    fill(vendor, 10)
    vendor.faults.plan({ kind: 'rate-limit', secondary: true })
    const result = await stage.backfill({ retriesMax: 5 })
    expect(result).toMatchObject({ stopReason: 'complete', retries: 1 })
    expect(result.waitedMs).toBeGreaterThanOrEqual(4 * SECOND)
    expect(result.waitedMs).toBeLessThanOrEqual(6 * SECOND)
  })

  test('a rejected key is not retried', async () => {
    await open('ledgers', { apiSecret: new Secret(Buffer.from('wrong').toString('base64')) })
    expect((await stage.backfill({ retriesMax: 5 })).error).toMatchObject({ code: 'AUTH_REJECTED' })
  })

  test('E49 with faults at any request and interruptions after any page, every entry lands exactly once', async () => {
    const vendor = await open()
    fill(vendor, 90)
    vendor.faults.injectAtRates([
      [{ kind: 'server-error' }, 0.1],
      [{ kind: 'rate-limit' }, 0.1],
      [{ kind: 'truncated' }, 0.1],
      [{ kind: 'html' }, 0.05],
      [{ kind: 'short-page' }, 0.1],
    ])
    for (let round = 0; round < 80; round++) {
      await stage.backfill({ pagesMax: 1 + (round % 3), afterMs: MINUTE })
      if (round % 7 === 0 && round < 40) fill(vendor, 2)
    }
    vendor.faults.clear()
    await stage.backfill({ afterMs: 10 * MINUTE })
    expect((await stage.backfill({ afterMs: 10 * MINUTE })).stopReason).toBe('complete')
    expect(await rows()).toEqual(truth())
    const feed = (await stage.scene.feed()).map(({ key }) => key)
    expect(feed.length).toBe(new Set(feed).size)
  })
})
