import { SyncError, type JsonValue } from '../../contract/index.ts'
import type { ProviderOperation } from '../../strategies/index.ts'
import { isObject } from '../kit/classify-response.ts'

export const OPERATIONS = ['native', 'token'] as const
/** A kind of transfer that is read with its own cursor. */
export type EvmOperation = (typeof OPERATIONS)[number]

/** A transfer in a common form, so that every provider lands the same row. */
export interface Transfer {
  readonly kind: EvmOperation
  readonly hash: string
  /** The index of the log in its block; null for a native transfer. */
  readonly logIndex: number | null
  readonly block: number
  /** The time of the block, in milliseconds. */
  readonly timeMs: number
  readonly from: string
  /** Null if the transaction created a contract. */
  readonly to: string | null
  /** An integer in the smallest unit. */
  readonly value: string
  readonly contract: string | null
}

/** keccak256('Transfer(address,address,uint256)') */
export const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

export function getTransferKey({ hash, logIndex }: Transfer): string {
  return logIndex === null ? hash : `${hash}:${logIndex}`
}

export const transferOperation: ProviderOperation<Transfer> = {
  // A reorganisation may move a transaction to another block or time, or put another of its logs at the same index of a block
  // with the same number and time. So the id includes the complete content.
  id: (transfer) =>
    [
      getTransferKey(transfer),
      transfer.block,
      transfer.timeMs,
      transfer.from,
      transfer.to ?? '',
      transfer.value,
      transfer.contract ?? '',
    ].join('@'),
  cursors: ({ block, timeMs: at, hash }) => [
    { type: 'blockNumber', value: block },
    { type: 'timestamp', value: at },
    { type: 'txHash', value: hash },
  ],
  // Without `upstreamUpdatedAt`: after a reorganisation the newer version may have an older time.
  toChange: (transfer) => ({
    type: 'upsert',
    key: getTransferKey(transfer),
    cursor: String(transfer.block),
    record: {
      kind: transfer.kind,
      transactionHash: transfer.hash,
      logIndex: transfer.logIndex,
      blockNumber: transfer.block,
      timestamp: new Date(transfer.timeMs).toISOString(),
      from: transfer.from,
      to: transfer.to,
      value: transfer.value,
      contract: transfer.contract,
    },
  }),
}

/** Sorts by block, then by log index. */
export function sortTransfers(transfers: readonly Transfer[]): Transfer[] {
  return transfers.toSorted((a, b) => a.block - b.block || (a.logIndex ?? 0) - (b.logIndex ?? 0))
}

// ── parsing of provider values ───────────────────────────────────────────────────────────────────────────────────────────

export function toHex(value: number): string {
  return `0x${value.toString(16)}`
}

/** Parses an integer in hexadecimal or decimal. */
export function parseNumber(value: JsonValue | undefined, what: string): number {
  const number =
    typeof value === 'number'
      ? value
      : typeof value === 'string' && NUMBER_PATTERN.test(value)
        ? Number(value)
        : Number.NaN
  if (!Number.isSafeInteger(number) || number < 0) throw createMalformedError(what)
  return number
}

/** Returns the amount as a decimal string. */
export function parseAmount(value: JsonValue | undefined, what: string): string {
  // Some providers write zero as 0x.
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

/** Parses an ERC-20 transfer. Null for other tokens: a transfer of a token with ids has four topics. */
export function parseTransferLog(log: JsonValue, at: (block: number) => number): Transfer | null {
  if (!isObject(log) || !Array.isArray(log.topics)) throw createMalformedError('log')
  if (log.removed === true || log.topics.length !== 3) return null
  const block = parseNumber(log.blockNumber, 'block number')
  return {
    kind: 'token',
    hash: parseHash(log.transactionHash, 'transaction hash'),
    logIndex: log.logIndex === '0x' ? 0 : parseNumber(log.logIndex, 'log index'),
    block,
    timeMs: at(block),
    from: parseTopicAddress(log.topics[1]),
    to: parseTopicAddress(log.topics[2]),
    value: parseAmount(log.data, 'amount'),
    contract: parseAddress(log.address, 'contract'),
  }
}

export function createMalformedError(what: string): SyncError {
  return new SyncError('SOURCE_INVALID', `The provider returned an invalid ${what}.`)
}

const NUMBER_PATTERN = /^(?:0x[\da-f]{1,64}|\d{1,80})$/i
