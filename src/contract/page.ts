import type { JsonObject, JsonValue } from './json.ts'
import type { Clock, Log, Random } from './ports.ts'
import type { SourceConnection } from './connections.ts'
import type { TableShape } from './table-shape.ts'
import type { SourceChecks } from './verification.ts'

/** An upsert or a delete of one key, or a record that goes to quarantine. */
export type Change =
  | {
      type: 'upsert'
      key: string
      record: JsonObject
      /** The position of this record in the source's order; stored in the envelope of the log entry. */
      cursor?: string
      /** The source's own time of this version, RFC 3339. It decides when two syncs disagree (invariant 6). */
      upstreamUpdatedAt?: string
      /** A declared database other than the sync's own. */
      database?: string
      asOf?: AsOf
    }
  | { type: 'delete'; key: string; upstreamUpdatedAt?: string; database?: string }
  | {
      type: 'invalid'
      /** The row of this key stays as it is, and the sweep keeps it. Null if the key is unknown, which keeps no row. */
      key: string | null
      /** Stored as the message of the quarantined record. It must not quote values. */
      reason: string
      /** As much of the record as the source has, for the operator; null if it has nothing. */
      raw: JsonValue
      database?: string
    }

/**
 * Set if `upstreamUpdatedAt` is not the time of the record's last change:
 *
 *   event  The record as it was at that time, from a log of changes. It may have changed since.
 *   read   The record as it was when the page was read. It is not older than that time.
 *
 * Such a time orders the changes of one sync. It does not order them against a row that another sync wrote: an `event`
 * may be older than any such row, a `read` older than one that was committed after the page was requested. The page is
 * then read again, with those keys in `SyncContext.unordered`.
 */
export type AsOf = 'event' | 'read'

/** The result of one call of a source. */
export interface Page<State = unknown> {
  changes: Change[]
  hasMore: boolean
  /** Required with `hasMore: true`. On the last page it is stored in incremental mode and ignored in replace mode. */
  nextState?: State | undefined
  /**
   * Identifies the visible data set, in any form that changes when a full listing would change (account, granted
   * scopes, filter). A replace cycle whose scope differs from the last one sweeps nothing until confirmed.
   */
  scope?: string
  /**
   * The source refused or hid a part of its data, and the sync reads the rest: absence from this cycle proves nothing.
   * A cycle with such a page sweeps nothing, unless an operator allows it, does not advance its tidemark, and ends
   * with the reason `incomplete`.
   */
  isIncomplete?: boolean
  /**
   * The page is a section of a log: its changes may be superseded further on in the log. In replace mode a row that
   * another sync has written since the cycle began is therefore newer, regardless of when the page was requested.
   */
  isLog?: boolean
  /**
   * On the last page: the source's own reason for ending the cycle, such as `reached_since`. Stored in the cycle's
   * record.
   */
  endReason?: string
  /**
   * RFC 3339, in the source's time: every change of the source up to this time, deletions included, has been returned
   * once this page and the pages before it are committed (invariant 12). Set it on every page for which it is known, at
   * least on the last one. If absent, the engine derives an earlier time when the cycle completes; null makes no claim,
   * and the engine derives none. In replace mode only the value of the last page counts.
   */
  tidemark?: string | null | undefined
  /**
   * Types of the record fields from the source's metadata, by database. They apply if no schema is declared. Set it on
   * every page where they are available: the engine reads metadata at most once per cycle for it.
   */
  tables?: readonly TableShape[] | undefined
  /** The number of records after this page, if the source counts them. Used only to estimate the remaining time. */
  left?: number
  /**
   * States of partitions, each at most once. They are committed with this page, apart from the state of the sync, and
   * the next page reads them from `SyncContext.partitions`. Null removes one.
   */
  partitions?: readonly PartitionWrite[]
  /**
   * On the last page of a read of single partitions: the rows that belong to them. All of those that the source still
   * has were returned, so the sweep may delete the others. See Execute.selectPartitions.
   */
  rows?: RowScope
}

/** Rows by the value of one field of their records. */
export interface RowScope {
  readonly field: string
  readonly values: ReadonlyArray<string | number>
  /**
   * The field of a record never changes. Otherwise a row that was not returned may only have moved to another partition,
   * so it is deleted only if the source's lookup does not find it either.
   */
  readonly isFixed?: boolean
}

/** The new state of a partition; null removes it. */
export interface PartitionWrite {
  readonly key: string
  readonly state: JsonValue | null
}

/** A partition with its committed state. */
export interface PartitionState {
  readonly key: string
  readonly state: JsonValue
}

/**
 * The states of a sync's partitions as of the pages before this one. Only these pages write them, so they do not change
 * while a page is read.
 */
