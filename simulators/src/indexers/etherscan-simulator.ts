import type { ApiCall } from '../kit/api-simulator.ts'
import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import { involvesAddress, type Movement, type MovementKind } from './chain-view.ts'
import type { FakeChain } from './fake-chain.ts'
import { IndexerSimulator, type IndexerOptions } from './indexer-simulator.ts'

/** Options of `EtherscanSimulator`. */
export interface EtherscanOptions extends IndexerOptions {
  /** Five calls a second are free. Enforced only when given. */
  readonly callsPerSecond?: number
  /** Maximum records of one response; a larger page is truncated silently. */
  readonly recordsMax?: number
}

const RESULT_WINDOW = 10_000
const BLOCK_MAX = 999_999_999
const ACTIONS: Readonly<Record<string, MovementKind>> = {
  txlist: 'external',
  txlistinternal: 'internal',
  tokentx: 'token',
}
const GAS = { gas: '21000', gasPrice: '1000000000', gasUsed: '21000', cumulativeGasUsed: '21000' }

/**
 * Etherscan and compatible APIs (Routescan, Blockscout). All values are text, every response has status 200, and a
 * listing ends with the window of 10,000 results: further ones need another `startblock`. A page may end in the middle
 * of a block, and rows of internal and of token transfers have nothing that distinguishes duplicates.
 */
export class EtherscanSimulator extends IndexerSimulator {
  readonly #window: RateWindow
  readonly #recordsMax: number

  constructor(ports: SimulatorPorts, chain: FakeChain, options: EtherscanOptions = {}) {
    super(ports, chain, options)
    this.#window = new RateWindow(
      ports.clock,
      options.callsPerSecond === undefined ? undefined : { requests: options.callsPerSecond, perMs: 1_000 },
    )
    this.#recordsMax = options.recordsMax ?? RESULT_WINDOW
  }

  protected respondToQuery(call: ApiCall): Response {
    const query = call.url.searchParams
    if (!call.url.pathname.endsWith('/api')) return new Response('Not Found', { status: 404 })
    if (this.token !== undefined && query.get('apikey') !== this.token) return this.unauthorized()
    if (!this.#window.take()) return this.rateLimited(undefined, true)
    const chainId = query.get('chainid')
    if (chainId !== null && Number(chainId) !== this.chainId)
      return errorResponse(
        'Missing or unsupported chainid parameter (required for v2 api), please see https://api.etherscan.io/v2/chainlist for the list of supported chainids',
      )
    const action = query.get('action') ?? ''
    if (query.get('module') === 'proxy') {
      const result = this.rpc(action, [query.get('tag') ?? 'latest'])
      return result === undefined
        ? errorResponse('Error! Missing Or invalid Action name')
        : jsonResponse({ jsonrpc: '2.0', id: 83, result })
    }
    if (query.get('module') !== 'account') return errorResponse('Error! Missing Or invalid Module name')
    const kind = ACTIONS[action]
    return kind === undefined ? errorResponse('Error! Missing Or invalid Action name') : this.#list(kind, call)
  }

  protected rateLimited(_retryAfter: string | undefined, secondary: boolean): Response {
    return errorResponse(secondary ? 'Max calls per sec rate limit reached (5/sec)' : 'Max rate limit reached')
  }

  protected unauthorized(): Response {
    return errorResponse('Invalid API Key')
  }

  protected serverError(status: number): Response {
    return new Response('<html><head><title>Service Unavailable</title></head></html>', {
      status,
      headers: { 'content-type': 'text/html' },
    })
  }

  #list(
    kind: MovementKind,
    { url: { searchParams: query }, endFlagOverride: lie, shortPage, partial }: ApiCall,
  ): Response {
    const address = (query.get('address') ?? '').toLowerCase()
    if (!/^0x[0-9a-f]{40}$/.test(address)) return errorResponse('Error! Invalid address format')
    const page = Math.max(1, parseNatural(query, 'page') ?? 1)
    const asked = parseNatural(query, 'offset') ?? RESULT_WINDOW
    if (page * asked > RESULT_WINDOW)
      return jsonResponse({
        status: '0',
        message: `Result window is too large, PageNo x Offset size must be less than or equal to ${RESULT_WINDOW}`,
        result: null,
      })
    const from = parseNatural(query, 'startblock') ?? 0
    const to = parseNatural(query, 'endblock') ?? BLOCK_MAX
    const contract = query.get('contractaddress')?.toLowerCase()
    const found = this.view
      .movements([kind])
      .filter(
        (movement) =>
          involvesAddress(movement, address) &&
          movement.block.number >= from &&
          movement.block.number <= to &&
          (contract === undefined || (movement.kind === 'token' && movement.token.contract === contract)),
      )
    if (query.get('sort') === 'desc') found.reverse()
    const size = Math.min(asked, this.#recordsMax)
    // With a false end flag, every page behind the last repeats it.
    const at = lie === 'more' ? Math.min(page, Math.max(1, Math.ceil(found.length / size))) : page
    const rows =
      lie === 'end'
        ? []
        : found
            .slice((at - 1) * size, (at - 1) * size + (shortPage ? Math.ceil(size / 2) : size))
            .map((movement) => this.#row(movement))
    if (partial)
      return jsonResponse({
        status: '2',
        message: 'Some transactions within this block range have not yet been processed',
        result: rows.slice(0, Math.floor(rows.length / 2)),
      })
    return rows.length === 0
      ? jsonResponse({ status: '0', message: 'No transactions found', result: [] })
      : jsonResponse({ status: '1', message: 'OK', result: rows })
  }

  #row(movement: Movement): Fields {
    const { block, transaction, from, to, value } = movement
    const common = { blockNumber: String(block.number), timeStamp: String(block.timestamp), hash: transaction.hash }
    const confirmations = String(this.view.head.number - block.number + 1)
    const sent = {
      nonce: String(transaction.nonce),
      blockHash: block.hash,
      transactionIndex: String(transaction.index),
    }
    switch (movement.kind) {
      case 'external':
        return {
          ...common,
          ...sent,
          from,
          to,
          value: String(value),
          ...GAS,
          isError: transaction.failed ? '1' : '0',
          txreceipt_status: transaction.failed ? '0' : '1',
          input: '0x',
          contractAddress: '',
          confirmations,
          methodId: '0x',
          functionName: '',
        }
      case 'internal':
        return {
          ...common,
          from,
          to,
          value: String(value),
          contractAddress: '',
          input: '',
          type: 'call',
          gas: '2300',
          gasUsed: '0',
          traceId: movement.internal.traceId,
          isError: transaction.failed ? '1' : '0',
          errCode: '',
        }
      case 'token':
        return {
          ...common,
          ...sent,
          from,
          contractAddress: movement.token.contract,
          to,
          value: String(value),
          tokenName: movement.token.name,
          tokenSymbol: movement.token.symbol,
          tokenDecimal: String(movement.token.decimals),
          ...GAS,
          input: 'deprecated',
          confirmations,
        }
    }
  }
}

function parseNatural(query: URLSearchParams, name: string): number | undefined {
  const asked = query.get(name) ?? ''
  return /^\d+$/.test(asked) && (name !== 'offset' || Number(asked) > 0) ? Number(asked) : undefined
}

function errorResponse(result: string): Response {
  return jsonResponse({ status: '0', message: 'NOTOK', result })
}
