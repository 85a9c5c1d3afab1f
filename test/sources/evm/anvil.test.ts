import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { FailoverState } from '../../../src/strategies/index.ts'
import {
  alchemy,
  etherscan,
  evm,
  rpc,
  type ChainProviderFactory,
  type EvmOptions,
} from '../../../src/sources/evm/source.ts'
import { createFetch } from '../../../src/platform/fetch.ts'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { runCycle } from '../../../src/worker/run-cycle.ts'
import type { Store } from '../../../src/contract/index.ts'
import { parseJson } from '../../../src/values/json.ts'
import { ACCOUNTS, Anvil } from './anvil.ts'
import { ChainProvider } from './chain-provider.ts'

const [, me, other] = ACCOUNTS
const ME = me!.address

let chain: Anvil
let contract: `0x${string}`
let store: Store
const fronts: ChainProvider[] = []

beforeAll(async () => {
  chain = await Anvil.start()
  contract = await chain.deployToken()
})
afterAll(() => chain.stop())
beforeEach(async () => void (store = await openSqliteStore({ file: ':memory:' })))
afterEach(async () => {
  await store.close()
  for (const front of fronts.splice(0)) await front.close()
})

const fetch = createFetch({})
async function front(kind: ChainProvider['kind']): Promise<ChainProvider> {
  const opened = await ChainProvider.open(kind, chain.url)
  fronts.push(opened)
  return opened
}
const node = (at: ChainProvider | Anvil, name = 'node', more: object = {}): ChainProviderFactory =>
  rpc({ name, url: at.url, ...more })
const startBlock = async (): Promise<number> => Number(await chain.client.getBlockNumber()) + 1

async function run(options: Omit<EvmOptions, 'address'>, more: { pagesMax?: number } = {}): Promise<CycleResult> {
  const { transfers } = evm({ address: ME, ...options })
  return runCycle({
    worker: 'wallet',
    store,
    fetch,
    sync: { name: 'transfers', database: 'transfers', ...transfers, limits: { retriesMax: 0, ...more } },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  })
}

async function landed(): Promise<Record<string, Record<string, unknown>>> {
  const rows = await store.rows({ database: 'transfers', limit: 100_000 })
  return Object.fromEntries(rows.map(({ key, text }) => [key, parseJson(text) as Record<string, unknown>]))
}

/** The current chain, read with another client. */
async function truth(from: number): Promise<Record<string, Record<string, unknown>>> {
  const found: Record<string, Record<string, unknown>> = {}
  const head = Number(await chain.client.getBlockNumber())
  for (let number = from; number <= head; number++) {
    const block = await chain.client.getBlock({ blockNumber: BigInt(number), includeTransactions: true })
    const common = { blockNumber: number, timestamp: new Date(Number(block.timestamp) * 1_000).toISOString() }
    for (const transaction of block.transactions) {
      if (
        transaction.value > 0n &&
        [transaction.from, transaction.to].some((address) => address?.toLowerCase() === ME.toLowerCase())
      ) {
        found[transaction.hash] = {
          kind: 'native',
          transactionHash: transaction.hash,
          logIndex: null,
          ...common,
          from: transaction.from,
          to: transaction.to,
          value: String(transaction.value),
          contract: null,
        }
      }
    }
    for (const log of await chain.client.getLogs({ blockHash: block.hash })) {
      const [, sender, recipient] = log.topics.map((topic) => `0x${topic.slice(26)}`)
      if (sender !== ME.toLowerCase() && recipient !== ME.toLowerCase()) continue
      found[`${log.transactionHash}:${log.logIndex}`] = {
        kind: 'token',
        transactionHash: log.transactionHash,
        logIndex: log.logIndex,
        ...common,
        from: sender,
        to: recipient,
        value: String(BigInt(log.data)),
        contract: log.address.toLowerCase(),
      }
    }
  }
  return found
}

/** Mines blocks, each with a payment and two token transfers, one of them of another account. */
async function live(blocks: number): Promise<void> {
  for (let n = 0; n < blocks; n++) {
    await chain.sendNative(ME, BigInt(1_000 + n))
    await chain.sendToken(contract, ME, BigInt(1 + n))
    await chain.sendToken(contract, other!.address, 7n)
    await chain.mine()
  }
}

const feedOf = async (): Promise<string[]> =>
  (await store.changes({ after: 0, limit: 100_000 })).map(({ action, key }) => `${action} ${key}`)

