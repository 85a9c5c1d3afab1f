import { createPublicClient, http } from 'viem'
import { describe, expect, test } from 'vitest'
import { AlchemySimulator, type AlchemyOptions } from '../../simulators/src/indexers/alchemy-simulator.ts'
import { EtherscanSimulator, type EtherscanOptions } from '../../simulators/src/indexers/etherscan-simulator.ts'
import { FakeChain } from '../../simulators/src/indexers/fake-chain.ts'
import type { IndexerSimulator } from '../../simulators/src/indexers/indexer-simulator.ts'
import { MoralisSimulator } from '../../simulators/src/indexers/moralis-simulator.ts'
import { createSimulatorFetch } from '../../simulators/src/kit/simulator-fetch.ts'
import { serve } from '../../simulators/src/kit/serve.ts'
import { portsOf } from './ports.ts'

type Row = Record<string, string>
interface Listed {
  status: string
  message: string
  result: Row[] | string | null
}
interface Transfers {
  transfers: Array<{
    blockNum: string
    uniqueId: string
    hash: string
    value: number
    category: string
    rawContract: Record<string, string | null>
    metadata?: { blockTimestamp: string }
  }>
  pageKey?: string
}
interface Wallet {
  page: number
  cursor: string | null
  result: Row[]
}

const ME = `0x${'aa'.repeat(20)}`
const OTHER = `0x${'bb'.repeat(20)}`
const ERROR_NO_KEY = 'Page key is not found or expired, please try again with a valid page key'

function chainOf() {
  const ports = portsOf()
  const chain = new FakeChain(ports)
  /** One block per twelve seconds, each with this many payments to me of 1, 2, 3, … wei. */
  let paid = 0n
  const pay = (blocks: number, perBlock = 1) => {
    for (let n = 0; n < blocks; n++) {
      ports.clock.advance(12_000)
      chain.mine(Array.from({ length: perBlock }, () => ({ from: OTHER, to: ME, value: ++paid })))
    }
  }
  return { ...ports, chain, pay }
}

function openEtherscan(options: EtherscanOptions = {}) {
  const world = chainOf()
  const simulator = new EtherscanSimulator(world, world.chain, options)
  const get = (params: Record<string, string>) =>
    createSimulatorFetch(simulator)(
      `https://api.etherscan.io/v2/api?${new URLSearchParams({ module: 'account', action: 'txlist', address: ME, sort: 'asc', ...params }).toString()}`,
    )
  const list = async (params: Record<string, string> = {}) => (await (await get(params)).json()) as Listed
  const values = async (params: Record<string, string> = {}) =>
    ((await list(params)).result as Row[]).map((row) => Number(row['value']))
  return { ...world, simulator, get, list, values }
}

function openAlchemy(options: AlchemyOptions = {}) {
  const world = chainOf()
  const simulator = new AlchemySimulator(world, world.chain, options)
  const call = (method: string, params: unknown[], key = 'demo') =>
    createSimulatorFetch(simulator)(`https://eth-mainnet.g.alchemy.com/v2/${key}`, {
      method: 'POST',
      body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
    })
  const rpc = async (method: string, params: unknown[] = []) =>
    (await (await call(method, params)).json()) as {
      id: number
      result?: unknown
      error?: { code: number; message: string }
    }
  const ask = (params: object) =>
    rpc('alchemy_getAssetTransfers', [{ category: ['external'], toAddress: ME, ...params }])
  const transfers = async (params: object = {}) => (await ask(params)).result as Transfers
  const blocks = async (params: object = {}) =>
    (await transfers(params)).transfers.map((transfer) => Number(transfer.blockNum))
  return { ...world, simulator, call, rpc, ask, transfers, blocks }
}

function openMoralis() {
  const world = chainOf()
  const simulator = new MoralisSimulator(world, world.chain, { apiKey: 'secret' })
  const get = (params: Record<string, string> = {}, path = '', key = 'secret') =>
    createSimulatorFetch(simulator)(
      `https://deep-index.moralis.io/api/v2.2/${ME}${path}?${new URLSearchParams({ chain: '0x1', ...params }).toString()}`,
      { headers: { 'x-api-key': key } },
    )
  const list = async (params?: Record<string, string>, path?: string) =>
    (await (await get(params, path)).json()) as Wallet
  return { ...world, simulator, get, list }
}

