import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { alchemy, etherscan, evm, type EvmOptions } from '../../../src/sources/evm/source.ts'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { Secret } from '../../../src/redaction/secret.ts'
import { RandomStream } from '../../../src/testing/simulation/random-stream.ts'
import { AlchemySimulator } from '../../../simulators/src/indexers/alchemy-simulator.ts'
import { EtherscanSimulator } from '../../../simulators/src/indexers/etherscan-simulator.ts'
import { FakeChain, type TransactionDraft } from '../../../simulators/src/indexers/fake-chain.ts'
import { createSimulatorFetch } from '../../../simulators/src/kit/simulator-fetch.ts'
import { toRangePlan } from '../../../src/engine/range-plan.ts'
import type { TimeRange } from '../../../src/contract/index.ts'
import { HOUR, MINUTE, planOf, EngineFixture, SECOND } from '../../engine/engine-fixture.ts'

const ME = `0x${'aa'.repeat(20)}`
const OTHER = `0x${'bb'.repeat(20)}`

let scene: EngineFixture
let chain: FakeChain
let north: AlchemySimulator
let south: EtherscanSimulator
beforeEach(async () => {
  scene = await EngineFixture.open()
  const ports = { clock: scene.clock, random: new RandomStream(7, 'indexers') }
  chain = new FakeChain(ports)
  north = new AlchemySimulator(ports, chain)
  south = new EtherscanSimulator(ports, chain, { recordsMax: 4 })
})
afterEach(() => scene.close())

/** Incoming, outgoing, failed, zero and unrelated transfers. */
const pay = (n: number): TransactionDraft[] => [
  {
    from: OTHER,
    to: ME,
    value: BigInt(n + 1),
    tokens: [
      { from: OTHER, to: ME, value: 5n },
      { from: ME, to: OTHER, value: 6n },
    ],
  },
  { from: ME, to: OTHER, value: 3n },
  { from: ME, to: ME, value: 2n },
  { from: ME, to: OTHER, value: 9n, failed: true },
  { from: ME, to: OTHER, value: 0n },
  { from: OTHER, to: OTHER, value: 7n },
]
const live = (blocks: number): void => {
  for (let n = 0; n < blocks; n++) {
    scene.clock.step(12 * SECOND)
    chain.mine(n % 3 === 2 ? [] : pay(n))
  }
}

const providers = (): EvmOptions['providers'] => [
  alchemy({ name: 'north', url: 'https://north.test/v2/key', countMax: 3 }),
  etherscan({
    name: 'south',
    baseUrl: 'https://south.test/v2/api',
    apiKey: new Secret('key'),
    offset: 5,
    operations: ['native'],
  }),
]

function run(
  options: Partial<EvmOptions> = {},
  pagesMax = 1_000,
  retriesMax = 0,
  second: AlchemySimulator | EtherscanSimulator = south,
  sync = 'sync',
): Promise<CycleResult> {
  scene.clock.step(MINUTE)
  const { execute } = evm({
    address: ME,
    operations: ['native'],
    depth: 4,
    providers: providers(),
    ...options,
  }).transfers
  const [atNorth, atSouth] = [createSimulatorFetch(north), createSimulatorFetch(second)]
  return scene.run(planOf({ execute, sync, owner: 'shop/sync', limits: { pagesMax, retriesMax } }), {
    fetch: (input, init) => (new URL(input).host === 'north.test' ? atNorth : atSouth)(input, init),
  })
}

const truth = (kind: 'native' | 'token'): string[] =>
  chain.blocks
    .flatMap(({ transactions }) =>
      transactions
        .filter(({ failed }) => !failed)
        .flatMap(({ hash, from, to, value, tokens }) => {
          if (kind === 'native') return value > 0n && (from === ME || to === ME) ? [hash] : []
          return tokens
            .filter((token) => token.from === ME || token.to === ME)
            .map(({ logIndex }) => `${hash}:${logIndex}`)
        }),
    )
    .toSorted()
const tokenTruth = (): Record<string, string> =>
  Object.fromEntries(
    chain.blocks.flatMap(({ number, timestamp, transactions }) =>
      transactions.flatMap(({ hash, tokens: logs }) =>
        logs
          .filter(({ from, to }) => from === ME || to === ME)
          .map(({ logIndex, value }) => [`${hash}:${logIndex}`, `${number} ${timestamp} ${value}`]),
      ),
    ),
  )
