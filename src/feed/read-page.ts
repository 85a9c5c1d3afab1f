import type { FeedEntry, Store } from '../contract/index.ts'
import { canonicalInstant, instantMs } from '../values/instant.ts'
import { FeedError, FROM_START } from './feed-error.ts'
import { checkContinuity, checkUse, databasesOf, openPlace, sealPlace, type Endpoint, type Place } from './place.ts'
import type { Seal } from './seal.ts'

export interface PageRequest {
  readonly endpoint: Endpoint
  /** Null for all; undefined when not said, which with a cursor means those of the cursor. */
  readonly databases: readonly string[] | null | undefined
  readonly cursor: string | undefined
  readonly updatedSince: string | undefined
  readonly limit: number
  /** Where to begin without a cursor and a time; at the start when not said. */
  readonly after?: number
}

export interface Page {
  readonly entries: readonly FeedEntry[]
  readonly nextCursor: string
  readonly hasMore: boolean
  readonly syncMode: 'full' | 'incremental'
  readonly databases: readonly string[] | null
  /**
   * It has all the items it may have, so that it will be the same whenever it is asked for; only of changes. Never one that
   * begins without a cursor: whoever begins anew after the log was compacted needs cursors that know of it.
   */
  readonly isSettled: boolean
  /** The newest sequence when the page was read, and never one before its cursor: there is nothing to read until there is a newer one. */
  readonly position: number
  /** The place right after one of the entries. */
  cursorAt(entry: FeedEntry): string
}

/** Entries looked through for one page: one that finds too little in them is short, and says that there is more. */
const SCAN_MAX = 50_000
/** Bytes of records in one page: one that reaches them is short, and says that there is more. */
export const PAGE_BYTES_MAX = 8 * 1024 * 1024
/** A reader that stands still keeps its cursor this long. */
const KEEP_MS = 24 * 3_600_000

/**
 * One page of the changes, or of a database's rows in the order of their last change. Both are the log from a place on, so
 * that a full listing is the same walk as an incremental one, begun at the start: what changes meanwhile comes again later,
 * and the last page's cursor goes on without a gap (A10).
 */
export async function readPage(store: Store, seal: Seal, request: PageRequest, now: number): Promise<Page> {
  const { endpoint, cursor, updatedSince, limit } = request
  const opened = cursor === undefined ? null : openPlace(seal, cursor, now)
  if (opened !== null) checkUse(opened, endpoint, request.databases)
  const databases = opened === null ? (request.databases ?? null) : databasesOf(opened, request.databases)
  const since = opened !== null || updatedSince === undefined ? null : parseTime(updatedSince)
  const after = opened?.sequence ?? (since === null ? request.after ?? 0 : await store.sequenceBefore(since))

  const page = await store.feed({ after, limit: limit + 1, scanMax: SCAN_MAX, bytesMax: PAGE_BYTES_MAX, ...(databases !== null && { databases }), ...(endpoint === 'list' && { live: true }) })
  // Not set back, as far as anybody can tell here, but not there yet: whoever asks again once it is finds all that follows.
  if (opened !== null && opened.sequence > page.position && store.isReplica === true) return readNothing(seal, opened, databases, cursor!, now)
  if (opened !== null) checkContinuity(opened, page)
  if (endpoint === 'changes' && since !== null && page.floor > 0 && since <= page.floorCommittedAt) {
    throw new FeedError('time_expired', `The log no longer holds every change since ${updatedSince}; it does from ${isoTime(page.floorCommittedAt + 1)} on. ${FROM_START}`, 'backfill')
  }
  const entries = page.entries.slice(0, limit)
  // One more was asked for than is given: whether there is more is known, not guessed.
  const last = page.entries.length > limit ? entries.at(-1)! : null
  const hasMore = last !== null || page.scanned < page.position
  const sequence = last?.sequence ?? page.scanned
  const floor = opened !== null && opened.sequence < page.floor ? opened.floor : page.floor
  const cursorAt = (at: Pick<FeedEntry, 'sequence' | 'committedAt'>): string => sealPlace(seal, { endpoint, databases, floor, sequence: at.sequence, committedAt: at.committedAt }, now)
  const nextCursor = opened !== null && sequence === opened.sequence && isFresh(opened, now) ? cursor! : cursorAt({ sequence, committedAt: last?.committedAt ?? page.scannedCommittedAt })
  return { entries, nextCursor, hasMore, syncMode: opened === null && since === null ? 'full' : 'incremental', databases, isSettled: endpoint === 'changes' && last !== null && opened !== null, position: page.position, cursorAt }
}

/** The place stays as it is: what this store lacks, the cursor knows. */
function readNothing(seal: Seal, opened: Place, databases: readonly string[] | null, cursor: string, now: number): Page {
  const nextCursor = isFresh(opened, now) ? cursor : sealPlace(seal, opened, now)
  return { entries: [], nextCursor, hasMore: false, syncMode: 'incremental', databases, isSettled: false, position: opened.sequence, cursorAt: () => nextCursor }
}

function isFresh({ issuedAt }: Place, now: number): boolean {
  return now - issuedAt < KEEP_MS
}

/** Inclusive: the first whole millisecond that is not before it. */
export function parseTime(text: string, name = 'updatedSince'): number {
  const canonical = STRICT.test(text) ? canonicalInstant(text) : null
  if (canonical === null) {
    throw new FeedError('time_invalid', `\`${name}\` is not an RFC 3339 time with a zone, such as 2026-01-31T12:00:00.123Z. In a URL a + has to be written as %2B.`)
  }
  return instantMs(canonical) + (canonical.slice(23, 26) === '000' ? 0 : 1)
}

/** Narrower than what sources may send: a T, a colon in the offset. */
const STRICT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