export interface PartitionReader {
  /** The committed states of these partitions; a key without a state is absent. */
  get(keys: readonly string[]): Promise<ReadonlyMap<string, JsonValue>>
  /** Committed partitions in key order (UTF-8 bytes), above `after`. */
  list(query: { readonly after?: string; readonly limit: number }): Promise<readonly PartitionState[]>
}

/** `state` is undefined on the first call, and at the start of every replace cycle. */
export interface Execute<State = unknown> {
  (state: State | undefined, context: SyncContext): Promise<Page<State>>
  /**
   * How long the source keeps changes and deletions, in ms. After a longer gap the delta may have missed some, so the
   * engine does not call it: the cycle fails with HISTORY_LOST and, in a pair, requests the backfill. Unlimited if
   * absent.
   */
  readonly retentionMs?: number
  /**
   * Without a state the source starts at the end of its changes, so it returns nothing from before the first cycle.
   */
  readonly startsAtEnd?: boolean
  /** The default of the sync's `lagMs`: a listing that is declared without its delta keeps the source's lag. */
  readonly lagMs?: number
  /** The default of the sync's `lookup`. */
  readonly lookup?: Lookup
  /** The name of the tenant's connection that it reads with. A tenant without it does not have the sync. */
  readonly connection?: string
  /** Reads only the records of a range of the source's times, all of them, in pages. Absent if the source cannot. */
  readonly range?: (range: TimeRange) => Execute<any>
  /** Why `range` is absent, for the error of `tidemark backfill`: a clause without a final period. */
  readonly rangeUnsupported?: string
  /** The questions that compare the stream with its copy: `tidemark verify`. */
  readonly checks?: SourceChecks
  /**
   * Reads only the partitions with these keys, each from its start, as cycles of this mode would. Absent if the source
   * has no partitions.
   */
  readonly selectPartitions?: (keys: readonly string[], mode: Mode) => Execute<any>
  /** Takes over the states of other tools: `tidemark state import`. */
  readonly importState?: Readonly<Partial<Record<StateFormat, StateImport<State>>>>
}

/** The tools whose states can be taken over. */
export type StateFormat = 'singer' | 'airbyte'

/**
 * Converts the state of another tool, once, on request of an operator. `stream` names the stream inside the document if
 * it has another name there. Throws ARGUMENT_INVALID if the document is not such a state, or has nothing of the stream.
 */
export type StateImport<State = unknown> = (document: JsonValue, stream?: string) => ImportedState<State>

/** The state of a sync and of its partitions, from another tool. */
export interface ImportedState<State = unknown> {
  readonly state: State
  /** As a page of the source would write them. */
  readonly partitions?: readonly PartitionWrite[]
}

/** A range of the source's times, RFC 3339: `from` is included, `to` is not. An absent end is open. */
export interface TimeRange {
  readonly from?: string
  readonly to?: string
}

/**
 * Reads the current record of a key, as a change; null if the source has none. Called only for a row that a listing
 * omitted.
 */
export type Lookup = (key: string, context: SyncContext) => Promise<Change | null>

/**
 * `replace`: every cycle lists all records, and the sweep deletes the others. `incremental`: a cycle returns changes.
 */
export type Mode = 'replace' | 'incremental'

/**
 * Everything that `execute` may use besides its state: the network, time, randomness, secrets and the facts of the
 * cycle.
 */
export interface SyncContext {
  /** Rate-limited by the sync's pacer, bounded in size and time, aborted with the cycle. */
  readonly fetch: (input: string | URL, init?: RequestInit) => Promise<Response>
  readonly clock: Clock
  readonly random: Random
  /** Aborted when the cycle is cancelled, times out or loses its lease. */
  readonly signal: AbortSignal
  readonly log: Log
  readonly pacer: Pacing
  readonly secrets: Secrets
  /** The tenant's connection that the sync names; absent if it names none. */
  readonly connection?: SourceConnection
  readonly cycle: CycleFacts
  /** The states of the sync's partitions; see Page.partitions. */
  readonly partitions: PartitionReader
  /**
   * Keys of this page that could not be ordered against rows of another sync on an earlier read. Return their current
   * records (`asOf: 'read'`), on this page or a later one.
   */
  readonly unordered?: readonly string[]
}

/** The rate limit of a sync, shared by all processes. */
export interface Pacing {
  /** Waits for the next slot of the named pacer, or of the sync's only one. */
  wait(name?: string): Promise<void>
}

/** Access to secrets by name. */
export interface Secrets {
  /** Throws SECRET_MISSING with the name and how to set it. */
  get(name: string): string
}

/** The running cycle, as its `execute` sees it. */
export interface CycleFacts {
  readonly id: number
  readonly mode: Mode
  /** When the cycle began, unchanged when it is resumed. Use it to pin a consistency horizon. */
  readonly startedAt: number
  /** 1 for the first page. */
  readonly page: number
}
