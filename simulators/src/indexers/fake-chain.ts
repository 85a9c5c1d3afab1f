import { randomHex } from '../kit/ids.ts'
import type { SimulatorPorts } from '../kit/simulator.ts'
import { required } from '../kit/required.ts'

/** A transfer of a token contract inside a transaction. */
export interface TokenTransfer {
  readonly contract: string
  readonly from: string
  readonly to: string
  readonly value: bigint
  readonly logIndex: number
  readonly name: string
  readonly symbol: string
  readonly decimals: number
}

/** A transfer made by a contract inside a transaction. */
export interface InternalTransfer {
  readonly from: string
  readonly to: string
  readonly value: bigint
  readonly traceId: string
}

/** A transaction of the simulated chain. */
export interface ChainTransaction {
  readonly hash: string
  readonly index: number
  readonly nonce: number
  readonly from: string
  readonly to: string
  readonly value: bigint
  readonly failed: boolean
  readonly internal: readonly InternalTransfer[]
  readonly tokens: readonly TokenTransfer[]
}

/** A block of the simulated chain. */
export interface ChainBlock {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  /** In seconds. */
  readonly timestamp: number
  readonly minedAtMs: number
  readonly transactions: readonly ChainTransaction[]
}

/** A transaction as a test defines it; the chain adds the rest. A repeated hash is the same transaction mined again. */
export interface TransactionDraft {
  readonly from: string
  readonly to: string
  readonly value?: bigint
  readonly hash?: string
  readonly failed?: boolean
  readonly internal?: ReadonlyArray<Pick<InternalTransfer, 'from' | 'to' | 'value'>>
  readonly tokens?: ReadonlyArray<
    Pick<TokenTransfer, 'from' | 'to' | 'value'> &
      Partial<Pick<TokenTransfer, 'contract' | 'name' | 'symbol' | 'decimals'>>
  >
}

const GENESIS_PARENT_HASH = `0x${'0'.repeat(64)}`
const DEFAULT_TOKEN = {
  contract: '0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48',
  name: 'USD Coin',
  symbol: 'USDC',
  decimals: 6,
}

/** The blocks that several indexers observe, each in its own way. The chain itself is always correct. */
export class FakeChain {
  readonly chainId: number
  readonly #ports: SimulatorPorts
  #blocks: ChainBlock[]
  #nonces = 0

  constructor(
    ports: SimulatorPorts,
    options: { readonly chainId?: number; readonly blocks?: readonly ChainBlock[] } = {},
  ) {
    this.#ports = ports
    this.chainId = options.chainId ?? 1
    this.#blocks = [...(options.blocks ?? [])]
    if (this.#blocks.length === 0) this.mine()
  }

  /** Oldest first. */
  get blocks(): readonly ChainBlock[] {
    return this.#blocks
  }

  get head(): ChainBlock {
    return required(this.#blocks.at(-1), 'an entry of blocks')
  }

  mine(drafts: readonly TransactionDraft[] = [], timestamp?: number): ChainBlock {
    const parent = this.#blocks.at(-1)
    const now = this.#ports.clock.now()
    let logIndex = 0
    const block: ChainBlock = {
      number: parent === undefined ? 0 : parent.number + 1,
      hash: this.#hash(),
      parentHash: parent?.hash ?? GENESIS_PARENT_HASH,
      timestamp: timestamp ?? Math.max(Math.floor(now / 1_000), (parent?.timestamp ?? 0) + 1),
      minedAtMs: now,
      transactions: drafts.map((draft, index) => ({
        hash: draft.hash ?? this.#hash(),
        index,
        nonce: this.#nonces++,
        from: draft.from.toLowerCase(),
        to: draft.to.toLowerCase(),
        value: draft.value ?? 0n,
        failed: draft.failed === true,
        internal: (draft.internal ?? []).map(({ from, to, value }, at) => ({
          from: from.toLowerCase(),
          to: to.toLowerCase(),
          value,
          traceId: `0_${at}`,
        })),
        tokens: (draft.tokens ?? []).map((token) => ({
          ...DEFAULT_TOKEN,
          ...token,
          contract: (token.contract ?? DEFAULT_TOKEN.contract).toLowerCase(),
          from: token.from.toLowerCase(),
          to: token.to.toLowerCase(),
          logIndex: logIndex++,
        })),
      })),
    }
    this.#blocks.push(block)
    return block
  }

  /** Replaces the last blocks by others with the test's content, at the same times if requested. */
  reorg(
    depth: number,
    replacements: ReadonlyArray<readonly TransactionDraft[]>,
    options: { readonly isSameTime?: boolean } = {},
  ): void {
    if (depth >= this.#blocks.length) throw new Error(`A chain of ${this.#blocks.length} blocks cannot lose ${depth}.`)
    const gone = this.#blocks.slice(-depth)
    this.#blocks = this.#blocks.slice(0, this.#blocks.length - depth)
    for (const [at, drafts] of replacements.entries())
      this.mine(drafts, options.isSameTime === true ? gone[at]?.timestamp : undefined)
  }

  #hash(): string {
    return `0x${randomHex(this.#ports.random, 64)}`
  }
}
