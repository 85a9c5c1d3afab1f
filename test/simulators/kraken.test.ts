import { describe, expect, test } from 'vitest'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { KRAKEN_CREDENTIALS, KrakenSimulator, type KrakenOptions } from '../../simulators/src/kraken/simulator.ts'
import { krakenSignature } from '../../simulators/src/kraken/signature.ts'
import { portsOf } from './ports.ts'

interface Answer {
  error: string[]
  result?: {
    ledger: Record<string, Record<string, unknown>>
    trades: Record<string, Record<string, unknown>>
    count?: number
  }
}

function open(options: KrakenOptions = {}, seed = 1) {
  const ports = portsOf(seed)
  const simulator = new KrakenSimulator(ports, options)
  const fetch = createSimulatorFetch(simulator)
  let nonce = 1_000
  const post = (
    method: string,
    params: Record<string, string> = {},
    { key = KRAKEN_CREDENTIALS.key, secret = KRAKEN_CREDENTIALS.secret } = {},
  ) => {
    const path = `/0/private/${method}`
    const body = new URLSearchParams({ nonce: String(++nonce), ...params }).toString()
    const sign = krakenSignature(path, new URLSearchParams(body).get('nonce')!, body, secret)
    return fetch(`https://api.kraken.com${path}`, {
      method: 'POST',
      body,
      headers: { 'api-key': key, 'api-sign': sign, 'content-type': 'application/x-www-form-urlencoded' },
    })
  }
  const ask = async (method: string, params?: Record<string, string>) =>
    (await (await post(method, params)).json()) as Answer
  const refused = async (method: string, params?: Record<string, string>) => (await ask(method, params)).error
  const ledgers = async (params?: Record<string, string>) => Object.keys((await ask('Ledgers', params)).result!.ledger)
  const get = async (path: string) =>
    (await (await fetch(`https://api.kraken.com/0/public/${path}`)).json()) as {
      error: string[]
      result?: Record<string, unknown>
    }
  /** One deposit per second, the last one newest. */
  const deposits = (count: number) =>
    Array.from({ length: count }, (_, n) => {
      ports.clock.advance(1_000)
      return simulator.create('ledger', { amount: `${n}.0000` })
    })
  return { ...ports, simulator, post, ask, refused, ledgers, get, deposits }
}

const START = Date.UTC(2026, 0, 1) / 1_000