const tokens = async (): Promise<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(await scene.rows()).map(([key, row]) => {
      const { blockNumber, timestamp, value } = row as { blockNumber: number; timestamp: string; value: string }
      return [key, `${blockNumber} ${Date.parse(timestamp) / 1_000} ${value}`]
    }),
  )
const rows = async (): Promise<string[]> => (await scene.keys()).toSorted()

describe('an account read from two indexes', () => {
  test.each(['north', 'south'] as const)('E32 %s alone reads everything, in pages that end anywhere', async (name) => {
    live(14)
    const alone = { providers: [providers()[name === 'north' ? 0 : 1]!] }
    expect((await run(alone)).stopReason).toBe('complete')
    expect(await rows()).toEqual(truth('native'))
    live(4)
    await run(alone)
    expect(await rows()).toEqual(truth('native'))
  })

  test('token transfers include their log index', async () => {
    live(9)
    await run({ operations: ['token'] })
    expect(await rows()).toEqual(truth('token'))
  })

  test('E35 E39 XC35 one provider fails between its pages, and the other continues', async () => {
    live(20)
    await run({ preferred: 'north' }, 3)
    north.failFor(10 * MINUTE)
    expect(await run({ preferred: 'north' })).toMatchObject({ stopReason: 'complete', endReason: 'switched_to_south' })
    expect(await rows()).toEqual(truth('native'))
    expect(await scene.feed()).toHaveLength(truth('native').length)
  })

  test('XC16 an expired page key costs one request only', async () => {
    live(20)
    await run({ preferred: 'north' }, 2)
    scene.clock.step(20 * MINUTE)
    expect((await run({ preferred: 'north' })).stopReason).toBe('complete')
    expect(await rows()).toEqual(truth('native'))
  })

  test('XC37 a provider that is behind the other does not end the cycle', async () => {
    live(12)
    await run({ preferred: 'north' })
    live(2)
    south.view.behindBlocks = 8
    north.failFor(2 * MINUTE)
    expect((await run({ preferred: 'south' })).error?.code).toBe('SOURCE_UNAVAILABLE')
    scene.clock.step(10 * MINUTE)
    expect((await run({ preferred: 'north' })).stopReason).toBe('complete')
    expect(await rows()).toEqual(truth('native'))
  })

  test('with enough confirmations, late index entries are not missed', async () => {
    south.view.recordsLagMs = 30 * SECOND
    north.failFor(60 * MINUTE)
    for (let round = 0; round < 6; round++) {
      live(2)
      await run({ confirmations: 3 })
    }
    live(3)
    await run({ confirmations: 3 })
    const settled = new Set(truth('native'))
    expect((await rows()).every((key) => settled.has(key))).toBe(true)
    live(4)
    scene.clock.step(MINUTE)
    await run({ confirmations: 0 })
    expect(await rows()).toEqual(truth('native'))
  })

  test('XC38 a reorganisation seen by both, and by one before the other', async () => {
    live(10)
    await run({ preferred: 'north' })
    south.view.freeze()
    chain.reorg(3, [pay(50), [], pay(51), pay(52)])
    await run({ preferred: 'north' })
    expect(await rows()).toEqual(truth('native'))
    // It still returns replaced blocks; once it has caught up, the copy is correct again.
    await run({ preferred: 'south' })
    south.view.thaw()
    live(1)
    await run({ preferred: 'south' })
    expect(await rows()).toEqual(truth('native'))
  })

  test('XC38 a replaced block of the same number and time, in which a log moved by one, lands the values of the new block', async () => {
    const only = { operations: ['token'] as const, providers: [providers()[0]!] }
    const twice: TransactionDraft = {
      hash: `0x${'12'.repeat(32)}`,
      from: OTHER,
      to: ME,
      tokens: [1n, 2n, 3n].map((value) => ({ from: OTHER, to: ME, value })),
    }
    const first: TransactionDraft = { from: OTHER, to: OTHER, tokens: [{ from: OTHER, to: OTHER, value: 9n }] }
    live(6)
    chain.mine([twice])
    await run(only)
    for (const drafts of [[first, twice], [twice], [first, twice], [first, first, twice]]) {
      chain.reorg(1, [drafts], { isSameTime: true })
      await run(only)
      expect(await tokens()).toEqual(tokenTruth())
    }
  })

  test.each([
    ['two nodes with an index', true],
    ['a node with an index and an explorer', false],
  ])('E34 %s: a change of providers costs a window of requests, not the range', async (_, isTwin) => {
    const ports = { clock: scene.clock, random: new RandomStream(8, 'second') }
    const second = isTwin ? new AlchemySimulator(ports, chain) : new EtherscanSimulator(ports, chain)
    const first = alchemy({ name: 'north', url: 'https://north.test/v2/key', countMax: 10 })
    const other = isTwin
      ? alchemy({ name: 'south', url: 'https://south.test/v2/key', countMax: 10 })
      : etherscan({ name: 'south', baseUrl: 'https://south.test/v2/api', apiKey: new Secret('key'), offset: 20 })
    live(300)
    const count = async (rate: number, sync: string, pair = [first, other]): Promise<number> => {
      for (const simulator of [north, second]) {
        simulator.requests.clear()
        simulator.faults.injectAtRates([[{ kind: 'server-error' }, rate]])
      }
      expect((await run({ providers: pair }, 10_000, 20, second, sync)).stopReason).toBe('complete')
      expect(await rows()).toEqual(truth('native'))
      return north.requests.count() + second.requests.count()
    }
    const least = Math.max(await count(0, 'north', [first]), await count(0, 'south', [other]))
    let requests = 0
    for (const sync of ['a', 'b', 'c']) requests += await count(0.06, sync)
    expect(requests / 3).toBeLessThanOrEqual(least * 1.3)
  })

  test('E49 with faults of every kind, reorganisations and interruptions after any page', async () => {
    for (const simulator of [north, south]) {
      simulator.faults.injectAtRates([
        [{ kind: 'server-error' }, 0.05],
        [{ kind: 'rate-limit' }, 0.05],
        [{ kind: 'rate-limit', secondary: true }, 0.03],
        [{ kind: 'truncated' }, 0.03],
        [{ kind: 'html' }, 0.02],
        [{ kind: 'short-page' }, 0.05],
        [{ kind: 'expired-token' }, 0.05],
        [{ kind: 'partial' }, 0.03],
        [{ kind: 'duplicate-page' }, 0.02],
      ])
    }
    for (let round = 0; round < 60; round++) {
      live(1)
      if (round % 13 === 12) chain.reorg(2, [pay(round), pay(round + 100), []])
      await run({}, 1 + (round % 4), 1)
    }
    for (const simulator of [north, south]) simulator.faults.clear()
    live(1)
    scene.clock.step(30 * MINUTE)
    await run()
    expect((await run()).stopReason).toBe('complete')
    expect(await rows()).toEqual(truth('native'))
  })
})