/** A transaction with transfers of every kind. */
const RICH = {
  from: OTHER,
  to: ME,
  value: 5n,
  internal: [{ from: OTHER, to: ME, value: 7n }],
  tokens: [
    { from: OTHER, to: ME, value: 1_500_000n },
    { from: OTHER, to: ME, value: 1_500_000n },
  ],
}

describe('the etherscan-like indexer', () => {
  test('lists transactions, internal and token transfers as text, each as documented', async () => {
    const { chain, clock, list } = openEtherscan()
    clock.advance(12_000)
    const block = chain.mine([RICH, { from: ME, to: OTHER, value: 9n, failed: true }])
    const { hash } = block.transactions[0]!
    const common = { blockNumber: '1', timeStamp: String(block.timestamp), hash }
    const transactions = await list()
    expect(transactions).toMatchObject({
      status: '1',
      message: 'OK',
      result: [
        {
          ...common,
          blockHash: block.hash,
          transactionIndex: '0',
          from: OTHER,
          to: ME,
          value: '5',
          isError: '0',
          confirmations: '1',
        },
        { from: ME, value: '9', isError: '1', txreceipt_status: '0' },
      ],
    })
    const [internal] = (await list({ action: 'txlistinternal' })).result as Row[]
    expect(internal).toMatchObject({ ...common, value: '7', type: 'call', traceId: '0_0' })
    expect(internal).not.toHaveProperty('blockHash')
    const tokens = (await list({ action: 'tokentx' })).result as Row[]
    expect(tokens[0]).toMatchObject({
      ...common,
      value: '1500000',
      tokenSymbol: 'USDC',
      tokenDecimal: '6',
      contractAddress: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48',
    })
    expect(tokens[1]).toEqual(tokens[0])
    expect((await list({ action: 'tokentx', contractaddress: OTHER })).message).toBe('No transactions found')
  })

  test('pages between two inclusive blocks, up or down, and ends with an empty page that has status 0', async () => {
    const { values, list, pay } = openEtherscan()
    pay(5)
    expect(await values({ startblock: '2', endblock: '4' })).toEqual([2, 3, 4])
    expect(await values({ sort: 'desc', page: '1', offset: '2' })).toEqual([5, 4])
    expect(await values({ page: '3', offset: '2' })).toEqual([5])
    expect(await list({ page: '4', offset: '2' })).toEqual({
      status: '0',
      message: 'No transactions found',
      result: [],
    })
  })

  test('cuts a page in the middle of a block', async () => {
    const { list, pay } = openEtherscan()
    pay(2, 3)
    expect(((await list({ page: '1', offset: '4' })).result as Row[]).map((row) => row['blockNumber'])).toEqual([
      '1',
      '1',
      '1',
      '2',
    ])
  })

  test('returns no more than ten thousand results, and fewer on a page where a plan requires it', async () => {
    const { list, values, pay } = openEtherscan({ recordsMax: 3 })
    pay(1, 5)
    expect(await values({ offset: '1000', page: '1' })).toEqual([1, 2, 3])
    expect((await list({ offset: '1000', page: '10' })).message).toBe('No transactions found')
    expect(await list({ offset: '1000', page: '11' })).toEqual({
      status: '0',
      message: 'Result window is too large, PageNo x Offset size must be less than or equal to 10000',
      result: null,
    })
  })

  test.each([
    [{ address: '0x1' }, 'Error! Invalid address format'],
    [{ action: 'nothing' }, 'Error! Missing Or invalid Action name'],
    [{ module: 'nothing' }, 'Error! Missing Or invalid Module name'],
    [{ chainid: '137' }, expect.stringContaining('Missing or unsupported chainid parameter')],
    [{ apikey: 'other' }, 'Invalid API Key'],
  ])('refuses %j with status 200', async (params, result) => {
    const response = await openEtherscan({ apiKey: 'secret' }).get({
      apikey: 'secret',
      ...(params as Record<string, string>),
    })
    expect([response.status, await response.json()]).toEqual([200, { status: '0', message: 'NOTOK', result }])
  })

  test('refuses a sixth call in a second, with a message', async () => {
    const { clock, list, pay } = openEtherscan({ callsPerSecond: 5 })
    pay(1)
    for (let n = 0; n < 5; n++) expect((await list()).status).toBe('1')
    expect(await list()).toEqual({
      status: '0',
      message: 'NOTOK',
      result: 'Max calls per sec rate limit reached (5/sec)',
    })
    clock.advance(1_000)
    expect((await list()).status).toBe('1')
  })

  test('passes standard node methods on', async () => {
    const { chain, get, pay } = openEtherscan()
    pay(16)
    const proxy = async (action: string, tag = 'latest') =>
      ((await (await get({ module: 'proxy', action, tag })).json()) as { result: unknown }).result
    expect(await proxy('eth_blockNumber')).toBe('0x10')
    expect(await proxy('eth_chainId')).toBe('0x1')
    expect(await proxy('eth_getBlockByNumber', '0xf')).toMatchObject({
      number: '0xf',
      hash: chain.blocks[15]!.hash,
      parentHash: chain.blocks[14]!.hash,
    })
  })

  test('can respond falsely: a false end, a last page for ever, a short page, a page half processed', async () => {
    const { simulator, list, values, pay } = openEtherscan()
    pay(4)
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect((await list()).message).toBe('No transactions found')
    simulator.faults.plan({ kind: 'end-flag', value: 'more' })
    expect(await values({ page: '9', offset: '3' })).toEqual([4])
    simulator.faults.plan({ kind: 'short-page' })
    expect(await values({ page: '1', offset: '4' })).toEqual([1, 2])
    simulator.faults.plan({ kind: 'partial' })
    expect(await list()).toMatchObject({ status: '2', result: [{ value: '1' }, { value: '2' }] })
    simulator.faults.plan({ kind: 'rate-limit' })
    expect(await list()).toEqual({ status: '0', message: 'NOTOK', result: 'Max rate limit reached' })
  })
})

