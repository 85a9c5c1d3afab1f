import type { FeedEntry, Store } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import { FeedError, RESTART_FROM_START } from './feed-error.ts'
import {
  checkContinuity,
  checkCursorUse,
  resolveDatabases,
  decodeCursor,
  encodeCursor,
  type FeedEndpoint,
  type FeedCursor,
} from './feed-cursor.ts'
import type { CursorCipher } from './cursor-cipher.ts'

export interface FeedPageRequest {
  readonly endpoint: FeedEndpoint
  /** Null for all. Undefined if not given: with a cursor, the databases of the cursor. */
  readonly databases: readonly string[] | null | undefined
  readonly cursor: string | undefined
  readonly updatedSince: string | undefined
  readonly limit: number
  /** First sequence to skip without a cursor and a time; defaults to 0. */
  readonly after?: number
}

export interface FeedPageResult {
  readonly entries: readonly FeedEntry[]
  readonly nextCursor: string
  readonly hasMore: boolean
  readonly syncMode: 'full' | 'incremental'
  readonly databases: readonly string[] | null
  /**
   * The page is full and will never change; only for changes. Never true without a cursor: a reader that starts after
   * a compaction needs cursors with the new floor.
   */
  readonly isImmutable: boolean
  /**
   * The newest sequence when the page was read, and at least that of its cursor: nothing is left to read until a newer
   * one exists.
   */
  readonly headSequence: number
  /** The cursor right after one of the entries. */
  cursorAt(entry: FeedEntry): string
}

/** Entries scanned for one page. A page that reaches the limit is short and has `hasMore: true`. */
const SCAN_MAX = 50_000
/** Record bytes in one page. A page that reaches the limit is short and has `hasMore: true`. */
export const PAGE_BYTES_MAX = 8 * 1024 * 1024
/** An idle reader keeps its cursor this long. */
const CURSOR_REUSE_MS = 24 * 3_600_000

/**
 * Reads one page of changes, or of a database's rows in the order of their last change. Both scan the log from a
 * sequence, so a full listing is an incremental one that starts at 0: concurrent changes appear later, and the last
 * cursor continues without a gap (A10).
 */
export async function readFeedPage(
  store: Store,
  cipher: CursorCipher,
  request: FeedPageRequest,
  now: number,
): Promise<FeedPageResult> {
  const { endpoint, cursor, updatedSince, limit } = request
  const position = cursor === undefined ? null : decodeCursor(cipher, cursor, now)
  if (position !== null) checkCursorUse(position, endpoint, request.databases)
  const databases = position === null ? (request.databases ?? null) : resolveDatabases(position, request.databases)
  const since = position !== null || updatedSince === undefined ? null : parseTime(updatedSince)
  const after = position?.sequence ?? (since === null ? (request.after ?? 0) : await store.sequenceBefore(since))

  const page = await store.feed({
    after,
    limit: limit + 1,
    scanMax: SCAN_MAX,
    bytesMax: PAGE_BYTES_MAX,
    ...(databases !== null && { databases }),
    ...(endpoint === 'list' && { liveOnly: true }),
  })
  // A replica may lag behind: the cursor is not expired, and the reader continues once the replica has caught up.
  if (position !== null && cursor !== undefined && position.sequence > page.headSequence && store.isReplica === true)
    return buildEmptyPage(cipher, position, databases, cursor, now)
  if (position !== null) checkContinuity(position, page)
  if (endpoint === 'changes' && since !== null && page.floor > 0 && since <= page.floorCommittedAt) {
    throw new FeedError(
      'time_expired',
      `The log no longer contains every change since ${updatedSince}, only those since ${toIsoTime(page.floorCommittedAt + 1)}. ${RESTART_FROM_START}`,
      'backfill',
    )
  }
  const entries = page.entries.slice(0, limit)
  // One entry more than the limit is read, so `hasMore` is exact.
  const last = page.entries.length > limit ? (entries.at(-1) ?? null) : null
  const hasMore = last !== null || page.scannedSequence < page.headSequence
  const sequence = last?.sequence ?? page.scannedSequence
  const floor = position !== null && position.sequence < page.floor ? position.floor : page.floor
  const cursorAt = (at: Pick<FeedEntry, 'sequence' | 'committedAt'>): string =>
    encodeCursor(cipher, { endpoint, databases, floor, sequence: at.sequence, committedAt: at.committedAt }, now)
  const nextCursor =
    position !== null && cursor !== undefined && sequence === position.sequence && isCursorReusable(position, now)
      ? cursor
      : cursorAt({ sequence, committedAt: last?.committedAt ?? page.scannedCommittedAt })
  return {
    entries,
    nextCursor,
    hasMore,
    syncMode: position === null && since === null ? 'full' : 'incremental',
    databases,
    isImmutable: endpoint === 'changes' && last !== null && position !== null,
    headSequence: page.headSequence,
    cursorAt,
  }
}

/** Keeps the cursor: it is ahead of this replica. */
function buildEmptyPage(
  cipher: CursorCipher,
  position: FeedCursor,
  databases: readonly string[] | null,
  cursor: string,
  now: number,
): FeedPageResult {
  const nextCursor = isCursorReusable(position, now) ? cursor : encodeCursor(cipher, position, now)
  return {
    entries: [],
    nextCursor,
    hasMore: false,
    syncMode: 'incremental',
    databases,
    isImmutable: false,
    headSequence: position.sequence,
    cursorAt: () => nextCursor,
  }
}

function isCursorReusable({ issuedAt }: FeedCursor, now: number): boolean {
  return now - issuedAt < CURSOR_REUSE_MS
}

/** Inclusive: rounds up to the next whole millisecond. */
export function parseTime(text: string, name = 'updatedSince'): number {
  const canonical = RFC3339_PATTERN.test(text) ? canonicalizeInstant(text) : null
  if (canonical === null) {
    throw new FeedError(
      'time_invalid',
      `\`${name}\` is not an RFC 3339 timestamp with a time zone, such as 2026-01-31T12:00:00.123Z. In a URL, encode + as %2B.`,
    )
  }
  return instantToMs(canonical) + (canonical.slice(23, 26) === '000' ? 0 : 1)
}

/** Stricter than for sources: a T, and a colon in the offset. */
const RFC3339_PATTERN = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

export function toIsoTime(ms: number): string {
  return new Date(ms).toISOString()
}
