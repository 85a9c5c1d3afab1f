import type { AsOf, Landing } from '../../contract/index.ts'
import { compareInstants } from '../../values/instant.ts'

/** What a store knows of a key. A deleted row stays as a tombstone, so that the dead stay dead. */
export interface StoredRow {
  /** Of its newest log entry; for a tombstone without one, the position at which it was laid. */
  readonly sequence: number
  readonly status: RowStatus
  /** Of the record; null for a tombstone. */
  readonly hash: string | null
  readonly upstreamAt: string | null
  /** The sync that wrote it last. */
  readonly writer: number
  /** The owner whose sweep may delete it. */
  readonly owner: number
  /** The last cycle whose listing contradicted this version; null when none did, or one agreed with it since. */
  readonly contestedBy: number | null
}

/** `deleted` on someone's word; `swept` because a complete cycle did not list it. */
export type RowStatus = 'live' | 'deleted' | 'swept'

export interface ReadFacts {
  readonly writer: number
  readonly readFrom: number
  readonly upstreamToleranceMs: number
  /** The page belongs to a replace cycle: it shows what the source has, and not what changed. */
  readonly isListing: boolean
}

/**
 * What becomes of a landing, given the row that is there. The whole of invariant 6:
 *
 *   create   a row appears (or comes back)        touch    same content, but the stored time, hash or tombstone moves; no log entry
 *   update   its content changes                  same     nothing to do
 *   delete   it goes, a tombstone stays           stale    older than what is there: ignored
 *   bury     a tombstone for a key never seen     gone     already deleted
 *   overlap  the two reads cannot be ordered: the page must be read again
 *   contest  older by the source's time, but read from a listing after the stored version was committed: to be confirmed
 */
export type Resolution = 'create' | 'update' | 'delete' | 'bury' | 'touch' | 'same' | 'stale' | 'gone' | 'overlap' | 'contest'

export function resolveLanding(landing: Landing, row: StoredRow | undefined, read: ReadFacts): Resolution {
  if (row === undefined) return landing.type === 'upsert' ? 'create' : 'bury'
  const order = compareTimes(landing.upstreamAt, row.upstreamAt, read.upstreamToleranceMs)

  if (landing.type === 'delete') {
    // What a sweep only missed, somebody now says is deleted: from here on it is dead at that time too.
    if (row.status !== 'live') return order > 0 || (row.status === 'swept' && !(order < 0)) ? 'touch' : 'gone'
    if (order < 0) return resolveOlderLanding(row, read)
    return order >= 0 || isLaterRead(row, read) ? 'delete' : 'overlap'
  }

  if (row.status === 'swept' && landing.asOf !== undefined) return isUnordered(landing.asOf, row, read) ? 'overlap' : 'create'
  if (row.status !== 'live') {
    // A fact as old as the row was when somebody deleted it is that same fact told again. A swept row was only not
    // listed; if it is listed again with the same time, it lives.
    if (order < 0 || (row.status === 'deleted' && order === 0 && landing.upstreamAt === row.upstreamAt)) return resolveOlderLanding(row, read)
    // A sweep has no time to compare with: a row it missed is back only if it was read after the sweep.
    return (order > 0 && row.status === 'deleted') || isLaterRead(row, read) ? 'create' : 'overlap'
  }

  if (landing.hash === row.hash) {
    return order > 0 || (row.upstreamAt === null && landing.upstreamAt !== null) ? 'touch' : 'same'
  }
  if (isUnordered(landing.asOf, row, read)) return 'overlap'
  // A single record that was read after the row was committed is later, whatever its time says.
  const isRead = landing.asOf === 'read' && !read.isListing
  if (order < 0 && !isRead) return resolveOlderLanding(row, read)
  return order > 0 || isLaterRead(row, read) ? 'update' : 'overlap'
}

/**
 * Causality decides before the clock does. A listing that was asked for after the stored version was committed is the
 * later read, whatever its times say. It may still come from a copy that lags, so it is confirmed before it wins.
 */
function resolveOlderLanding(row: StoredRow, read: ReadFacts): 'stale' | 'contest' {
  return read.isListing && row.sequence <= read.readFrom ? 'contest' : 'stale'
}

/** See AsOf: its time does not order the record against a row of another sync. */
function isUnordered(asOf: AsOf | undefined, row: StoredRow, read: ReadFacts): boolean {
  if (asOf === undefined || row.writer === read.writer) return false
  return asOf === 'event' || row.sequence > read.readFrom
}

/** NaN when either side has no time: then neither `<`, `>` nor `===` holds, and only the order of reading is left. */
function compareTimes(landing: string | null, row: string | null, toleranceMs: number): number {
  return landing === null || row === null ? Number.NaN : compareInstants(landing, row, toleranceMs)
}

/**
 * A sync's own pages come one after the other. Another sync's row was read before ours if it was committed before our
 * read began; sequences tell that without trusting anybody's clock.
 */
function isLaterRead(row: StoredRow, read: ReadFacts): boolean {
  return row.writer === read.writer || row.sequence <= read.readFrom
}
