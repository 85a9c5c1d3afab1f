import type {
  ChangeAction,
  ColumnStatistics,
  ApiKey,
  AuditEntry,
  CycleRecord,
  DatabaseInfo,
  ErrorCode,
  Mode,
  QuarantineEntry,
  AuditChainEntry,
} from '../../contract/index.ts'
import type { RedactedState } from '../../redaction/redact-state.ts'
import type { TenantUsage } from '../../registry/tenant-usage.ts'
import type { AuditChainReport } from '../../registry/verify-audit-chain.ts'
import type { SourceLookupResult, AbsenceCause } from '../../runner/absence.ts'
import type { Coverage } from '../../runner/coverage.ts'
import type { Health } from '../../runner/health.ts'
import type { EditPlan } from '../../webhooks/edit-plan.ts'
import type { toDeliveryDocument, toWebhookDocument } from '../../webhooks/manage-webhooks.ts'

/** JSON documents of the console API; the console is type-checked against them. Times are RFC 3339. */

/** The store's type with timestamps as ISO strings. */
type WithIsoTimes<Facts, Times extends keyof Facts> = Omit<Facts, Times> & {
  readonly [Time in Times]: Facts[Time] extends number ? string : string | null
}

export type { DestinationDocument } from '../../destinations/loop/destination-document.ts'

export interface SessionDocument {
  readonly tenant: string
  readonly version: string
  /** The name of the key; null for a local caller without one. */
  readonly key: string | null
  readonly scopes: readonly string[]
  readonly databases: number
  readonly headSequence: number
}

export interface OverviewDocument {
  readonly tenant: string
  readonly headSequence: number
  readonly syncs: readonly SyncDocument[]
}

export interface SyncDocument {
  readonly worker: string
  readonly sync: string
  readonly health: Health
  readonly isDeclared: boolean
  readonly mode: Mode | null
  readonly schedule: ScheduleDocument | null
  readonly databases: readonly string[]
  /** The other half of a pair. */
  readonly pair: { readonly role: 'backfill' | 'delta'; readonly with: string } | null
  readonly isRunning: boolean
  readonly heldBy: string | null
  readonly version: number
  readonly state: RedactedState | null
  /** A timestamp; for a source without timestamps, a digest of its last cursor. */
  readonly tidemark: string | null
  /** Later changes of the source may be missing. */
  readonly completeSince: string | null
  /** Changes were lost, and a backfill of the pair is requested. */
  readonly backfillNeeded: { readonly since: string; readonly reason: string } | null
  /** The syncs that have to complete before each start. */
  readonly after: readonly string[]
  readonly next: { readonly at: string | null; readonly why: string; readonly waitingFor?: readonly string[] } | null
  readonly triggeredAt: string | null
  readonly failures: number
  readonly lastError: {
    readonly code: ErrorCode
    readonly message: string
    readonly advice: string
    readonly at: string
  } | null
  readonly lastCycle: CycleDocument | null
  readonly coverage: Coverage
}

export type ScheduleDocument =
  | { readonly kind: 'manual' | 'continuous' }
  | { readonly kind: 'interval'; readonly intervalMs: number }
  | { readonly kind: 'cron'; readonly cron: string; readonly zone: string }

export type CycleDocument = WithIsoTimes<Omit<CycleRecord, 'startSequence'>, 'startedAt' | 'endedAt'>

/** One value per equal time step, starting at `from`. */
export interface ActivityDocument {
  readonly from: string
  readonly stepMs: number
  readonly rows: readonly number[]
  readonly errors: readonly number[]
  /** Lag of the sync that was furthest behind at the end of the step; null before the first complete cycle. */
  readonly lagMs: readonly (number | null)[]
}

export type CheckpointDocument = WithIsoTimes<Omit<AuditEntry, 'state'>, 'at'> & {
  /** Null if the entry did not change the state. `value` only if it was revealed. */
  readonly state: (RedactedState & { readonly value?: unknown }) | null
}

