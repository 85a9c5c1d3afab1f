import { SyncError } from '../../contract/index.ts'

/** A log sequence number of PostgreSQL, such as `16/B374D848`. Different spellings of one LSN are equal values. */
export type Lsn = bigint

const LSN_FORMAT = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/

export function parseLsn(text: unknown): Lsn {
  const match = typeof text === 'string' ? LSN_FORMAT.exec(text) : null
  if (match === null)
    throw new SyncError('CURSOR_REJECTED', 'The stored state has no valid PostgreSQL log sequence number (LSN).')
  return (BigInt(`0x${match[1]}`) << 32n) | BigInt(`0x${match[2]}`)
}

export function formatLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffffffffn).toString(16).toUpperCase()}`
}