describe('the ledger', () => {
  test('is listed newest first, fifty at a time by offset, and a page behind the end is empty with a count', async () => {
    const { ask, ledgers, deposits } = open()
    const ids = deposits(120)
    const first = await ask('Ledgers')
    expect([Object.keys(first.result!.ledger), first.result!.count, first.error]).toEqual([
      ids.slice(70).toReversed(),
      120,
      [],
    ])
    expect(first.result!.ledger[ids[119]!]).toEqual({
      refid: expect.stringMatching(/^T/),
      time: START + 120,
      type: 'deposit',
      subtype: '',
      aclass: 'currency',
      asset: 'ZUSD',
      amount: '119.0000',
      fee: '0.0000',
      balance: '0.0000',
    })
    expect(ids[0]).toMatch(/^L[A-Z2-7]{5}-[A-Z2-7]{5}-[A-Z2-7]{6}$/)
    expect(await ledgers({ ofs: '50' })).toEqual(ids.slice(20, 70).toReversed())
    expect(await ledgers({ ofs: '100' })).toEqual(ids.slice(0, 20).toReversed())
    expect((await ask('Ledgers', { ofs: '150' })).result).toEqual({ ledger: {}, count: 120 })
    expect((await ask('Ledgers', { ofs: '120', without_count: 'true' })).result).toEqual({ ledger: {} })
  })

  test('excludes entries at start and includes entries at end, by time and by id', async () => {
    const { ledgers, deposits } = open()
    const ids = deposits(5)
    expect(await ledgers({ start: String(START + 2), end: String(START + 4) })).toEqual([ids[3], ids[2]])
    expect(await ledgers({ start: `${START + 1.5}` })).toEqual([ids[4], ids[3], ids[2], ids[1]])
    expect(await ledgers({ start: ids[1]!, end: ids[3]! })).toEqual([ids[3], ids[2]])
  })

  test('has entries with one timestamp that a start at that time loses, and a start at an id does not', async () => {
    const { simulator, clock, ask, ledgers } = open()
    clock.advance(5_000)
    const { trade, ledgers: pair } = simulator.addFill({ type: 'buy', price: 200, vol: 2 })
    const both = (await ask('Ledgers')).result!.ledger
    expect(pair.map((id) => both[id])).toMatchObject([
      { refid: trade, asset: 'XXBT', amount: '2.0000000000', time: START + 5 },
      { refid: trade, asset: 'ZUSD', amount: '-400.0000000000', time: START + 5 },
    ])
    expect(await ledgers({ start: String(START + 5) })).toEqual([])
    expect(await ledgers({ start: pair[0]! })).toEqual([pair[1]])
  })

  test('counts an offset within the range of start, so that the same offset is another entry', async () => {
    const { ledgers, deposits } = open()
    const ids = deposits(60)
    expect(await ledgers({ ofs: '50' })).toEqual(ids.slice(0, 10).toReversed())
    expect(await ledgers({ ofs: '50', start: String(START + 10) })).toEqual([])
  })

  test('changes under a reader: a new entry pushes the others across the page boundary', async () => {
    const { simulator, ledgers, deposits } = open()
    deposits(60)
    const first = await ledgers()
    simulator.create('ledger')
    const second = await ledgers({ ofs: '50' })
    expect(second.filter((id) => first.includes(id))).toHaveLength(1)
  })

  test('can be filtered by type and by asset, under either name', async () => {
    const { simulator, ledgers, deposits } = open()
    const [deposit] = deposits(1)
    const {
      ledgers: [bitcoin, dollars],
    } = simulator.addFill()
    expect(await ledgers({ type: 'deposit' })).toEqual([deposit])
    expect(await ledgers({ asset: 'XBT' })).toEqual([bitcoin])
    expect(await ledgers({ asset: 'ZUSD,ADA' })).toEqual([dollars, deposit])
  })

  test('shows a late entry below the ones that were read already', async () => {
    const { simulator, clock, ledgers, deposits } = open()
    simulator.records.lag = { share: 1, maxMs: 60_000 }
    const [late] = deposits(1)
    simulator.records.lag = { share: 0, maxMs: 0 }
    const [early] = deposits(1)
    expect(await ledgers()).toEqual([early])
    clock.advance(60_000)
    expect(await ledgers()).toEqual([early, late])
  })
})

describe('the history of trades', () => {
  test('is listed like the ledger, and an account without positions has none of them', async () => {
    const { simulator, clock, ask } = open()
    const ids = Array.from({ length: 51 }, () => {
      clock.advance(1_000)
      return simulator.addFill().trade
    })
    const { result } = await ask('TradesHistory')
    expect([Object.keys(result!.trades), result!.count]).toEqual([ids.slice(1).toReversed(), 51])
    expect(result!.trades[ids[50]!]).toMatchObject({
      ordertxid: expect.stringMatching(/^O/),
      pair: 'XXBTZUSD',
      time: START + 51,
      type: 'buy',
      ordertype: 'limit',
      price: '100.00000',
      cost: '100.00000',
      vol: '1.00000000',
      maker: true,
      trade_id: expect.any(Number),
    })
    expect(Object.keys((await ask('TradesHistory', { ofs: '50' })).result!.trades)).toEqual([ids[0]])
    expect((await ask('TradesHistory', { type: 'any position' })).result).toEqual({ trades: {}, count: 0 })
  })
})