export interface ResetDocument {
  readonly isDone: boolean
  readonly version: number
  readonly forgets: RedactedState | null
  readonly givesUp: { readonly cycle: number; readonly pages: number } | null
  readonly nextCycle: string
  /** The backfill of the pair that is requested with the reset. */
  readonly needsBackfill: string | null
  readonly heldBy: string | null
}

export type DatabaseDocument = DatabaseInfo

export interface RowsDocument {
  readonly data: readonly RowDocument[]
  /** Pass it as `after` to get the next page; null at the end. */
  readonly next: string | null
  /** With a search: the rows that were looked at. */
  readonly scanned: number
  /** Null if an index serves the view; else the statement of one that would, if any. */
  readonly scan: { readonly index: string | null } | null
}

export interface ColumnsDocument {
  readonly table: string
  /** The store can sort, filter, summarise and export rows. */
  readonly canSearch: boolean
  readonly canQuery: boolean
  /** `column` is null while the field has none. */
  readonly columns: readonly { readonly field: string; readonly column: string | null; readonly type: string }[]
}

export type StatisticsDocument = ColumnStatistics

export interface QueryDocument {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
  readonly truncated: boolean
}

export interface RowDocument {
  readonly key: string
  readonly sequence: number
  readonly committedAt: string
  readonly upstreamAt: string | null
  readonly record: Readonly<Record<string, unknown>>
}

export interface RecordDocument {
  readonly database: string
  readonly key: string
  readonly isLive: boolean
  /** Newest first. */
  readonly history: readonly HistoryDocument[]
  /** The history has more entries than are returned. */
  readonly isCut: boolean
}

export interface HistoryDocument {
  readonly sequence: number
  readonly action: ChangeAction
  readonly committedAt: string
  readonly upstreamAt: string | null
  readonly worker: string
  readonly sync: string
  readonly cycle: number
  readonly page: number
  readonly changed: readonly string[]
  readonly record: Readonly<Record<string, unknown>> | null
}

/** One event of the live feed; see feed/serialize-item.ts. */
export interface ChangeDocument {
  readonly eventId: string
  readonly resourceType: string
  readonly database: string
  readonly resourceId: string
  readonly action: ChangeAction
  readonly updatedAt: string
  readonly snapshot: Readonly<Record<string, unknown>> | null
}

export type QuarantineDocument = WithIsoTimes<QuarantineEntry, 'at'>

export type WebhookDocument = ReturnType<typeof toWebhookDocument>

export type EditPlanDocument = EditPlan

export type DeliveryDocument = ReturnType<typeof toDeliveryDocument>

export type KeyDocument = WithIsoTimes<
  Pick<ApiKey, 'id' | 'name' | 'scopes' | 'rateLimit' | 'createdAt' | 'endsAt'>,
  'createdAt' | 'endsAt'
> & { readonly isValid: boolean }

/** Counts only: a tenant's data is never shown to another tenant. */
export type TenantDocument = Omit<TenantUsage, 'wrappedBy'>

export interface TenantsDocument {
  readonly tenants: readonly TenantDocument[]
  /** There are more tenants than are returned. */
  readonly isCut: boolean
}

/** See runner/absence.ts. */
export interface AbsenceDocument {
  readonly database: string
  readonly key: string
  readonly verdict: AbsenceCause
  readonly why: string
  readonly advice: string
  readonly should: { readonly sync: string; readonly cycle: number } | null
  readonly source: SourceLookupResult
  readonly syncs: readonly {
    readonly worker: string
    readonly sync: string
    readonly mode: Mode
    readonly tidemark: string | null
    readonly lastComplete: { readonly cycle: number; readonly startedAt: string } | null
  }[]
}

export interface AuditChainDocument {
  readonly head: string
  readonly count: number
  /** Newest first. */
  readonly entries: readonly AuditChainEntryDocument[]
}

export type AuditChainEntryDocument = WithIsoTimes<Omit<AuditChainEntry, 'state' | 'epoch'>, 'at'>

export type AuditVerificationDocument = Pick<AuditChainReport, 'intact' | 'entries' | 'head' | 'brokenAt' | 'states'>