describe('the alchemy-like indexer', () => {
  test('viem uses it as a node, and for transfers, over a socket', async () => {
    const { chain, simulator, pay } = openAlchemy({ apiKey: 'secret' })
    pay(3)
    await using server = await serve(simulator)
    const client = createPublicClient({ transport: http(`${server.url}/v2/secret`, { retryCount: 0 }) })
    expect([await client.getChainId(), await client.getBlockNumber({ cacheTime: 0 })]).toEqual([1, 3n])
    expect((await client.getBlock({ blockNumber: 2n })).hash).toBe(chain.blocks[2]!.hash)
    const answer: unknown = await client.request({
      method: 'alchemy_getAssetTransfers',
      params: [{ category: ['external'], toAddress: ME }],
    } as never)
    expect(answer).toMatchObject({ transfers: [{ blockNum: '0x1' }, { blockNum: '0x2' }, { blockNum: '0x3' }] })
    await expect(
      createPublicClient({ transport: http(`${server.url}/v2/other`, { retryCount: 0 }) }).getChainId(),
    ).rejects.toThrow('Must be authenticated!')
  })

  test('shows external, internal and token transfers with unique ids, and no failed or empty ones', async () => {
    const { chain, clock, transfers } = openAlchemy()
    clock.advance(12_000)
    const block = chain.mine([RICH, { from: OTHER, to: ME, value: 9n, failed: true }, { from: OTHER, to: ME }])
    const { hash } = block.transactions[0]!
    const { transfers: all } = await transfers({ category: ['external', 'internal', 'erc20'], withMetadata: true })
    expect(all.map((transfer) => transfer.uniqueId)).toEqual([
      `${hash}:external`,
      `${hash}:internal:0_0`,
      `${hash}:log:0x0`,
      `${hash}:log:0x1`,
    ])
    expect(all[2]).toMatchObject({
      blockNum: '0x1',
      category: 'erc20',
      asset: 'USDC',
      value: 1.5,
      rawContract: { value: '0x16e360', decimal: '0x6' },
      metadata: { blockTimestamp: new Date(block.timestamp * 1_000).toISOString() },
    })
    expect((await transfers({ excludeZeroValue: false })).transfers).toHaveLength(2)
    expect((await transfers()).transfers[0]).not.toHaveProperty('metadata')
  })

  test('filters by senders and receivers together, and by contracts separately', async () => {
    const { chain, transfers } = openAlchemy()
    chain.mine([RICH, { from: ME, to: OTHER, value: 1n }])
    expect((await transfers({ fromAddress: ME })).transfers).toEqual([])
    expect((await transfers({ fromAddress: ME, toAddress: OTHER })).transfers).toHaveLength(1)
    expect((await transfers({ category: ['erc20'], contractAddresses: [OTHER] })).transfers).toEqual([])
  })

  test('pages by keys to the end, up or down, between two inclusive blocks', async () => {
    const { transfers, blocks, pay } = openAlchemy()
    pay(6)
    const seen: number[] = []
    let pageKey: string | undefined
    do {
      const page: Transfers = await transfers({
        fromBlock: '0x2',
        toBlock: '0x5',
        order: 'desc',
        maxCount: '0x3',
        ...(pageKey !== undefined && { pageKey }),
      })
      seen.push(...page.transfers.map((transfer) => Number(transfer.blockNum)))
      pageKey = page.pageKey
    } while (pageKey !== undefined)
    expect(seen).toEqual([5, 4, 3, 2])
    expect(await blocks({ fromBlock: 'latest' })).toEqual([6])
  })

  test('expires a page key after ten minutes, and accepts none of another query', async () => {
    const { clock, ask, transfers, pay } = openAlchemy()
    pay(4)
    const { pageKey } = await transfers({ maxCount: '0x2' })
    expect((await ask({ maxCount: '0x2', pageKey, fromBlock: '0x1' })).error).toEqual({
      code: -32602,
      message: ERROR_NO_KEY,
    })
    clock.advance(10 * 60_000)
    expect((await transfers({ maxCount: '0x2', pageKey })).transfers).toHaveLength(2)
    clock.advance(1)
    expect((await ask({ maxCount: '0x2', pageKey })).error).toEqual({ code: -32602, message: ERROR_NO_KEY })
  })

  test.each([
    [{ maxCount: '0x3e9' }, -32602],
    [{ maxCount: '0x0' }, -32602],
    [{ category: [] }, -32602],
    [{ category: ['gold'] }, -32602],
    [{ fromBlock: 'soon' }, -32602],
    [{ order: 'up' }, -32602],
    [{ pageKey: 'rubbish' }, -32602],
  ])('refuses %j', async (params, code) => {
    const { call } = openAlchemy()
    const response = await call('alchemy_getAssetTransfers', [{ category: ['external'], ...params }])
    expect([response.status, await response.json()]).toMatchObject([400, { jsonrpc: '2.0', id: 7, error: { code } }])
  })

  test('answers a batch one by one, and an unknown method with its own code', async () => {
    const { simulator, rpc } = openAlchemy()
    const batch = await createSimulatorFetch(simulator)('https://x.test/v2/demo', {
      method: 'POST',
      body: JSON.stringify([
        { id: 1, method: 'eth_blockNumber' },
        { id: 2, method: 'eth_nothing' },
      ]),
    })
    expect(await batch.json()).toMatchObject([
      { id: 1, result: '0x0' },
      { id: 2, error: { code: -32601 } },
    ])
    expect((await rpc('eth_nothing')).error?.code).toBe(-32601)
  })

  test('can respond falsely and refuse: an end, more, a short page, a lost key, a limit in the status or in the body', async () => {
    const { simulator, call, ask, transfers, pay } = openAlchemy()
    pay(4)
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect((await transfers({ maxCount: '0x2' })).pageKey).toBeUndefined()
    simulator.faults.plan({ kind: 'end-flag', value: 'more' })
    const { pageKey } = await transfers()
    expect(await transfers({ pageKey })).toEqual({ transfers: [] })
    simulator.faults.plan({ kind: 'short-page' })
    const short = await transfers({ maxCount: '0x4' })
    expect([
      short.transfers.length,
      (await transfers({ maxCount: '0x4', pageKey: short.pageKey })).transfers.length,
    ]).toEqual([2, 2])
    simulator.faults.plan({ kind: 'expired-token' })
    expect((await ask({ pageKey: short.pageKey, maxCount: '0x4' })).error?.message).toBe(ERROR_NO_KEY)
    simulator.faults.plan({ kind: 'rate-limit', retryAfter: '1' })
    const limited = await call('eth_chainId', [])
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '1'])
    simulator.faults.plan({ kind: 'rate-limit', secondary: true })
    const inside = await call('eth_chainId', [])
    expect([inside.status, await inside.json()]).toMatchObject([200, { error: { code: 429 } }])
  })
})