describe('public trades', () => {
  test('are listed oldest first after a time in nanoseconds, and last continues until nothing is new', async () => {
    const { simulator, clock, get } = open()
    for (let n = 0; n < 5; n++) {
      clock.advance(1)
      simulator.create('public-trade', { price: `${n}.0`, vol: '1.0', type: n % 2 === 0 ? 'buy' : 'sell' })
    }
    simulator.create('public-trade', { pair: 'XETHZUSD', price: '9.0' })
    const page = async (query: string) => {
      const { XXBTZUSD, last } = (await get(`Trades?pair=xbtusd&count=2${query}`)).result as {
        XXBTZUSD: unknown[][]
        last: string
      }
      return { prices: XXBTZUSD.map(([price]) => price), last, first: XXBTZUSD[0] }
    }
    const first = await page('&since=0')
    expect(first).toMatchObject({
      prices: ['0.0', '1.0'],
      last: expect.stringMatching(/^\d{19}$/),
      first: ['0.0', '1.0', expect.any(Number), 'b', 'l', '', expect.any(Number)],
    })
    const second = await page(`&since=${first.last}`)
    const third = await page(`&since=${second.last}`)
    expect([second.prices, third.prices]).toEqual([['2.0', '3.0'], ['4.0']])
    expect(await page(`&since=${third.last}`)).toEqual({ prices: [], last: third.last, first: undefined })
    expect((await page('')).prices).toEqual(['3.0', '4.0'])
    expect((await page(`&since=${START - 1}`)).prices).toEqual(['0.0', '1.0'])
  })

  test('of one nanosecond are cut by a page, and the rest of them is lost to a reader that continues from last', async () => {
    const { simulator, get } = open()
    for (const price of ['1.0', '2.0', '3.0'])
      simulator.create('public-trade', { price, timeNs: '1767225600000000001' })
    const { last } = (await get('Trades?pair=XXBTZUSD&count=2&since=0')).result as { last: string }
    expect((await get(`Trades?pair=XXBTZUSD&since=${last}`)).result).toEqual({ XXBTZUSD: [], last })
  })
})

describe('refusals of kraken, with status 200', () => {
  test.each([
    ['Ledgers', { ofs: '-1' }, 'EGeneral:Invalid arguments:ofs'],
    ['Ledgers', { type: 'gift' }, 'EGeneral:Invalid arguments:type'],
    ['Ledgers', { start: 'LNOBOD-YKNOW-STHIS0' }, 'EGeneral:Invalid arguments:start'],
    ['Ledgers', { asset: 'NOTHING' }, 'EQuery:Unknown asset'],
    ['TradesHistory', { type: 'trade' }, 'EGeneral:Invalid arguments:type'],
    ['Nothing', {}, 'EGeneral:Unknown method'],
  ])('%s with %j', async (method, params, code) => {
    const response = await open().post(method, params as Record<string, string>)
    expect([response.status, await response.json()]).toEqual([200, { error: [code] }])
  })

  test('an unknown pair and a page of public trades that is too large', async () => {
    const { get } = open()
    expect(await get('Trades?pair=NOTHING')).toEqual({ error: ['EQuery:Unknown asset pair'] })
    expect(await get('Trades?pair=XBTUSD&count=1001')).toEqual({ error: ['EGeneral:Invalid arguments:count'] })
  })

  test('an unknown key, a wrong signature, and a key without the permission', async () => {
    const { post, refused } = open({ permissions: ['trades'] })
    expect(await (await post('Ledgers', {}, { key: 'other' })).json()).toEqual({ error: ['EAPI:Invalid key'] })
    expect(await (await post('Ledgers', {}, { secret: 'b3RoZXI=' })).json()).toEqual({
      error: ['EAPI:Invalid signature'],
    })
    expect(await refused('Ledgers')).toEqual(['EGeneral:Permission denied'])
    expect(await refused('TradesHistory')).toEqual([])
  })

  test('a nonce that does not increase, unless the key has a window, and never twice', async () => {
    const { refused } = open()
    expect(await refused('Ledgers', { nonce: '5000' })).toEqual([])
    expect(await refused('Ledgers', { nonce: '5000' })).toEqual(['EAPI:Invalid nonce'])
    expect(await refused('Ledgers', { nonce: '4999' })).toEqual(['EAPI:Invalid nonce'])
    expect(await refused('Ledgers', { nonce: 'soon' })).toEqual(['EAPI:Invalid nonce'])
    expect(await refused('Ledgers', { nonce: '5001' })).toEqual([])
    const windowed = open({ nonceWindow: 10 })
    expect(await windowed.refused('Ledgers', { nonce: '5000' })).toEqual([])
    expect(await windowed.refused('Ledgers', { nonce: '4991' })).toEqual([])
    expect(await windowed.refused('Ledgers', { nonce: '4991' })).toEqual(['EAPI:Invalid nonce'])
    expect(await windowed.refused('Ledgers', { nonce: '4990' })).toEqual(['EAPI:Invalid nonce'])
  })

  test.each([
    ['starter', 7, 9_100],
    ['intermediate', 10, 8_000],
    ['pro', 10, 4_000],
  ] as const)(
    'the %s counter allows %i calls of history, and after a refusal one more %i ms later',
    async (tier, calls, laterMs) => {
      const { clock, refused } = open({ tier })
      for (let n = 0; n < calls; n++) expect(await refused('Ledgers')).toEqual([])
      expect(await refused('Ledgers')).toEqual(['EAPI:Rate limit exceeded'])
      clock.advance(laterMs)
      expect(await refused('Ledgers')).toEqual([])
    },
  )

  test('refused calls count too: a reader that keeps retrying is never admitted', async () => {
    const { clock, refused } = open({ tier: 'starter' })
    for (let n = 0; n < 12; n++) await refused('Ledgers')
    for (let n = 0; n < 100; n++) {
      clock.advance(5_000)
      expect(await refused('Ledgers')).toEqual(['EAPI:Rate limit exceeded'])
    }
  })
})

