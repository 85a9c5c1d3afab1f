import type { Clock } from '../kit/ports.ts'
import type { ChainBlock, ChainTransaction, FakeChain, InternalTransfer, TokenTransfer } from './fake-chain.ts'
import { required } from '../kit/required.ts'

/** One transfer of value, with its location in the chain. */
export type Movement =
  | {
      readonly kind: 'external'
      readonly block: ChainBlock
      readonly transaction: ChainTransaction
      readonly from: string
      readonly to: string
      readonly value: bigint
      readonly position: ChainPosition
    }
  | {
      readonly kind: 'internal'
      readonly block: ChainBlock
      readonly transaction: ChainTransaction
      readonly from: string
      readonly to: string
      readonly value: bigint
      readonly internal: InternalTransfer
      readonly position: ChainPosition
    }
  | {
      readonly kind: 'token'
      readonly block: ChainBlock
      readonly transaction: ChainTransaction
      readonly from: string
      readonly to: string
      readonly value: bigint
      readonly token: TokenTransfer
      readonly position: ChainPosition
    }

export type MovementKind = Movement['kind']

/** Block, transaction, kind, and number within the kind: unique for every transfer. */
export type ChainPosition = readonly [block: number, transaction: number, kind: number, index: number]

/** A chain as one provider sees it: late, with gaps at the top, or as it was before a reorganisation. */
export class ChainView {
  /** How many of the newest blocks the provider has not received. */
  behindBlocks = 0
  /**
   * A block is known at once, but its content is visible only after this long. The head then announces content that is
   * missing.
   */
  recordsLagMs = 0
  readonly #chain: FakeChain
  readonly #clock: Clock
  #frozen: readonly ChainBlock[] | undefined

  constructor(chain: FakeChain, clock: Clock) {
    this.#chain = chain
    this.#clock = clock
  }

  /** Stops the provider from receiving blocks and reorganisations. */
  freeze(): void {
    this.#frozen = [...this.#chain.blocks]
  }

  thaw(): void {
    this.#frozen = undefined
  }

  /** Never empty: a provider that is far behind still knows the first block. */
  get blocks(): readonly ChainBlock[] {
    const blocks = this.#frozen ?? this.#chain.blocks
    return blocks.slice(0, Math.max(1, blocks.length - this.behindBlocks))
  }

  get head(): ChainBlock {
    return required(this.blocks.at(-1), 'an entry of blocks')
  }

  /** In chain order. */
  movements(kinds: readonly MovementKind[]): Movement[] {
    const shown = this.blocks.filter((block) => block.minedAtMs + this.recordsLagMs <= this.#clock.now())
    return shown
      .flatMap((block) => block.transactions.flatMap((transaction) => movementsOf(block, transaction)))
      .filter(({ kind }) => kinds.includes(kind))
  }
}

function movementsOf(block: ChainBlock, transaction: ChainTransaction): Movement[] {
  const { from, to, value, index } = transaction
  return [
    { kind: 'external', block, transaction, from, to, value, position: [block.number, index, 0, 0] },
    ...transaction.internal.map((internal, at): Movement => ({
      kind: 'internal',
      block,
      transaction,
      internal,
      from: internal.from,
      to: internal.to,
      value: internal.value,
      position: [block.number, index, 1, at],
    })),
    ...transaction.tokens.map((token): Movement => ({
      kind: 'token',
      block,
      transaction,
      token,
      from: token.from,
      to: token.to,
      value: token.value,
      position: [block.number, index, 2, token.logIndex],
    })),
  ]
}

export function comparePositions(a: ChainPosition, b: ChainPosition): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3]
}

/** An address that took part. */
export function involvesAddress(movement: Movement, address: string): boolean {
  return movement.from === address || movement.to === address
}
