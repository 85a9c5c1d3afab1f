import ccxt, { type Exchange } from 'ccxt'
import { describe, expect, test } from 'vitest'
import { serve } from '../../simulators/src/kit/serve.ts'
import { KRAKEN_CREDENTIALS, KrakenSimulator } from '../../simulators/src/kraken/simulator.ts'
import { portsOf } from './ports.ts'

// A separate file, because the library takes seconds to load.

async function open() {
  const ports = portsOf()
  const simulator = new KrakenSimulator(ports)
  const server = await serve(simulator)
  return {
    ...ports,
    simulator,
    server,
    client: clientOf(server.url),
    clientOf: (secret: string) => clientOf(server.url, secret),
    [Symbol.asyncDispose]: () => server.close(),
  }
}

function clientOf(url: string, secret = KRAKEN_CREDENTIALS.secret): Exchange {
  const client = new ccxt.kraken({ apiKey: KRAKEN_CREDENTIALS.key, secret, enableRateLimit: false })
  client.urls['api'] = { public: url, private: url }
  // Its default nonce is the millisecond, and two requests fall into one here.
  let nonce = Date.now()
  client.nonce = () => ++nonce
  return client
}

describe('the ccxt client against the kraken simulator', () => {
  test('ccxt signs, pages the ledger by offset, and sees every entry once', async () => {
    await using kraken = await open()
    const { simulator, clock, client } = kraken
    for (let n = 0; n < 40; n++) {
      clock.advance(1_000)
      simulator.addFill({ vol: n + 1 })
    }
    const seen: string[] = []
    for (let ofs = 0; ; ofs += 50) {
      const page = await client.fetchLedger(undefined, undefined, undefined, { ofs })
      if (page.length === 0) break
      seen.push(...page.map((entry) => entry.id!))
    }
    expect(seen.toSorted()).toEqual(
      simulator
        .truth('ledger')
        .map((entry) => String(entry['id']))
        .toSorted(),
    )
    const [entry] = await client.fetchLedger('BTC', undefined, 1)
    expect(entry).toMatchObject({
      currency: 'BTC',
      amount: 40,
      direction: 'in',
      type: 'trade',
      timestamp: Date.UTC(2026, 0, 1) + 40_000,
    })
  })

  test('ccxt reads trades of the account and of the market', async () => {
    await using kraken = await open()
    const { simulator, clock, client } = kraken
    clock.advance(1_000)
    const { trade } = simulator.addFill({ type: 'sell', price: 30_000, vol: 0.5 })
    simulator.create('public-trade', { price: '30000.0', vol: '0.5', type: 'sell' })
    const [own] = await client.fetchMyTrades('BTC/USD')
    expect(own).toMatchObject({ id: trade, symbol: 'BTC/USD', side: 'sell', price: 30_000, amount: 0.5, cost: 15_000 })
    const [market] = await client.fetchTrades('BTC/USD', Date.UTC(2026, 0, 1))
    expect(market).toMatchObject({ side: 'sell', price: 30_000, amount: 0.5 })
  })

  test('ccxt throws its own errors for a limit, a wrong secret, an unknown key, a used nonce and an outage', async () => {
    await using kraken = await open()
    const { simulator, client } = kraken
    await client.loadMarkets()
    simulator.faults.plan({ kind: 'rate-limit' })
    await expect(client.fetchLedger()).rejects.toBeInstanceOf(ccxt.DDoSProtection)
    await expect(kraken.clientOf(Buffer.from('wrong').toString('base64')).fetchLedger()).rejects.toThrow(
      'EAPI:Invalid signature',
    )
    simulator.faults.plan({ kind: 'unauthorized' })
    await expect(client.fetchLedger()).rejects.toBeInstanceOf(ccxt.AuthenticationError)
    simulator.faults.plan({ kind: 'server-error', status: 520 })
    await expect(client.fetchLedger()).rejects.toBeInstanceOf(ccxt.ExchangeNotAvailable)
    await client.fetchLedger()
    client.nonce = () => 1
    await expect(client.fetchLedger()).rejects.toThrow(ccxt.InvalidNonce)
  })
})