describe('an account on a real chain', () => {
  test('E49 its native and token transfers land, and no others', async () => {
    const from = await startBlock()
    await live(5)
    const first = await run({
      providers: [node(chain, 'node', { logBlocksMax: 2, wholeBlocksMax: 2 })],
      startBlock: from,
    })
    expect(first).toMatchObject({ stopReason: 'complete', counts: { created: 10 } })
    expect(await landed()).toEqual(await truth(from))
    await live(2)
    expect((await run({ providers: [node(chain)], startBlock: from })).counts).toMatchObject({
      created: 4,
      unchanged: 0,
    })
    expect(await landed()).toEqual(await truth(from))
  })

  test('XC35 E39 every provider lands the same row, and any of them can continue for another', async () => {
    const from = await startBlock()
    await live(12)
    const alchemyFront = await front('alchemy')
    const etherscanFront = await front('etherscan')
    const nodeFront = await front('node')
    const providers = [
      alchemy({ name: 'alchemy', url: `${alchemyFront.url}/v2/key`, countMax: 2 }),
      etherscan({
        name: 'etherscan',
        baseUrl: `${etherscanFront.url}/v2/api`,
        apiKey: 'KEY',
        chainId: 31_337,
        offset: 3,
      }),
      node(nodeFront, 'node', { logBlocksMax: 3, wholeBlocksMax: 3 }),
    ]
    const plan = { providers, startBlock: from, depth: 3, chainId: 31_337 }
    process.env['KEY'] = 'a-key'
    await run(plan, { pagesMax: 2 })
    alchemyFront.isDown = true
    await run(plan, { pagesMax: 3 })
    etherscanFront.isDown = true
    expect((await run(plan)).stopReason).toBe('complete')
    expect(await landed()).toEqual(await truth(from))
    const feed = await feedOf()
    expect(feed).toHaveLength(24)
    expect(new Set(feed).size).toBe(24)
  })

  test.each(['alchemy', 'etherscan', 'node'] as const)('E32 %s alone reads everything', async (kind) => {
    const from = await startBlock()
    await live(6)
    const at = await front(kind)
    process.env['KEY'] = 'a-key'
    const reader =
      kind === 'alchemy'
        ? alchemy({ name: kind, url: `${at.url}/v2/key`, countMax: 2 })
        : kind === 'etherscan'
          ? etherscan({ name: kind, baseUrl: `${at.url}/v2/api`, apiKey: 'KEY', chainId: 31_337, offset: 2 })
          : node(at)
    for (let cycle = 0; cycle < 2; cycle++) {
      expect((await run({ providers: [reader], startBlock: from, depth: 2 })).stopReason).toBe('complete')
      expect(await landed()).toEqual(await truth(from))
      await live(1)
    }
  })

  test('XC38 a reorganisation: transfers of replaced blocks are deleted, and those of new blocks land', async () => {
    const from = await startBlock()
    await live(6)
    await run({ providers: [node(chain)], startBlock: from })
    const before = await landed()
    await chain.reorg(3)
    const result = await run({ providers: [node(chain)], startBlock: from })
    expect(result.counts.deleted).toBe(6)
    expect(await landed()).toEqual(await truth(from))
    expect(Object.keys(before).length - Object.keys(await landed()).length).toBe(6)
    await live(3)
    await run({ providers: [node(chain)], startBlock: from })
    expect(await landed()).toEqual(await truth(from))
  })

  test('XC38 a reorganisation is repaired by another provider, after many more blocks, and in pieces', async () => {
    const from = await startBlock()
    await live(6)
    await run({ providers: [node(chain, 'first')], startBlock: from, depth: 4 })
    await chain.reorg(3)
    await live(8)
    const at = await front('alchemy')
    const plan = {
      providers: [alchemy({ name: 'second', url: `${at.url}/v2/key`, countMax: 2 })],
      startBlock: from,
      depth: 4,
    }
    for (let runs = 0; runs < 60; runs++) if ((await run(plan, { pagesMax: 1 })).stopReason === 'complete') break
    expect(await landed()).toEqual(await truth(from))
  })

  test('XC38 a chain that became shorter loses the transfers of its removed blocks', async () => {
    const from = await startBlock()
    await live(5)
    await run({ providers: [node(chain)], startBlock: from })
    await chain.client.request({ method: 'anvil_rollback' as never, params: [2] as never })
    expect((await run({ providers: [node(chain)], startBlock: from })).stopReason).toBe('complete')
    await live(1)
    await run({ providers: [node(chain)], startBlock: from })
    expect(await landed()).toEqual(await truth(from))
    await live(3)
    await run({ providers: [node(chain)], startBlock: from })
    expect(await landed()).toEqual(await truth(from))
  })

  test('a chain that changes during the read is read again', async () => {
    const from = await startBlock()
    await live(4)
    const at = await front('node')
    at.onMethod = async (method) => {
      if (method !== 'eth_getLogs') return
      at.onMethod = null
      await chain.reorg(2)
    }
    const result = await run({ providers: [node(at), node(chain, 'other')], operations: ['token'], startBlock: from })
    expect(result.stopReason).toBe('complete')
    expect(await landed()).toEqual(
      Object.fromEntries(Object.entries(await truth(from)).filter(([, { kind }]) => kind === 'token')),
    )
  })

  test('a range with too many results is halved until it fits', async () => {
    const from = await startBlock()
    await live(8)
    const at = await front('node')
    at.logsMax = 3
    expect((await run({ providers: [node(at)], startBlock: from })).stopReason).toBe('complete')
    expect(await landed()).toEqual(await truth(from))
    expect(at.refused).toBeGreaterThan(0)
    const state = JSON.parse(
      (await store.readCheckpoint({ worker: 'wallet', sync: 'transfers' })).committed!,
    ) as FailoverState
    expect(state.cursors.token!.metadata!.custom).toMatchObject({ span: expect.any(Number) })
  })

  test('a node of another chain is rejected, and its key is never shown', async () => {
    const from = await startBlock()
    await live(1)
    const wrong = await run({ providers: [node(chain)], startBlock: from, chainId: 1 })
    expect(wrong.error).toMatchObject({ code: 'SOURCE_INVALID' })
    const at = await front('node')
    at.isDown = true
    process.env['NODE_URL'] = `${at.url}/v2/very-secret-key`
    const down = await run({ providers: [rpc({ name: 'node', url: { secret: 'NODE_URL' } })], startBlock: from })
    expect(down.error!.code).toBe('SOURCE_UNAVAILABLE')
    expect(JSON.stringify(down)).not.toContain('very-secret')
    expect((await store.readCheckpoint({ worker: 'wallet', sync: 'transfers' })).inflight?.state ?? '').not.toContain(
      'very-secret',
    )
  })
})
