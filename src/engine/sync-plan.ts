import {
  SyncError,
  type ColumnRulesInForce,
  type Commit,
  type DeleteMode,
  type Execute,
  type JsonObject,
  type Lookup,
  type Mode,
  type SchemaMode,
  type Store,
  type SyncContext,
  type TableShape,
  type TimeRange,
} from '../contract/index.ts'
import type { ColumnPlan } from '../transforms/column-rules.ts'
import { required } from '../values/required.ts'

/** A sync as the engine runs it: all options are resolved to values. */
export interface SyncPlan {
  readonly worker: string
  readonly sync: string
  readonly mode: Mode
  /** The first one receives changes without `database`. */
  readonly databases: readonly DatabasePlan[]
  /** The name under which this sync owns rows; see Commit.owner. */
  readonly owner: string
  readonly execute: Execute<any>
  /** Looks up a record of the first database; null if the source cannot return single records. */
  readonly lookup?: Lookup | null
  readonly pacers: readonly PacerPlan[]
  readonly limits: SyncLimits
  readonly sweep: SweepPlan
  /** The time until a change is visible in every response of the source; 0 if absent. */
  readonly lagMs?: number
  /** The name of the tenant's connection that it reads with; null if it uses none. */
  readonly connection?: string | null
  /** The declared scope; joined with Page.scope. */
  readonly scope: string | null
  readonly upstreamToleranceMs: number
  /** How long the source keeps changes and deletions; see Execute.retentionMs. Null for no limit. */
  readonly retentionMs?: number | null
  /** The other sync of a pair over one database. */
  readonly pair?: PairPlan
  /** Replace syncs of the worker that write one of its databases; the other half of a pair when absent. See Commit.forceLogSince. */
  readonly listings?: readonly string[]
  /** The plan reads a range of times; see range-plan.ts. It deletes nothing and claims no tidemark. */
  readonly range?: TimeRange
  /** The plan reads single partitions; see partition-plan.ts. It deletes only rows of them and claims no tidemark. */
  readonly partitions?: PartitionSelection
}

/** The partitions that a plan reads. */
export interface PartitionSelection {
  readonly keys: readonly string[]
  /** Whether the cycles of the sync delete rows that they do not return. */
  readonly sweeps: boolean
}

/** Whether the plan reads only some of the records of its source. */
export function readsPart({ range, partitions }: Pick<SyncPlan, 'range' | 'partitions'>): boolean {
  return range !== undefined || partitions !== undefined
}

export interface SweepPlan {
  readonly maxShare: number
  readonly allowEmpty: boolean
  /** Absent rows to look up before a sweep; 0 for none. */
  readonly lookupsMax?: number
}

export type PairPlan =
  /**
   * `anchor` returns the current end of the change feed. It is stored as the delta's state before the backfill reads
   * its first page.
   */
  | {
      readonly role: 'backfill'
      readonly delta: string
      readonly anchor: ((context: SyncContext) => Promise<unknown>) | null
    }
  | { readonly role: 'delta'; readonly backfill: string }

export interface DatabasePlan {
  readonly name: string
  /** The name under which this sync owns rows here, if not its own; see Commit.owners. */
  readonly owner?: string
  /** See Commit.historyDays; null for the retention of the log. */
  readonly historyDays?: number | null
  /** The delete mode; `hard` if absent. */
  readonly deletes?: DeleteMode
  /** Returns null if the record is valid, else the reason. Absent without a schema. */
  readonly validate?: (record: JsonObject) => string | null | Promise<string | null>
  /** The declared column types. */
  readonly shape?: TableShape
  /** The rules that records are changed by before they are written; absent without rules. */
  readonly columns?: ColumnPlan
  /** The handling of a record that does not fit its columns; `evolve` if absent. */
  readonly schemaChanges?: SchemaMode
}

/** The schema modes for a commit; empty if every database evolves. */
export function buildCommitSchemaModes({ databases }: SyncPlan): Pick<Commit, 'schemaModes'> {
  const modes = databases.flatMap(({ name, schemaChanges }) =>
    schemaChanges === undefined || schemaChanges === 'evolve' ? [] : [[name, schemaChanges] as const],
  )
  return modes.length === 0 ? {} : { schemaModes: Object.fromEntries(modes) }
}

