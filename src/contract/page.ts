import type { JsonObject } from './json.ts'
import type { Clock, Log, Random } from './ports.ts'
import type { TableShape } from './table-shape.ts'

/** An upsert or a delete of one key. */
export type Change =
  | {
      type: 'upsert'
      key: string
      record: JsonObject
      /** Where in the source's order this record stands; kept in the log's envelope. */
      cursor?: string
      /** The source's own time of this fact, RFC 3339. It decides when two syncs disagree (invariant 6). */
      upstreamUpdatedAt?: string
      /** Another declared database than the sync's own. */
      database?: string
      asOf?: AsOf
    }
  | { type: 'delete'; key: string; upstreamUpdatedAt?: string; database?: string }

/**
 * Set where `upstreamUpdatedAt` is not the time of the record's last change:
 *
 *   event  The record as it was at that time, from a log of changes. It may have changed since.
 *   read   The record as it was when the page was read. It is not older than that time.
 *
 * Such a time orders the changes of one sync. It does not order them against a row that another sync wrote: an `event`
 * may be older than any such row, a `read` than one that was committed after the page was asked for. The page is then
 * read again, with those keys in `SyncContext.unordered`.
 */
export type AsOf = 'event' | 'read'

/** What one call of a source returns. */
export interface Page<State = unknown> {
  changes: Change[]
  hasMore: boolean
  /** Needed when `hasMore`. On the last page it is kept in incremental mode and ignored in replace mode. */
  nextState?: State | undefined
  /**
   * Who is asking and what may be seen, in any form that changes when the answer to "all of it" changes (account,
   * granted scopes, filter). A replace cycle whose scope differs from the last one sweeps nothing until confirmed.
   */
  scope?: string
  /**
   * A stretch of a log: what it tells was so once, and what stands further on in the log may say otherwise. In replace mode a
   * row that another sync has written since the cycle began is therefore newer, whenever the page was asked for.
   */
  isLog?: boolean
  /** On the last page: why the source ends the cycle here, in a word of its own such as `reached_since`. Kept in the cycle's record. */
  endReason?: string
  /**
   * RFC 3339, in the source's time: every change of the source up to this time, deletions included, has been returned once
   * this page and the pages before it are committed (invariant 12). Set it on every page that can say so, the last one at
   * least. Without it the engine derives an earlier time when the cycle completes; null claims nothing, and neither does
   * the engine. In replace mode only the last page's counts.
   */
  tidemark?: string | null | undefined
  /**
   * Types of the records' members as the source's metadata tells them, by database. They count where no schema is declared.
   * Set it on every page where they are at hand: metadata is read at most once per cycle for it.
   */
  tables?: readonly TableShape[] | undefined
  /** How many records follow this page, where the source counts them: only to say how long it will take. */
  left?: number
}

/** `state` is undefined on the very first call, and at the start of every replace cycle. */
export interface Execute<State = unknown> {
  (state: State | undefined, context: SyncContext): Promise<Page<State>>
  /**
   * How long the source keeps changes and deletions, in ms. After a longer absence the delta may have missed some, so the
   * engine does not ask it: it fails with HISTORY_LOST and, in a pair, orders the backfill. Unlimited when absent.
   */
  readonly retentionMs?: number
  /** Without a state it begins at the end of the changes, so that nothing before the first cycle is read. */
  readonly startsAtEnd?: boolean
}

/** What the source has under a key now, as a change; null when it has nothing there. Asked only when somebody misses a row. */
export type Lookup = (key: string, context: SyncContext) => Promise<Change | null>

export type Mode = 'replace' | 'incremental'

export interface SyncContext {
  /** Paced by the sync's pacer, bounded in size and time, aborted with the cycle. */
  readonly fetch: (input: string | URL, init?: RequestInit) => Promise<Response>
  readonly clock: Clock
  readonly random: Random
  /** Aborted when the cycle is cancelled, times out or loses its lease. */
  readonly signal: AbortSignal
  readonly log: Log
  readonly pacer: Pacing
  readonly secrets: Secrets
  readonly cycle: CycleFacts
  /**
   * Keys of this page that could not be ordered against the rows of another sync when it was read before. Return them
   * as they are now (`asOf: 'read'`), on this page or a later one.
   */
  readonly unordered?: readonly string[]
}

export interface Pacing {
  /** Waits for the next slot of the named pacer, or of the sync's only one. */
  wait(name?: string): Promise<void>
}

export interface Secrets {
  /** Throws SECRET_MISSING, with the name and where to set it, when there is none. */
  get(name: string): string
}

export interface CycleFacts {
  readonly id: number
  readonly mode: Mode
  /** When the cycle began, also when it was resumed since: the place to pin a consistency horizon. */
  readonly startedAt: number
  /** 1 for the first page. */
  readonly page: number
}
