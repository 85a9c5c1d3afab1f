import { expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../../src/redaction/secret.ts'
import { alchemy, etherscan, evm } from '../../../src/sources/evm/source.ts'
import { RandomStream } from '../../../src/testing/simulation/random-stream.ts'
import { AlchemySimulator } from '../../../simulators/src/indexers/alchemy-simulator.ts'
import { EtherscanSimulator } from '../../../simulators/src/indexers/etherscan-simulator.ts'
import { FakeChain, type TransactionDraft } from '../../../simulators/src/indexers/fake-chain.ts'
import { createSimulatorFetch } from '../../../simulators/src/kit/simulator-fetch.ts'
import { MINUTE, planOf, EngineFixture, SECOND } from '../../engine/engine-fixture.ts'

const ME = `0x${'aa'.repeat(20)}`
const OTHER = `0x${'bb'.repeat(20)}`
const ROUNDS = 150
/** World 12 lost rows before responses to other requests were rejected. */
const WORLDS =
  process.env['TIDEMARK_SEEDS'] === undefined
    ? [5, 12]
    : Array.from({ length: Number(process.env['TIDEMARK_SEEDS']) }, (_, n) => n + 1)

const payments = (n: number): TransactionDraft[] => [
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

test.each(WORLDS)(
  'XC38 a long run over two providers with faults, lags and reorgs ends with the canonical chain: world %d',
  async (seed) => {
    const scene = await EngineFixture.open()
    onTestFinished(() => scene.close())
    const ports = { clock: scene.clock, random: new RandomStream(seed, 'indexers') }
    const chance = new RandomStream(seed, 'fate')
    const chain = new FakeChain(ports)
    const north = new AlchemySimulator(ports, chain)
    const south = new EtherscanSimulator(ports, chain, { recordsMax: 4 })
    const simulators = [north, south]
    for (const { faults } of simulators) {
      faults.injectAtRates([
        [{ kind: 'server-error' }, 0.04],
        [{ kind: 'rate-limit' }, 0.03],
        [{ kind: 'rate-limit', secondary: true }, 0.02],
        [{ kind: 'truncated' }, 0.02],
        [{ kind: 'html' }, 0.02],
        [{ kind: 'short-page' }, 0.05],
        [{ kind: 'expired-token' }, 0.05],
        [{ kind: 'partial' }, 0.03],
        [{ kind: 'duplicate-page' }, 0.02],
      ])
    }
    const mine = (blocks: number): void => {
      for (let n = 0; n < blocks; n++) {
        scene.clock.step(12 * SECOND)
        chain.mine(n % 3 === 2 ? [] : payments(n))
      }
    }
    const reorg = (round: number): void => {
      const depth = chance.int(1, 3)
      const replaced = chain.blocks
        .slice(-depth)
        .map(({ transactions }) =>
          transactions
            .filter(() => chance.chance(0.7))
            .map(({ hash, from, to, value, failed }) => ({ hash, from, to, value, failed })),
        )
      const isShorter = chance.chance(0.3) && replaced.length > 1
      const blocks = isShorter ? replaced.slice(0, -1) : [...replaced, []]
      chain.reorg(
        depth,
        blocks.map((drafts, at) => (at === 0 ? [...payments(round).slice(0, chance.int(0, 2)), ...drafts] : drafts)),
        { isSameTime: chance.chance(0.5) },
      )
    }
    const run = (preferred: string, pagesMax: number, retriesMax: number) => {
      scene.clock.step(MINUTE)
      const providers = [
        alchemy({ name: 'north', url: 'https://north.test/v2/key', countMax: 3 }),
        etherscan({
          name: 'south',
          baseUrl: 'https://south.test/v2/api',
          apiKey: new Secret('key'),
          offset: 5,
          operations: ['native'],
        }),
      ]
      const { execute } = evm({ address: ME, operations: ['native'], depth: 24, providers, preferred }).transfers
      const [atNorth, atSouth] = [createSimulatorFetch(north), createSimulatorFetch(south)]
      return scene.run(planOf({ execute, sync: 'sync', owner: 'shop/sync', limits: { pagesMax, retriesMax } }), {
        fetch: (input, init) => (new URL(input).host === 'north.test' ? atNorth : atSouth)(input, init),
      })
    }

    for (let round = 0; round < ROUNDS; round++) {
      mine(chance.int(0, 3))
      if (chance.chance(0.15) && chain.blocks.length > 5) reorg(round)
      for (const simulator of simulators) {
        if (chance.chance(0.06)) simulator.failFor(chance.int(1, 20) * MINUTE)
        if (chance.chance(0.1)) simulator.view.behindBlocks = chance.pick([0, 0, 1, 3, 6])
        if (chance.chance(0.04)) simulator.view.freeze()
        if (chance.chance(0.3)) simulator.view.thaw()
      }
      await run(chance.pick(['north', 'south']), chance.pick([1, 2, 5, 1_000]), chance.int(0, 3))
      for (const { requests } of simulators) {
        expect(requests.count(), 'requests of one cycle').toBeLessThan(5_000)
        requests.clear()
      }
    }
    for (const { faults, view } of simulators) {
      faults.clear()
      view.thaw()
      view.behindBlocks = 0
    }
    mine(1)
    for (let n = 0; n < 4; n++) {
      scene.clock.step(30 * MINUTE)
      expect((await run('north', 1_000, 3)).stopReason).toBe('complete')
    }
    const truth = chain.blocks.flatMap(({ transactions }) =>
      transactions
        .filter(({ failed, value, from, to }) => !failed && value > 0n && (from === ME || to === ME))
        .map(({ hash }) => hash),
    )
    expect((await scene.keys()).toSorted()).toEqual(truth.toSorted())
  },
)