describe('faults of the kraken simulator', () => {
  test('the count can be too low or too high, and a page can be short', async () => {
    const { simulator, ask, deposits } = open()
    deposits(60)
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect((await ask('Ledgers')).result!.count).toBe(50)
    simulator.faults.plan({ kind: 'end-flag', value: 'more' })
    expect((await ask('Ledgers', { ofs: '50' })).result!.count).toBe(110)
    simulator.faults.plan({ kind: 'short-page' })
    const short = (await ask('Ledgers')).result!
    expect([Object.keys(short.ledger).length, short.count]).toEqual([25, 60])
  })

  test('limits, an unknown key and an outage have its own error format', async () => {
    const { simulator, clock, post, refused } = open()
    simulator.faults.plan({ kind: 'rate-limit' })
    expect(await refused('Ledgers')).toEqual(['EAPI:Rate limit exceeded'])
    simulator.faults.plan({ kind: 'rate-limit', secondary: true })
    expect(await refused('Ledgers')).toEqual([`EService:Throttled: ${clock.now() / 1_000 + 5}`])
    simulator.faults.plan({ kind: 'unauthorized' })
    expect(await refused('Ledgers')).toEqual(['EAPI:Invalid key'])
    simulator.faults.plan({ kind: 'server-error', status: 520 })
    const down = await post('Ledgers')
    expect([down.status, await down.json()]).toEqual([520, { error: ['EService:Unavailable'] }])
  })

  test('one seed gives one run, to the last byte, with late entries and faults', async () => {
    const run = async () => {
      const { simulator, clock, post } = open({ lag: { share: 0.3, maxMs: 20_000 } }, 11)
      simulator.faults.injectAtRates([
        [{ kind: 'rate-limit' }, 0.1],
        [{ kind: 'server-error' }, 0.1],
        [{ kind: 'truncated', how: 'short' }, 0.1],
        [{ kind: 'duplicate-page' }, 0.1],
      ])
      const answers: string[] = []
      for (let n = 0; n < 30; n++) {
        simulator.addFill()
        clock.advance(700)
        const response = await post('Ledgers')
        answers.push(`${response.status} ${await response.text()}`)
      }
      return answers
    }
    const first = await run()
    expect(await run()).toEqual(first)
    expect(new Set(first.map((answer) => answer.slice(0, 3))).size).toBeGreaterThan(1)
  })
})