/** The delete modes for a commit. Every database is included, because a removed setting means the default again. */
export function buildCommitDeletes({ databases }: SyncPlan): Pick<Commit, 'deletes'> {
  return { deletes: Object.fromEntries(databases.map(({ name, deletes = 'hard' }) => [name, deletes])) }
}

/** A store without support for deleted rows would remove them silently. */
export function assertDeletesSupported({ databases, sync }: SyncPlan, store: Pick<Store, 'supportsSoftDeletes'>): void {
  const soft = databases.find(({ deletes }) => deletes === 'soft')
  if (soft === undefined || store.supportsSoftDeletes === true) return
  throw new SyncError(
    'STORE_UNSUPPORTED',
    `${sync}: database "${soft.name}" has \`deletes: 'soft'\`, but this store does not keep deleted rows. Use \`deletes: 'hard'\`, or another store.`,
  )
}

export interface PacerPlan {
  readonly name: string
  readonly allowedRequests: number
  readonly intervalMs: number
}

/** The limits of a sync: of its cycles, pages, state and records. */
export interface SyncLimits {
  readonly pagesMax: number
  /** 0 for no limit. */
  readonly minutesMax: number
  readonly emptyPagesMax: number
  /** The deadline of one call of `execute`. */
  readonly deadlineMs: number
  /** Retries of one page, and the longest single wait inside the cycle. */
  readonly retriesMax: number
  readonly waitMaxMs: number
  readonly leaseTtlMs: number
  readonly stateBytesMax: number
  readonly recordBytesMax: number
  readonly recordDepthMax: number
  readonly recordMembersMax: number
}

export const DEFAULT_LIMITS: SyncLimits = {
  pagesMax: 100_000,
  minutesMax: 0,
  emptyPagesMax: 1_000,
  deadlineMs: 120_000,
  retriesMax: 5,
  waitMaxMs: 60_000,
  leaseTtlMs: 60_000,
  stateBytesMax: 65_536,
  recordBytesMax: 5_000_000,
  recordDepthMax: 64,
  recordMembersMax: 10_000,
}

/** The sample size if more rows are absent. */
export const ABSENT_LOOKUPS_MAX = 200

/** The database that supports lookups; null if the source has no lookup. */
export function getLookupDatabase({ lookup, databases }: SyncPlan): string | null {
  return lookup == null ? null : required(databases[0], 'database of the sync').name
}

/** The name that `track` gives to the backfill of a delta. */
export function toBackfillName(delta: string): string {
  return `${delta}-backfill`
}

export function toDeltaName(backfill: string): string {
  return backfill.replace(/-backfill$/, '')
}

export const DEFAULT_SWEEP = { maxShare: 0.5, allowEmpty: false } as const

/** Listings whose pages may be older than the records that this sync reads concurrently. */
export function findConcurrentListings({ mode, listings, pair }: SyncPlan): readonly string[] {
  if (mode === 'replace') return []
  return listings ?? (pair?.role === 'delta' ? [pair.backfill] : [])
}

/** The fingerprints of the column rules for a commit; empty without rules. */
export function buildCommitColumnRules({ databases }: SyncPlan): Pick<Commit, 'columnRules'> {
  const rules = databases.flatMap(({ name, columns }) => (columns === undefined ? [] : [[name, columns.fingerprint]]))
  return rules.length === 0 ? {} : { columnRules: Object.fromEntries(rules) as Record<string, string> }
}

/** See BeginRequest.rules. A delta is covered by the listing of its backfill. */
export function buildRulesInForce({ sync, databases, pair }: SyncPlan): ColumnRulesInForce {
  return {
    sync: pair?.role === 'delta' ? pair.backfill : sync,
    fingerprints: Object.fromEntries(databases.map(({ name, columns }) => [name, columns?.fingerprint ?? ''])),
  }
}

/** See Commit.owners. */
export function buildCommitOwners({ databases }: SyncPlan): Record<string, string> {
  return Object.fromEntries(databases.flatMap(({ name, owner }) => (owner === undefined ? [] : [[name, owner]])))
}
