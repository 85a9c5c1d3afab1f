import { SyncError, type JsonValue } from '../../contract/index.ts'
import type { ProviderOperation } from '../../strategies/index.ts'
import { isObject } from '../kit/classify-response.ts'

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
  readonly timeMs: number
  readonly from: string
  /** Null where a contract was created. */
  readonly to: string | null
  /** In the smallest unit, all digits. */
  readonly value: string
  readonly contract: string | null
}

/** keccak256('Transfer(address,address,uint256)') */
export const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

export function getTransferKey({ hash, logIndex }: Transfer): string {
  return logIndex === null ? hash : `${hash}:${logIndex}`
}

export const transferOperation: ProviderOperation<Transfer> = {
  // A reorganisation may move a transaction to another block or time, or put another log of it at the same index of a block
  // with the same number and time. Only all of the content tells the two apart.
  id: (transfer) => [getTransferKey(transfer), transfer.block, transfer.timeMs, transfer.from, transfer.to ?? '', transfer.value, transfer.contract ?? ''].join('@'),
  cursors: ({ block, timeMs: at, hash }) => [{ type: 'blockNumber', value: block }, { type: 'timestamp', value: at }, { type: 'txHash', value: hash }],
  // Without a time of the source: in a reorganisation what is newer may bear an older time.
  toChange: (transfer) => ({
    type: 'upsert', key: getTransferKey(transfer), cursor: String(transfer.block),
    record: {
      kind: transfer.kind, transactionHash: transfer.hash, logIndex: transfer.logIndex, blockNumber: transfer.block, timestamp: new Date(transfer.timeMs).toISOString(),
      from: transfer.from, to: transfer.to, value: transfer.value, contract: transfer.contract,
    },
  }),
}

/** By place: block, then log. */
export function sortTransfers(transfers: readonly Transfer[]): Transfer[] {
  return transfers.toSorted((a, b) => a.block - b.block || (a.logIndex ?? 0) - (b.logIndex ?? 0))
}

// ── what providers write ─────────────────────────────────────────────────────────────────────────────────────────────

export function toHex(value: number): string {
  return `0x${value.toString(16)}`
}

/** A whole number, in hex or in digits. */
export function parseNumber(value: JsonValue | undefined, what: string): number {
  const number = typeof value === 'number' ? value : typeof value === 'string' && NUMBER_PATTERN.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(number) || number < 0) throw createMalformedError(what)
  return number
}

/** All its digits. */
export function parseAmount(value: JsonValue | undefined, what: string): string {
  // Some write an amount of nothing as 0x.
  if (value === '0x') return '0'
  if (typeof value !== 'string' || !NUMBER_PATTERN.test(value)) throw createMalformedError(what)
  return BigInt(value).toString()
}

export function parseHash(value: JsonValue | undefined, what: string): string {
  if (typeof value !== 'string' || !/^0x[\da-f]{64}$/i.test(value)) throw createMalformedError(what)
  return value.toLowerCase()
}

export function parseAddress(value: JsonValue | undefined, what: string): string {
  if (typeof value !== 'string' || !/^0x[\da-f]{40}$/i.test(value)) throw createMalformedError(what)
  return value.toLowerCase()
}

/** The address in the last twenty bytes of a topic. */
export function parseTopicAddress(value: JsonValue | undefined): string {
  return parseAddress(`0x${parseHash(value, 'topic').slice(26)}`, 'topic')
}

export function toTopic(address: string): string {
  return `0x${'0'.repeat(24)}${address.slice(2)}`
}

/** An ERC-20 transfer in a log, or null where it is one of something else: a token with ids has four topics. */
export function parseTransferLog(log: JsonValue, at: (block: number) => number): Transfer | null {
  if (!isObject(log) || !Array.isArray(log.topics)) throw createMalformedError('log')
  if (log.removed === true || log.topics.length !== 3) return null
  const block = parseNumber(log.blockNumber, 'block number')
  return {
    kind: 'token', hash: parseHash(log.transactionHash, 'transaction hash'), logIndex: log.logIndex === '0x' ? 0 : parseNumber(log.logIndex, 'log index'), block, timeMs: at(block),
    from: parseTopicAddress(log.topics[1]), to: parseTopicAddress(log.topics[2]), value: parseAmount(log.data, 'amount'), contract: parseAddress(log.address, 'contract'),
  }
}

export function createMalformedError(what: string): SyncError {
  return new SyncError('SOURCE_INVALID', `The chain's provider sent a ${what} that is none.`)
}

const NUMBER_PATTERN = /^(?:0x[\da-f]{1,64}|\d{1,80})$/i
