import { changeKey, type Change } from './change.ts'
import { ClientError } from './client-error.ts'
import type { Query } from './transport.ts'

/** Where a consumer stands: plain JSON, for a checkpoint to keep. What is in it is the client's own affair. */
export interface ReaderPosition {
  /** After a page that the consumer is done with; null before the first, and while the way back is by time. */
  readonly cursor: string | null
  /** The newest change that the consumer is done with. */
  readonly last: LastChange | null
  /** `last` is one of the page after the cursor: the consumer stopped within it. */
  readonly midPage: boolean
  /** A fresh backfill is under way: what is left of the old copy is still to be deleted. */
  readonly restart: Restart | null
}

export interface LastChange {
  readonly key: string
  readonly updatedAt: string
}

/** The place in the feed was lost, and this is the way back. */
export interface Restart {
  /**
   * updatedSince: nothing is missed, the feed goes on. backfill: everything comes once more; what you hold and does not
   * come before `onRestored` is gone.
   */
  readonly from: 'updatedSince' | 'backfill'
  /** The server's word for it, such as `cursor_expired`. */
  readonly reason: string
  readonly message: string
  /** When it was noticed. Survives a crash: a mark for what has come since. */
  readonly at: string
}

export const START_POSITION: ReaderPosition = { cursor: null, last: null, midPage: false, restart: null }

/** What to ask for, and the change after which to go on: all up to it comes again, and is known. */
export interface ReadPlan {
  readonly query: Query
  readonly anchor: LastChange | null
}

export function planRead({ cursor, last, midPage, restart }: ReaderPosition, updatedSince: string | undefined): ReadPlan {
  if (cursor !== null) return { query: { cursor }, anchor: midPage ? last : null }
  if (last !== null && !midPage) return { query: { updatedSince: last.updatedAt }, anchor: last }
  return { query: restart === null && updatedSince !== undefined ? { updatedSince } : {}, anchor: last }
}

/** Within the page that was asked for at `position`, done up to `last`. */
export function advanceWithinPage(position: ReaderPosition, last: LastChange): ReaderPosition {
  return { ...position, last, midPage: position.cursor !== null || position.last === null || position.midPage }
}

/** The way back that the error names, if there is one that has not just failed. */
export function planRestart(position: ReaderPosition, error: ClientError, now: number): { position: ReaderPosition; restart: Restart } | null {
  if (error.restart === null) return null
  const from = error.restart === 'updatedSince' && position.cursor !== null && position.last !== null ? 'updatedSince' : 'backfill'
  const restart: Restart = { from, reason: error.reason ?? error.code, message: error.message, at: new Date(now).toISOString() }
  if (from === 'updatedSince') return { restart, position: { ...position, cursor: null, midPage: false } }
  const isBeginning = position.cursor === null && position.last === null
  return isBeginning && position.restart !== null ? null : { restart, position: { ...START_POSITION, restart } }
}

/**
 * What of a page comes after the anchor. The order of the feed never changes, so that everything before the anchor was done
 * before it. An anchor that does not come at all means that the store is not the one that was read: it was set back.
 */
export function skipThroughAnchor(anchor: LastChange, changes: readonly Change[], upToDate: boolean): { rest: readonly Change[]; anchor: LastChange | null } {
  const at = changes.findIndex((change) => changeKey(change) === anchor.key)
  if (at >= 0) return { rest: changes.slice(at + 1), anchor: null }
  if (upToDate || changes.some(({ updatedAt }) => updatedAt > anchor.updatedAt)) {
    throw new ClientError('HISTORY_CHANGED', `The newest change that was read, of ${anchor.updatedAt}, is no longer in the feed: the store was set back to an earlier state.`, { reason: 'history_changed', restart: 'backfill' })
  }
  return { rest: [], anchor }
}

export function toLastChange(change: Change): LastChange {
  return { key: changeKey(change), updatedAt: change.updatedAt }
}