describe('the moralis-like indexer', () => {
  test('lists newest first by stable cursors, and ends without one', async () => {
    const { list, pay } = openMoralis()
    pay(5)
    const first = await list({ limit: '2' })
    pay(1)
    const second = await list({ limit: '2', cursor: first.cursor! })
    const third = await list({ limit: '2', cursor: second.cursor! })
    expect([first, second, third].map(({ page, result }) => [page, result.map((row) => row['block_number'])])).toEqual([
      [0, ['5', '4']],
      [1, ['3', '2']],
      [2, ['1']],
    ])
    expect(third.cursor).toBeNull()
    expect((await list({ order: 'ASC', from_block: '2', to_block: '3' })).result.map((row) => row['value'])).toEqual([
      '2',
      '3',
    ])
  })

  test('distinguishes duplicate token transfers by their log index', async () => {
    const { chain, list } = openMoralis()
    const block = chain.mine([RICH])
    const { result } = await list({ order: 'ASC' }, '/erc20/transfers')
    expect(result).toMatchObject([
      {
        transaction_hash: block.transactions[0]!.hash,
        log_index: 0,
        token_symbol: 'USDC',
        value: '1500000',
        block_hash: block.hash,
      },
      { log_index: 1 },
    ])
  })

  test('refuses an unknown key, another chain, a page too large and a cursor of another query', async () => {
    const { simulator, get, list, pay } = openMoralis()
    pay(3)
    const { cursor } = await list({ limit: '1' })
    const statuses = [
      (await get({}, '', 'other')).status,
      (await get({ chain: '0x89' })).status,
      (await get({ limit: '101' })).status,
      (await get({ cursor: cursor!, order: 'ASC' })).status,
      (await get({ cursor: 'rubbish' })).status,
    ]
    simulator.faults.plan({ kind: 'expired-token' })
    statuses.push((await get({ cursor: cursor! })).status)
    simulator.faults.plan({ kind: 'rate-limit' })
    statuses.push((await get()).status, (await get({ cursor: cursor! })).status)
    expect(statuses).toEqual([401, 400, 400, 400, 400, 400, 429, 200])
  })

  test('can have a false end flag, and a short page continues', async () => {
    const { simulator, list, pay } = openMoralis()
    pay(4)
    simulator.faults.plan({ kind: 'end-flag', value: 'more' })
    const { cursor } = await list()
    expect(await list({ cursor: cursor! })).toMatchObject({ page: 1, cursor: null, result: [] })
    simulator.faults.plan({ kind: 'end-flag', value: 'end' })
    expect((await list({ limit: '1' })).cursor).toBeNull()
    simulator.faults.plan({ kind: 'short-page' })
    const short = await list({ limit: '4' })
    expect([short.result.length, (await list({ limit: '4', cursor: short.cursor! })).result.length]).toEqual([2, 2])
  })
})