describe.each(['north', 'south'] as const)('times from %s', (name) => {
  const alone = { providers: [providers()[name === 'north' ? 0 : 1]!] }
  const timeOf = (block: number): string => new Date(chain.blocks[block]!.timestamp * 1_000).toISOString()
  const between = (from: number, to = Infinity): string[] =>
    chain.blocks
      .filter(({ number }) => number >= from && number < to)
      .flatMap(({ transactions }) =>
        transactions.filter((sent) => !sent.failed && sent.value > 0n && (sent.from === ME || sent.to === ME)),
      )
      .map(({ hash }) => hash)
      .toSorted()

  test('a start date begins at the first block with that time, and a later block of no time is missed', async () => {
    live(40)
    expect(await run({ ...alone, since: timeOf(25) })).toMatchObject({ stopReason: 'complete' })
    expect(await rows()).toEqual(between(25))
    live(6)
    await run({ ...alone, since: timeOf(25) })
    expect(await rows()).toEqual(between(25))
    await run({ ...alone, since: new Date(scene.clock.now() + HOUR).toISOString() }, 1_000, 0, south, 'later')
    expect(await rows()).toEqual(between(25))
  })

  test('a range reads the blocks between its times; the newest ones are left to the sync', async () => {
    live(40)
    const { execute } = evm({ address: ME, operations: ['native'], depth: 4, ...alone }).transfers
    const range = async (given: TimeRange): Promise<CycleResult> => {
      const [atNorth, atSouth] = [createSimulatorFetch(north), createSimulatorFetch(south)]
      return scene.run(toRangePlan(planOf({ execute, sync: 'sync', owner: 'shop/sync' }), given), {
        fetch: (input, init) => (new URL(input).host === 'north.test' ? atNorth : atSouth)(input, init),
      })
    }
    const bounded = await range({ from: timeOf(10), to: timeOf(20) })
    expect(bounded.stopReason).toBe('complete')
    expect(await rows()).toEqual(between(10, 20))
    await range({ from: timeOf(30) })
    expect(await rows()).toEqual([...between(10, 20), ...between(30, chain.head.number - 3)].toSorted())
    expect((await range({ from: timeOf(10) })).pages).toBeGreaterThan(bounded.pages)
  })
})
