import { hash } from 'node:crypto'
import type { FeedPage } from '../contract/index.ts'
import { required } from '../values/required.ts'
import { FeedError, RESTART_FROM_START, RESTART_FROM_TIME } from './feed-error.ts'
import type { CursorCipher } from './cursor-cipher.ts'

/** The content of a cursor: a reader's position in the feed. */
export interface FeedCursor {
  /** The only endpoint that accepts the cursor. */
  readonly endpoint: FeedEndpoint
  /** The databases it covers; null for all, including future ones; a digest if the list is too long for a cursor. */
  readonly databases: readonly string[] | null | DatabasesDigest
  readonly sequence: number
  /** Commit time of the entry at `sequence`. A restored store reuses the sequence with another time. */
  readonly committedAt: number
  /**
   * The compaction floor when the reader started or was last above it: a reader that starts empty may read through a
   * compacted range.
   */
  readonly floor: number
  /** Rounded down to minutes, so that a position keeps the same cursor for a while. */
  readonly issuedAt: number
}

export type FeedEndpoint = 'changes' | 'list'

/** A cursor travels in URLs and headers. For a longer list the request repeats the list, and the digest verifies it. */
export interface DatabasesDigest {
  readonly digest: string
}
/** Keeps a cursor below 512 characters. */
const DATABASES_BYTES_MAX = 256

export const CURSOR_LIFE_MS = 7 * 24 * 3_600_000
const CURSOR_VERSION = 1
const MINUTE_MS = 60_000

export function encodeCursor(cipher: CursorCipher, cursor: Omit<FeedCursor, 'issuedAt'>, now: number): string {
  const { endpoint, databases, sequence, committedAt, floor } = cursor
  return cipher.encrypt(
    JSON.stringify([
      CURSOR_VERSION,
      endpoint,
      toCursorDatabases(databases),
      sequence,
      committedAt,
      floor,
      Math.floor(now / MINUTE_MS),
    ]),
  )
}

function toCursorDatabases(databases: FeedCursor['databases']): FeedCursor['databases'] {
  const text = JSON.stringify(databases)
  return Array.isArray(databases) && Buffer.byteLength(text) > DATABASES_BYTES_MAX
    ? { digest: hash('sha256', text, 'base64url') }
    : databases
}

/** Returns the databases of the cursor, or those of the request if the cursor holds only their digest. */
export function resolveDatabases(
  { databases }: FeedCursor,
  requested: readonly string[] | null | undefined,
): readonly string[] | null {
  return databases !== null && 'digest' in databases ? required(requested, '`types`') : databases
}

/** Rejects cursors that are invalid, unsupported or expired. */
export function decodeCursor(cipher: CursorCipher, cursor: string, now: number): FeedCursor {
  const content = cipher.decrypt(cursor)
  if (content === null)
    throw new FeedError(
      'cursor_invalid',
      `The cursor is invalid: it was truncated, modified, or issued to another tenant. ${RESTART_FROM_TIME}`,
      'updatedSince',
    )
  const [version, endpoint, databases, sequence, committedAt, floor, minute] = JSON.parse(content) as [
    number,
    FeedEndpoint,
    FeedCursor['databases'],
    number,
    number,
    number,
    number,
  ]
  if (version !== CURSOR_VERSION)
    throw new FeedError(
      'cursor_unsupported',
      `The cursor has version ${version}; this server supports version ${CURSOR_VERSION}. ${RESTART_FROM_TIME}`,
      'updatedSince',
    )
  const decoded = { endpoint, databases, sequence, committedAt, floor, issuedAt: minute * MINUTE_MS }
  if (now - decoded.issuedAt > CURSOR_LIFE_MS)
    throw new FeedError('cursor_expired', `The cursor is older than 7 days. ${RESTART_FROM_TIME}`, 'updatedSince')
  return decoded
}

export function checkCursorUse(
  cursor: FeedCursor,
  endpoint: FeedEndpoint,
  databases: readonly string[] | null | undefined,
): void {
  if (cursor.endpoint !== endpoint || (endpoint === 'list' && listedDatabase(cursor) !== databases?.[0])) {
    const where = cursor.endpoint === 'changes' ? 'changes' : listedDatabase(cursor)
    throw new FeedError(
      'cursor_misplaced',
      `The cursor was issued by /agents/v1/${where}: use it there, or start here without it.`,
      'backfill',
    )
  }
  const isLong = cursor.databases !== null && 'digest' in cursor.databases
  if (isLong && databases === undefined) {
    throw new FeedError(
      'cursor_filter',
      'The cursor was issued for more `types` than it can store: send the same `types` with it.',
    )
  }
  if (databases === undefined || JSON.stringify(toCursorDatabases(databases)) === JSON.stringify(cursor.databases))
    return
  const issued =
    cursor.databases === null
      ? 'without `types`'
      : isLong
        ? 'for other `types`'
        : `for types=${(cursor.databases as readonly string[]).join(',')}`
  const remedy = isLong ? 'send the same ones' : 'send the same or omit `types`'
  throw new FeedError(
    'cursor_filter',
    `The cursor was issued ${issued}: ${remedy}, or start without the cursor.`,
    'backfill',
  )
}

function listedDatabase({ databases }: FeedCursor): string | undefined {
  return Array.isArray(databases) ? databases[0] : undefined
}

/** No silent gap: a position from which the store cannot continue is expired. */
export function checkContinuity(
  cursor: Pick<FeedCursor, 'endpoint' | 'sequence' | 'committedAt' | 'floor'>,
  page: FeedPage,
): void {
  const { sequence, committedAt } = cursor
  const unknown =
    sequence > page.headSequence ||
    (page.afterCommittedAt === null ? sequence > page.floor : page.afterCommittedAt !== committedAt)
  if (unknown) {
    throw new FeedError(
      'cursor_expired',
      `The store was restored to an earlier state since the cursor was issued, and your copy may be ahead of it. ${RESTART_FROM_START}`,
      'backfill',
    )
  }
  // A list needs no tombstones, and rows are never compacted.
  if (cursor.endpoint === 'changes' && sequence < page.floor && cursor.floor !== page.floor) {
    throw new FeedError(
      'cursor_expired',
      `The log no longer contains every change since the cursor was issued. ${RESTART_FROM_START}`,
      'backfill',
    )
  }
}
