import type { FeedEntry, Store } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import { FeedError, RESTART_FROM_START } from './feed-error.ts'
import { checkContinuity, checkCursorUse, resolveDatabases, decodeCursor, encodeCursor, type FeedEndpoint, type FeedCursor } from './feed-cursor.ts'
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
export async function readFeedPage(store: Store, seal: CursorCipher, request: FeedPageRequest, now: number): Promise<FeedPageResult> {
  const { endpoint, cursor, updatedSince, limit } = request
  const opened = cursor === undefined ? null : decodeCursor(seal, cursor, now)
  if (opened !== null) checkCursorUse(opened, endpoint, request.databases)
  const databases = opened === null ? (request.databases ?? null) : resolveDatabases(opened, request.databases)
  const since = opened !== null || updatedSince === undefined ? null : parseTime(updatedSince)
  const after = opened?.sequence ?? (since === null ? request.after ?? 0 : await store.sequenceBefore(since))

  const page = await store.feed({ after, limit: limit + 1, scanMax: SCAN_MAX, bytesMax: PAGE_BYTES_MAX, ...(databases !== null && { databases }), ...(endpoint === 'list' && { liveOnly: true }) })
  // A replica may lag behind: the cursor is not expired, and the reader continues once the replica has caught up.
  if (opened !== null && opened.sequence > page.headSequence && store.isReplica === true) return buildEmptyPage(seal, opened, databases, cursor!, now)
  if (opened !== null) checkContinuity(opened, page)
  if (endpoint === 'changes' && since !== null && page.floor > 0 && since <= page.floorCommittedAt) {
    throw new FeedError('time_expired', `The log no longer holds every change since ${updatedSince}; it does from ${toIsoTime(page.floorCommittedAt + 1)} on. ${RESTART_FROM_START}`, 'backfill')
  }
  const entries = page.entries.slice(0, limit)
  // One entry more than the limit is read, so `hasMore` is exact.
  const last = page.entries.length > limit ? entries.at(-1)! : null
  const hasMore = last !== null || page.scannedSequence < page.headSequence
  const sequence = last?.sequence ?? page.scannedSequence
  const floor = opened !== null && opened.sequence < page.floor ? opened.floor : page.floor
  const cursorAt = (at: Pick<FeedEntry, 'sequence' | 'committedAt'>): string => encodeCursor(seal, { endpoint, databases, floor, sequence: at.sequence, committedAt: at.committedAt }, now)
  const nextCursor = opened !== null && sequence === opened.sequence && isCursorReusable(opened, now) ? cursor! : cursorAt({ sequence, committedAt: last?.committedAt ?? page.scannedCommittedAt })
  return { entries, nextCursor, hasMore, syncMode: opened === null && since === null ? 'full' : 'incremental', databases, isImmutable: endpoint === 'changes' && last !== null && opened !== null, headSequence: page.headSequence, cursorAt }
}

/** Keeps the cursor: it is ahead of this replica. */
function buildEmptyPage(seal: CursorCipher, opened: FeedCursor, databases: readonly string[] | null, cursor: string, now: number): FeedPageResult {
  const nextCursor = isCursorReusable(opened, now) ? cursor : encodeCursor(seal, opened, now)
  return { entries: [], nextCursor, hasMore: false, syncMode: 'incremental', databases, isImmutable: false, headSequence: opened.sequence, cursorAt: () => nextCursor }
}

function isCursorReusable({ issuedAt }: FeedCursor, now: number): boolean {
  return now - issuedAt < CURSOR_REUSE_MS
}

/** Inclusive: rounds up to the next whole millisecond. */
export function parseTime(text: string, name = 'updatedSince'): number {
  const canonical = RFC3339_PATTERN.test(text) ? canonicalizeInstant(text) : null
  if (canonical === null) {
    throw new FeedError('time_invalid', `\`${name}\` is not an RFC 3339 time with a zone, such as 2026-01-31T12:00:00.123Z. In a URL a + has to be written as %2B.`)
  }
  return instantToMs(canonical) + (canonical.slice(23, 26) === '000' ? 0 : 1)
}

/** Stricter than for sources: a T, and a colon in the offset. */
const RFC3339_PATTERN = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

export function toIsoTime(ms: number): string {
  return new Date(ms).toISOString()
}
