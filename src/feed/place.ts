import type { FeedPage } from '../contract/index.ts'
import { FeedError, FROM_START, FROM_TIME } from './feed-error.ts'
import type { Seal } from './seal.ts'

/** Where a reader stands; what a cursor holds. */
export interface Place {
  /** What it may be used for. */
  readonly endpoint: Endpoint
  /** The databases it is about; null for all, also those that are yet to come. */
  readonly databases: readonly string[] | null
  readonly sequence: number
  /** Of the entry at that sequence: a store that was set back gives the sequence out again, with another time. */
  readonly committedAt: number
  /** The floor when the reader began or last stood above it: whoever begins with nothing may read through what was compacted. */
  readonly floor: number
  /** In whole minutes, so that a place has one cursor for a while. */
  readonly issuedAt: number
}

export type Endpoint = 'changes' | 'list'

export const CURSOR_LIFE_MS = 7 * 24 * 3_600_000
const VERSION = 1
const MINUTE_MS = 60_000

export function sealPlace(seal: Seal, place: Omit<Place, 'issuedAt'>, now: number): string {
  const { endpoint, databases, sequence, committedAt, floor } = place
  return seal.seal(JSON.stringify([VERSION, endpoint, databases, sequence, committedAt, floor, Math.floor(now / MINUTE_MS)]))
}

/** Refuses what is not a place of ours, or too old to be one. */
export function openPlace(seal: Seal, cursor: string, now: number): Place {
  const content = seal.open(cursor)
  if (content === null) throw new FeedError('cursor_invalid', `The cursor cannot be read: it was cut, changed, or not issued to you. ${FROM_TIME}`, 'updatedSince')
  const [version, endpoint, databases, sequence, committedAt, floor, minute] = JSON.parse(content) as [number, Endpoint, string[] | null, number, number, number, number]
  if (version !== VERSION) throw new FeedError('cursor_unsupported', `The cursor is of version ${version}, and this server knows version ${VERSION}. ${FROM_TIME}`, 'updatedSince')
  const place = { endpoint, databases, sequence, committedAt, floor, issuedAt: minute * MINUTE_MS }
  if (now - place.issuedAt > CURSOR_LIFE_MS) throw new FeedError('cursor_expired', `The cursor is older than 7 days. ${FROM_TIME}`, 'updatedSince')
  return place
}

export function checkUse(place: Place, endpoint: Endpoint, databases: readonly string[] | null | undefined): void {
  if (place.endpoint !== endpoint || (endpoint === 'list' && place.databases![0] !== databases![0])) {
    const where = place.endpoint === 'changes' ? 'changes' : place.databases![0]
    throw new FeedError('cursor_misplaced', `The cursor was issued by /agents/v1/${where}: use it there, or start here without it.`, 'backfill')
  }
  if (databases !== undefined && JSON.stringify(databases) !== JSON.stringify(place.databases)) {
    const types = place.databases?.join(',')
    throw new FeedError('cursor_filter', `The cursor was issued ${types === undefined ? 'without `types`' : `for types=${types}`}: repeat that or leave \`types\` out, or start without the cursor.`, 'backfill')
  }
}

/** No silent gap: a place that the store can no longer continue from is expired. */
export function checkContinuity(place: Pick<Place, 'endpoint' | 'sequence' | 'committedAt' | 'floor'>, page: FeedPage): void {
  const { sequence, committedAt } = place
  const unknown = sequence > page.position || (page.afterCommittedAt === null ? sequence > page.floor : page.afterCommittedAt !== committedAt)
  if (unknown) {
    throw new FeedError('cursor_expired', `The store was set back to an earlier state since the cursor was issued, and what you hold may be ahead of it. ${FROM_START}`, 'backfill')
  }
  // A list needs no tombstones, and rows are never compacted away.
  if (place.endpoint === 'changes' && sequence < page.floor && place.floor !== page.floor) {
    throw new FeedError('cursor_expired', `The log no longer holds every change since the cursor was issued. ${FROM_START}`, 'backfill')
  }
}
