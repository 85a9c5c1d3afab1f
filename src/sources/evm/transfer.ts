import { SyncError, type JsonValue } from '../../contract/index.ts'
import type { Operation } from '../../strategies/index.ts'
import { isObject } from '../kit/judge.ts'

export const OPERATIONS = ['native', 'token'] as const
export type EvmOperation = (typeof OPERATIONS)[number]

/** A transfer in the form that every provider's answer is brought into: whoever tells it, the same row lands. */
export interface Transfer {
  readonly kind: EvmOperation
  readonly hash: string
  /** Of the log in its block; null for a native transfer. */
  readonly logIndex: number | null
  readonly block: number
  /** Of its block, in milliseconds. */
  readonly at: number
  readonly from: string
  /** Null where a contract was created. */
  readonly to: string | null
  /** In the smallest unit, all digits. */
  readonly value: string
  readonly contract: string | null
}

/** keccak256('Transfer(address,address,uint256)') */
export const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

export function keyOf({ hash, logIndex }: Transfer): string {
  return logIndex === null ? hash : `${hash}:${logIndex}`
}

export const operation: Operation<Transfer> = {
  // A reorganisation may move a transaction to another block or time, or put another log of it at the same index of a block
  // with the same number and time. Only all of the content tells the two apart.
  id: (transfer) => [keyOf(transfer), transfer.block, transfer.at, transfer.from, transfer.to ?? '', transfer.value, transfer.contract ?? ''].join('@'),
  cursors: ({ block, at, hash }) => [{ type: 'blockNumber', value: block }, { type: 'timestamp', value: at }, { type: 'txHash', value: hash }],
  // Without a time of the source: in a reorganisation what is newer may bear an older time.
  toChange: (transfer) => ({
    type: 'upsert', key: keyOf(transfer), cursor: String(transfer.block),
    record: {
      kind: transfer.kind, transactionHash: transfer.hash, logIndex: transfer.logIndex, blockNumber: transfer.block, timestamp: new Date(transfer.at).toISOString(),
      from: transfer.from, to: transfer.to, value: transfer.value, contract: transfer.contract,
    },
  }),
}

/** By place: block, then log. */
export function inOrder(transfers: readonly Transfer[]): Transfer[] {
  return transfers.toSorted((a, b) => a.block - b.block || (a.logIndex ?? 0) - (b.logIndex ?? 0))
}

// ── what providers write ─────────────────────────────────────────────────────────────────────────────────────────────

export function hexOf(value: number): string {
  return `0x${value.toString(16)}`
}

/** A whole number, in hex or in digits. */
export function numberOf(value: JsonValue | undefined, what: string): number {
  const number = typeof value === 'number' ? value : typeof value === 'string' && NUMBER.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(number) || number < 0) throw malformed(what)
  return number
}

/** All its digits. */
export function amountOf(value: JsonValue | undefined, what: string): string {
  // Some write an amount of nothing as 0x.
  if (value === '0x') return '0'
  if (typeof value !== 'string' || !NUMBER.test(value)) throw malformed(what)
  return BigInt(value).toString()
}

export function hashOf(value: JsonValue | undefined, what: string): string {
  if (typeof value !== 'string' || !/^0x[\da-f]{64}$/i.test(value)) throw malformed(what)
  return value.toLowerCase()
}

export function addressOf(value: JsonValue | undefined, what: string): string {
  if (typeof value !== 'string' || !/^0x[\da-f]{40}$/i.test(value)) throw malformed(what)
  return value.toLowerCase()
}

/** The address in the last twenty bytes of a topic. */
export function addressInTopic(value: JsonValue | undefined): string {
  return addressOf(`0x${hashOf(value, 'topic').slice(26)}`, 'topic')
}

export function topicOf(address: string): string {
  return `0x${'0'.repeat(24)}${address.slice(2)}`
}

/** An ERC-20 transfer in a log, or null where it is one of something else: a token with ids has four topics. */
export function transferInLog(log: JsonValue, at: (block: number) => number): Transfer | null {
  if (!isObject(log) || !Array.isArray(log.topics)) throw malformed('log')
  if (log.removed === true || log.topics.length !== 3) return null
  const block = numberOf(log.blockNumber, 'block number')
  return {
    kind: 'token', hash: hashOf(log.transactionHash, 'transaction hash'), logIndex: log.logIndex === '0x' ? 0 : numberOf(log.logIndex, 'log index'), block, at: at(block),
    from: addressInTopic(log.topics[1]), to: addressInTopic(log.topics[2]), value: amountOf(log.data, 'amount'), contract: addressOf(log.address, 'contract'),
  }
}

export function malformed(what: string): SyncError {
  return new SyncError('SOURCE_INVALID', `The chain's provider sent a ${what} that is none.`)
}

const NUMBER = /^(?:0x[\da-f]{1,64}|\d{1,80})$/i
