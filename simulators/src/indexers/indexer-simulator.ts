import { ApiSimulator, type ApiCall } from '../kit/api-simulator.ts'
import type { SimulatorPorts } from '../kit/simulator.ts'
import { ChainView } from './chain-view.ts'
import type { ChainBlock, FakeChain } from './fake-chain.ts'
import { required } from '../kit/required.ts'

/** Options of every chain indexer simulator. */
export interface IndexerOptions {
  /** When given, other API keys are refused. */
  readonly apiKey?: string
}

/** A provider that indexes the chain. `view` defines how badly. */
export abstract class IndexerSimulator extends ApiSimulator {
  readonly view: ChainView
  /** The chain that the provider claims to serve. */
  chainId: number
  #downUntilMs = -Infinity

  constructor(ports: SimulatorPorts, chain: FakeChain, options: IndexerOptions = {}) {
    super(ports, options.apiKey)
    this.view = new ChainView(chain, ports.clock)
    this.chainId = chain.chainId
  }

  /** Refuses every request for this long. */
  failFor(forMs: number): void {
    this.#downUntilMs = this.clock.now() + forMs
  }

  protected respond(call: ApiCall): Response {
    return this.clock.now() < this.#downUntilMs ? this.serverError(503) : this.respondToQuery(call)
  }

  protected abstract respondToQuery(call: ApiCall): Response

  /** Answers of a node to the standard methods that indexers pass on. */
  protected rpc(method: string, params: readonly unknown[]): unknown {
    switch (method) {
      case 'eth_chainId':
        return toHex(this.chainId)
      case 'eth_blockNumber':
        return toHex(this.view.head.number)
      case 'eth_getBlockByNumber': {
        const block = this.#block(String(params[0]))
        return block === undefined
          ? null
          : {
              number: toHex(block.number),
              hash: block.hash,
              parentHash: block.parentHash,
              timestamp: toHex(block.timestamp),
              transactions: block.transactions.map((transaction) => transaction.hash),
            }
      }
      default:
        return undefined
    }
  }

  #block(tag: string): ChainBlock | undefined {
    const { blocks, head } = this.view
    const number =
      tag === 'latest' ? head.number : tag === 'earliest' ? required(blocks[0], 'blocks[0]').number : Number(tag)
    return blocks.find((block) => block.number === number)
  }
}

export function toHex(value: number | bigint): string {
  return `0x${value.toString(16)}`
}
