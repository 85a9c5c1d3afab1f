import type { AsOf, Landing } from '../../contract/index.ts'
import { compareInstants } from '../../values/instant.ts'

/** The stored metadata of a key. A deleted row leaves a tombstone, so an old change cannot bring it back. */
export interface StoredRow {
  /** Sequence of its newest log entry; for a tombstone without one, the head sequence when it was written. */
  readonly sequence: number
  readonly status: RowStatus
  /** Hash of the record; null for a tombstone. */
  readonly hash: string | null
  readonly upstreamAt: string | null
  /** The sync that wrote it last. */
  readonly writer: number
  /** The owner whose sweep may delete it. */
  readonly owner: number
  /** The last cycle whose listing contradicted this version; null when none did, or a later one agreed. */
  readonly contestedBy: number | null
}

/** `deleted` by an explicit deletion; `swept` because a complete cycle did not list it. */
export type RowStatus = 'live' | 'deleted' | 'swept'

export interface ReadFacts {
  readonly writer: number
  readonly readFrom: number
  readonly upstreamToleranceMs: number
  /** The page belongs to a replace cycle: it lists the source's current records, not changes. */
  readonly isListing: boolean
}

/**
 * How an incoming change is resolved against the stored row. All of invariant 6:
 *
 * create   a row appears (or returns)           touch    same content; only time, hash or tombstone changes, no log entry
 * update   its content changes                  same     nothing to do
 * delete   it is deleted, a tombstone remains   stale    older than the stored version: ignored
 * tombstone  written for an unknown key         gone     already deleted
 * overlap  the two reads cannot be ordered: the page must be read again
 * contest  older by the source's time, but listed after the stored version was committed: needs confirmation
 */
export type Resolution =
  | 'create'
  | 'update'
  | 'delete'
  | 'tombstone'
  | 'touch'
  | 'same'
  | 'stale'
  | 'gone'
  | 'overlap'
  | 'contest'

export function resolveLanding(landing: Landing, row: StoredRow | undefined, read: ReadFacts): Resolution {
  if (row === undefined) return landing.type === 'upsert' ? 'create' : 'tombstone'
  const order = compareTimes(landing.upstreamAt, row.upstreamAt, read.upstreamToleranceMs)

  if (landing.type === 'delete') {
    // An explicit deletion of a swept row: the tombstone also takes the time of the deletion.
    if (row.status !== 'live') return order > 0 || (row.status === 'swept' && !(order < 0)) ? 'touch' : 'gone'
    if (order < 0) return resolveOlderLanding(row, read)
    return order >= 0 || isLaterRead(row, read) ? 'delete' : 'overlap'
  }

  if (row.status === 'swept' && landing.asOf !== undefined)
    return isUnordered(landing.asOf, row, read) ? 'overlap' : 'create'
  if (row.status !== 'live') {
    // A version as old as the deleted row repeats the deleted version. A swept row was only missing from a listing;
    // listed again with the same time, it is live.
    if (order < 0 || (row.status === 'deleted' && order === 0 && landing.upstreamAt === row.upstreamAt))
      return resolveOlderLanding(row, read)
    // A sweep has no source time: a swept row returns only if it was read after the sweep.
    return (order > 0 && row.status === 'deleted') || isLaterRead(row, read) ? 'create' : 'overlap'
  }

  if (landing.hash === row.hash) {
    return order > 0 || (row.upstreamAt === null && landing.upstreamAt !== null) ? 'touch' : 'same'
  }
  if (isUnordered(landing.asOf, row, read)) return 'overlap'
  // A single record that was read after the row was committed is later, whatever its time is.
  const isRead = landing.asOf === 'read' && !read.isListing
  if (order < 0 && !isRead) return resolveOlderLanding(row, read)
  return order > 0 || isLaterRead(row, read) ? 'update' : 'overlap'
}

/**
 * Causality takes precedence over clocks. A listing requested after the stored version was committed is the later read,
 * whatever its times are. It may come from a lagging replica, so it needs confirmation before it wins.
 */
function resolveOlderLanding(row: StoredRow, read: ReadFacts): 'stale' | 'contest' {
  return read.isListing && row.sequence <= read.readFrom ? 'contest' : 'stale'
}

/** See AsOf: the record's time does not order it against a row of another sync. */
function isUnordered(asOf: AsOf | undefined, row: StoredRow, read: ReadFacts): boolean {
  if (asOf === undefined || row.writer === read.writer) return false
  return asOf === 'event' || row.sequence > read.readFrom
}

/** NaN when either side has no time: `<`, `>` and `===` are all false, and only the order of the reads is left. */
function compareTimes(landing: string | null, row: string | null, toleranceMs: number): number {
  return landing === null || row === null ? Number.NaN : compareInstants(landing, row, toleranceMs)
}

/**
 * The pages of one sync are sequential. A row of another sync was read earlier if it was committed before this read
 * began; sequences show that without trusting a clock.
 */
function isLaterRead(row: StoredRow, read: ReadFacts): boolean {
  return row.writer === read.writer || row.sequence <= read.readFrom
}
