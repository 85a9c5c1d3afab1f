import { hash } from 'node:crypto'
import type { FeedPage } from '../contract/index.ts'
import { FeedError, RESTART_FROM_START, RESTART_FROM_TIME } from './feed-error.ts'
import type { CursorCipher } from './cursor-cipher.ts'

/** Where a reader stands; what a cursor holds. */
export interface FeedCursor {
  /** What it may be used for. */
  readonly endpoint: FeedEndpoint
  /** The databases it is about; null for all, also those that are yet to come; a digest where they are too many to carry. */
  readonly databases: readonly string[] | null | DatabasesDigest
  readonly sequence: number
  /** Of the entry at that sequence: a store that was set back gives the sequence out again, with another time. */
  readonly committedAt: number
  /** The floor when the reader began or last stood above it: whoever begins with nothing may read through what was compacted. */
  readonly floor: number
  /** In whole minutes, so that a place has one cursor for a while. */
  readonly issuedAt: number
}

export type FeedEndpoint = 'changes' | 'list'

/** A cursor travels in a URL and in headers. The request has to repeat a longer list, and the digest binds it. */
export interface DatabasesDigest {
  readonly digest: string
}
/** A cursor stays below 512 characters. */
const DATABASES_BYTES_MAX = 256

export const CURSOR_LIFE_MS = 7 * 24 * 3_600_000
const CURSOR_VERSION = 1
const MINUTE_MS = 60_000

export function encodeCursor(seal: CursorCipher, place: Omit<FeedCursor, 'issuedAt'>, now: number): string {
  const { endpoint, databases, sequence, committedAt, floor } = place
  return seal.encrypt(JSON.stringify([CURSOR_VERSION, endpoint, toCursorDatabases(databases), sequence, committedAt, floor, Math.floor(now / MINUTE_MS)]))
}

function toCursorDatabases(databases: FeedCursor['databases']): FeedCursor['databases'] {
  const text = JSON.stringify(databases)
  return Array.isArray(databases) && Buffer.byteLength(text) > DATABASES_BYTES_MAX ? { digest: hash('sha256', text, 'base64url') } : databases
}

/** The databases of a place: its own, or those of the request where it carries only their digest. */
export function resolveDatabases({ databases }: FeedCursor, requested: readonly string[] | null | undefined): readonly string[] | null {
  return databases !== null && 'digest' in databases ? requested! : databases
}

/** Refuses what is not a place of ours, or too old to be one. */
export function decodeCursor(seal: CursorCipher, cursor: string, now: number): FeedCursor {
  const content = seal.decrypt(cursor)
  if (content === null) throw new FeedError('cursor_invalid', `The cursor cannot be read: it was cut, changed, or not issued to you. ${RESTART_FROM_TIME}`, 'updatedSince')
  const [version, endpoint, databases, sequence, committedAt, floor, minute] = JSON.parse(content) as [number, FeedEndpoint, FeedCursor['databases'], number, number, number, number]
  if (version !== CURSOR_VERSION) throw new FeedError('cursor_unsupported', `The cursor is of version ${version}, and this server knows version ${CURSOR_VERSION}. ${RESTART_FROM_TIME}`, 'updatedSince')
  const place = { endpoint, databases, sequence, committedAt, floor, issuedAt: minute * MINUTE_MS }
  if (now - place.issuedAt > CURSOR_LIFE_MS) throw new FeedError('cursor_expired', `The cursor is older than 7 days. ${RESTART_FROM_TIME}`, 'updatedSince')
  return place
}

export function checkCursorUse(place: FeedCursor, endpoint: FeedEndpoint, databases: readonly string[] | null | undefined): void {
  if (place.endpoint !== endpoint || (endpoint === 'list' && listedDatabase(place) !== databases![0])) {
    const where = place.endpoint === 'changes' ? 'changes' : listedDatabase(place)
    throw new FeedError('cursor_misplaced', `The cursor was issued by /agents/v1/${where}: use it there, or start here without it.`, 'backfill')
  }
  const isLong = place.databases !== null && 'digest' in place.databases
  if (isLong && databases === undefined) {
    throw new FeedError('cursor_filter', 'The cursor was issued for more `types` than it can carry: repeat the same `types` with it.')
  }
  if (databases === undefined || JSON.stringify(toCursorDatabases(databases)) === JSON.stringify(place.databases)) return
  const issued = place.databases === null ? 'without `types`' : isLong ? 'for other `types`' : `for types=${(place.databases as readonly string[]).join(',')}`
  const remedy = isLong ? 'repeat those' : 'repeat that or leave `types` out'
  throw new FeedError('cursor_filter', `The cursor was issued ${issued}: ${remedy}, or start without the cursor.`, 'backfill')
}

function listedDatabase({ databases }: FeedCursor): string | undefined {
  return Array.isArray(databases) ? databases[0] : undefined
}

/** No silent gap: a place that the store can no longer continue from is expired. */
export function checkContinuity(place: Pick<FeedCursor, 'endpoint' | 'sequence' | 'committedAt' | 'floor'>, page: FeedPage): void {
  const { sequence, committedAt } = place
  const unknown = sequence > page.headSequence || (page.afterCommittedAt === null ? sequence > page.floor : page.afterCommittedAt !== committedAt)
  if (unknown) {
    throw new FeedError('cursor_expired', `The store was set back to an earlier state since the cursor was issued, and what you hold may be ahead of it. ${RESTART_FROM_START}`, 'backfill')
  }
  // A list needs no tombstones, and rows are never compacted away.
  if (place.endpoint === 'changes' && sequence < page.floor && place.floor !== page.floor) {
    throw new FeedError('cursor_expired', `The log no longer holds every change since the cursor was issued. ${RESTART_FROM_START}`, 'backfill')
  }
}