/** Every provider over one chain, with its head and the hashes it shows. */
function openAll() {
  const world = chainOf()
  const etherscan = new EtherscanSimulator(world, world.chain)
  const alchemy = new AlchemySimulator(world, world.chain)
  const moralis = new MoralisSimulator(world, world.chain)
  const post = (method: string, params: unknown[]) =>
    createSimulatorFetch(alchemy)('https://x.test/v2/demo', {
      method: 'POST',
      body: JSON.stringify({ id: 1, method, params }),
    })
  const providers: Array<{
    simulator: IndexerSimulator
    ask: () => Promise<Response>
    hashes: (answer: any) => string[]
  }> = [
    {
      simulator: etherscan,
      ask: () =>
        createSimulatorFetch(etherscan)(`https://x.test/api?module=account&action=txlist&address=${ME}&chainid=1`),
      hashes: (answer) => answer.result.map((row: Row) => row['hash']),
    },
    {
      simulator: alchemy,
      ask: () => post('alchemy_getAssetTransfers', [{ category: ['external'], toAddress: ME }]),
      hashes: (answer) => answer.result.transfers.map((row: Row) => row['hash']),
    },
    {
      simulator: moralis,
      ask: () =>
        createSimulatorFetch(moralis)(`https://x.test/api/v2.2/${ME}?order=ASC`, { headers: { 'x-api-key': 'k' } }),
      hashes: (answer) => answer.result.map((row: Row) => row['hash']),
    },
  ]
  const truth = () => world.chain.blocks.flatMap((block) => block.transactions.map((transaction) => transaction.hash))
  return {
    ...world,
    providers,
    truth,
    post,
    head: async () => Number(((await (await post('eth_blockNumber', [])).json()) as { result: string }).result),
  }
}

