import { changeKey, type Change } from './change.ts'
import { ClientError } from './client-error.ts'
import type { Query } from './transport.ts'

/** A consumer's position as plain JSON, for a checkpoint. Its content is opaque. */
export interface ReaderPosition {
  /** The cursor after the last processed page; null before the first, and while recovering by time. */
  readonly cursor: string | null
  /** The newest processed change. */
  readonly last: LastChange | null
  /** `last` belongs to the page after the cursor: the consumer stopped within it. */
  readonly midPage: boolean
  /** A fresh backfill is in progress: stale rows of the old copy are still to be deleted. */
  readonly restart: Restart | null
}

/** The last change that the consumer processed. It detects redelivered changes after a restart. */
export interface LastChange {
  readonly key: string
  readonly updatedAt: string
}

/** The position in the feed was lost; describes how the client recovers. */
export interface Restart {
  /**
   * updatedSince: nothing is missed and the feed continues. backfill: everything is delivered again; rows you hold
   * that are not delivered before `onRestored` no longer exist.
   */
  readonly from: 'updatedSince' | 'backfill'
  /** The server's reason code, such as `cursor_expired`. */
  readonly reason: string
  readonly message: string
  /** When the loss was detected. Survives a crash, so it separates old rows from redelivered ones. */
  readonly at: string
}

export const START_POSITION: ReaderPosition = { cursor: null, last: null, midPage: false, restart: null }

/** The next request, and the change up to which its response is already processed. */
export interface ReadPlan {
  readonly query: Query
  readonly anchor: LastChange | null
}

export function planRead(
  { cursor, last, midPage, restart }: ReaderPosition,
  updatedSince: string | undefined,
): ReadPlan {
  if (cursor !== null) return { query: { cursor }, anchor: midPage ? last : null }
  if (last !== null && !midPage) return { query: { updatedSince: last.updatedAt }, anchor: last }
  return { query: restart === null && updatedSince !== undefined ? { updatedSince } : {}, anchor: last }
}

/** The position within the page requested at `position`, processed up to `last`. */
export function advanceWithinPage(position: ReaderPosition, last: LastChange): ReaderPosition {
  return { ...position, last, midPage: position.cursor !== null || position.last === null || position.midPage }
}

/** Returns the recovery that the error names, or null if it has just failed. */
export function planRestart(
  position: ReaderPosition,
  error: ClientError,
  now: number,
): { position: ReaderPosition; restart: Restart } | null {
  if (error.restart === null) return null
  const from =
    error.restart === 'updatedSince' && position.cursor !== null && position.last !== null ? 'updatedSince' : 'backfill'
  const restart: Restart = {
    from,
    reason: error.reason ?? error.code,
    message: error.message,
    at: new Date(now).toISOString(),
  }
  if (from === 'updatedSince') return { restart, position: { ...position, cursor: null, midPage: false } }
  const isAtStart = position.cursor === null && position.last === null
  return isAtStart && position.restart !== null ? null : { restart, position: { ...START_POSITION, restart } }
}

/**
 * Returns the changes after the anchor. The order of the feed is stable, so everything before the anchor was
 * processed. A missing anchor means that the store was restored to an earlier state.
 */
export function skipThroughAnchor(
  anchor: LastChange,
  changes: readonly Change[],
  upToDate: boolean,
): { rest: readonly Change[]; anchor: LastChange | null } {
  const at = changes.findIndex((change) => changeKey(change) === anchor.key)
  if (at >= 0) return { rest: changes.slice(at + 1), anchor: null }
  if (upToDate || changes.some(({ updatedAt }) => updatedAt > anchor.updatedAt)) {
    throw new ClientError(
      'HISTORY_CHANGED',
      `The newest change that was read (${anchor.updatedAt}) is no longer in the feed: the store was restored to an earlier state.`,
      { reason: 'history_changed', restart: 'backfill' },
    )
  }
  return { rest: [], anchor }
}

export function toLastChange(change: Change): LastChange {
  return { key: changeKey(change), updatedAt: change.updatedAt }
}
