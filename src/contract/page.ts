import type { JsonObject } from './json.ts'
import type { Clock, Log, Random } from './ports.ts'

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
    }
  | { type: 'delete'; key: string; upstreamUpdatedAt?: string; database?: string }

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
  stopWord?: string
  /** How many records follow this page, where the source counts them: only to say how long it will take. */
  left?: number
}

/** `state` is undefined on the very first call, and at the start of every replace cycle. */
export type Execute<State = unknown> = (state: State | undefined, context: SyncContext) => Promise<Page<State>>

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
