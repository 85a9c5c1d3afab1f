import { SyncError, type Commit, type DeleteMode, type Execute, type JsonObject, type Lookup, type Mode, type SchemaMode, type Store, type SyncContext, type TableShape } from '../contract/index.ts'

/** A sync as the engine runs it: everything declared has become a value, nothing is looked up by name any more. */
export interface SyncPlan {
  readonly worker: string
  readonly sync: string
  readonly mode: Mode
  /** The first is where a change without `database` goes. */
  readonly databases: readonly DatabasePlan[]
  /** The name under which this sync owns rows; see Commit.owner. */
  readonly owner: string
  readonly execute: Execute<any>
  /** Of its first database; null where the source cannot be asked for one record. */
  readonly lookup?: Lookup | null
  readonly pacers: readonly PacerPlan[]
  readonly limits: SyncLimits
  readonly sweep: SweepPlan
  /** How long a change may take to show in everything the source answers; 0 unless given. */
  readonly lagMs?: number
  /** Declared scope; joined with Page.scope. */
  readonly scope: string | null
  readonly upstreamToleranceMs: number
  /** How long the source keeps changes and deletions; see Execute.retentionMs. Null for no limit. */
  readonly retentionMs?: number | null
  /** The other half of a pair over one database. */
  readonly pair?: PairPlan
  /** Replace syncs of the worker that write one of its databases; the other half of a pair when absent. See Commit.forceLogSince. */
  readonly listings?: readonly string[]
}

export interface SweepPlan {
  readonly maxShare: number
  readonly allowEmpty: boolean
  /** Absent rows that the source is asked for before a sweep; 0 for none. */
  readonly lookupsMax?: number
}

export type PairPlan =
  /** `anchor` says where the change feed stands now; it is kept as the delta's state before the backfill reads its first page. */
  | { readonly role: 'backfill'; readonly delta: string; readonly anchor: ((context: SyncContext) => Promise<unknown>) | null }
  | { readonly role: 'delta'; readonly backfill: string }

export interface DatabasePlan {
  readonly name: string
  /** Under which name this sync owns rows here, when not its own; see Commit.owners. */
  readonly owner?: string
  /** See Commit.historyDays; null for as long as the log. */
  readonly historyDays?: number | null
  /** What a delete does to its row; `hard` when absent. */
  readonly deletes?: DeleteMode
  /** Null when the record fits, else what does not. Absent without a schema. */
  readonly validate?: (record: JsonObject) => string | null | Promise<string | null>
  /** The types of the columns as they are declared. */
  readonly shape?: TableShape
  /** What happens to a record that its columns do not fit; `evolve` when absent. */
  readonly schemaChanges?: SchemaMode
}

/** What a commit says of them; nothing when every database evolves. */
export function buildCommitSchemaModes({ databases }: SyncPlan): Pick<Commit, 'schemaModes'> {
  const modes = databases.flatMap(({ name, schemaChanges }) => (schemaChanges === undefined || schemaChanges === 'evolve' ? [] : [[name, schemaChanges] as const]))
  return modes.length === 0 ? {} : { schemaModes: Object.fromEntries(modes) }
}

/** What a commit says of how rows are deleted: of every database, since a setting that is gone means the default again. */
export function buildCommitDeletes({ databases }: SyncPlan): Pick<Commit, 'deletes'> {
  return { deletes: Object.fromEntries(databases.map(({ name, deletes = 'hard' }) => [name, deletes])) }
}

/** A store that cannot keep deleted rows would remove them, and say nothing. */
export function assertDeletesSupported({ databases, sync }: SyncPlan, store: Pick<Store, 'supportsSoftDeletes'>): void {
  const soft = databases.find(({ deletes }) => deletes === 'soft')
  if (soft === undefined || store.supportsSoftDeletes === true) return
  throw new SyncError('STORE_UNSUPPORTED', `${sync}: database "${soft.name}" has \`deletes: 'soft'\`, and this store does not keep deleted rows. Use \`deletes: 'hard'\`, or another store.`)
}

export interface PacerPlan {
  readonly name: string
  readonly allowedRequests: number
  readonly intervalMs: number
}

export interface SyncLimits {
  readonly pagesMax: number
  /** 0 for no limit. */
  readonly minutesMax: number
  readonly emptyPagesMax: number
  /** For one call of `execute`. */
  readonly deadlineMs: number
  /** Tries of one page after the first, and the longest single wait worth staying for. */
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

/** Where more rows are absent, so many of them stand for all. */
export const ABSENT_LOOKUPS_MAX = 200

/** The name that `track` gives to the backfill of a delta. */
export function toBackfillName(delta: string): string {
  return `${delta}-backfill`
}

export function toDeltaName(backfill: string): string {
  return backfill.replace(/-backfill$/, '')
}

export const DEFAULT_SWEEP = { maxShare: 0.5, allowEmpty: false } as const

/** The listings whose pages may be older than what this sync reads meanwhile. */
export function findConcurrentListings({ mode, listings, pair }: SyncPlan): readonly string[] {
  if (mode === 'replace') return []
  return listings ?? (pair?.role === 'delta' ? [pair.backfill] : [])
}

/** See Commit.owners. */
export function buildCommitOwners({ databases }: SyncPlan): Record<string, string> {
  return Object.fromEntries(databases.flatMap(({ name, owner }) => (owner === undefined ? [] : [[name, owner]])))
}