describe.each([
  [0, 'etherscan'],
  [1, 'alchemy'],
  [2, 'moralis'],
])('provider %i, like %s', (at) => {
  function open() {
    const world = openAll()
    const provider = world.providers[at]!
    return { ...world, ...provider, shown: async () => provider.hashes(await (await provider.ask()).json()) }
  }

  test('shows the current state of the chain it shares with the others', async () => {
    const { pay, shown, truth } = open()
    pay(3, 2)
    expect(await shown()).toEqual(truth())
  })

  test('can be behind by some blocks', async () => {
    const { simulator, pay, shown, truth } = open()
    pay(5)
    simulator.view.behindBlocks = 2
    expect([await shown(), simulator.view.head.number]).toEqual([truth().slice(0, 3), 3])
    simulator.view.behindBlocks = 99
    expect([await shown(), simulator.view.head.number]).toEqual([[], 0])
  })

  test('can announce a block before it shows its content', async () => {
    const { simulator, clock, pay, shown, truth } = open()
    pay(2)
    simulator.view.recordsLagMs = 5_000
    expect([await shown(), simulator.view.head.number]).toEqual([truth().slice(0, 1), 2])
    clock.advance(5_000)
    expect(await shown()).toEqual(truth())
  })

  test('follows a reorganisation, or keeps the replaced blocks', async () => {
    const { simulator, chain, pay, shown, truth } = open()
    pay(4)
    const before = truth()
    simulator.view.freeze()
    chain.reorg(2, [[{ from: OTHER, to: ME, value: 3n, hash: before[3]! }], [], [{ from: OTHER, to: ME, value: 10n }]])
    expect(await shown()).toEqual(before)
    simulator.view.thaw()
    const after = await shown()
    expect([after, after.slice(0, 3), simulator.view.head.number]).toEqual([
      truth(),
      [before[0], before[1], before[3]],
      5,
    ])
    expect(chain.blocks.slice(1).every((block, n) => block.parentHash === chain.blocks[n]!.hash)).toBe(true)
  })

  test('can be down for a while, and can serve another chain', async () => {
    const { simulator, clock, ask, pay, shown, truth, post } = open()
    pay(1)
    simulator.failFor(60_000)
    expect((await ask()).status).toBe(503)
    clock.advance(60_000)
    expect(await shown()).toEqual(truth())
    simulator.chainId = 137
    if (at === 1) expect(await (await post('eth_chainId', [])).json()).toMatchObject({ result: '0x89' })
    else expect(JSON.stringify(await (await ask()).json())).toContain('chain')
  })
})

describe('the fake chain', () => {
  test('accepts given blocks and continues from them, and a reorganisation keeps the first block', () => {
    const ports = portsOf()
    const given = new FakeChain(ports)
    given.mine([RICH])
    const chain = new FakeChain(ports, { blocks: given.blocks })
    chain.mine()
    expect([chain.head.number, chain.head.parentHash, chain.blocks.slice(0, 2)]).toEqual([
      2,
      given.head.hash,
      given.blocks,
    ])
    expect(chain.blocks.map((block) => block.timestamp)).toEqual(
      chain.blocks.map((_, n) => chain.blocks[0]!.timestamp + n),
    )
    expect(() => chain.reorg(3, [])).toThrow('A chain of 3 blocks cannot lose 3.')
  })

  test('one seed gives one chain and one run, with faults', async () => {
    const run = async () => {
      const { simulator, list, pay } = openEtherscan()
      simulator.faults.injectAtRates([
        [{ kind: 'rate-limit' }, 0.2],
        [{ kind: 'server-error' }, 0.2],
        [{ kind: 'duplicate-page' }, 0.2],
      ])
      const answers: string[] = []
      for (let n = 0; n < 20; n++) {
        pay(1)
        answers.push(
          await list().then(
            (answer) => JSON.stringify(answer),
            (error: unknown) => String(error),
          ),
        )
      }
      return answers
    }
    const first = await run()
    expect(await run()).toEqual(first)
    expect(
      first.some((answer) => answer.includes('NOTOK')) && first.some((answer) => answer.includes('SyntaxError')),
    ).toBe(true)
  })
})
