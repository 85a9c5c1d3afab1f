import type {
  ChangeAction,
  ColumnStatistics,
  ApiKey,
  AuditEntry,
  DatabaseInfo,
  ErrorCode,
  Mode,
  QuarantineEntry,
  AuditChainEntry,
  SchemaDrift,
} from '../../contract/index.ts'
import type { CredentialKind } from '../../connections/build-credentials.ts'
import type { ConnectionDocument } from '../../connections/connection-document.ts'
import type { RedactedState } from '../../redaction/redact-state.ts'
import type { toCycleDocument } from '../cycle-document.ts'
import type { TenantUsage } from '../../registry/tenant-usage.ts'
import type { AuditChainReport } from '../../registry/verify-audit-chain.ts'
import type { SourceLookupResult, AbsenceCause } from '../../runner/absence.ts'
import type { Coverage } from '../../runner/coverage.ts'
import type { Health } from '../../runner/health.ts'
import type { EditPlan } from '../../webhooks/edit-plan.ts'
import type { toCertificateDocument } from '../../verify/certificate-document.ts'
import type { toDeliveryDocument, toWebhookDocument } from '../../webhooks/manage-webhooks.ts'

/** JSON documents of the console API; the console is type-checked against them. Times are RFC 3339. */

/** The store's type with timestamps as ISO strings. */
type WithIsoTimes<Facts, Times extends keyof Facts> = Omit<Facts, Times> & {
  readonly [Time in Times]: Facts[Time] extends number ? string : string | null
}

export type { ConnectionDocument } from '../../connections/connection-document.ts'
export type { DestinationDocument } from '../../destinations/loop/destination-document.ts'

export interface SessionDocument {
  readonly tenant: string
  readonly version: string
  /** The name of the key; null for a local caller without one. */
  readonly key: string | null
  readonly scopes: readonly string[]
  readonly databases: number
  readonly headSequence: number
  /** Tenants whose syncs the caller may list; 1 for the own one alone. */
  readonly tenants: number
}

export interface OverviewDocument {
  readonly tenant: string
  readonly headSequence: number
  readonly syncs: readonly SyncDocument[]
}

/** The declared syncs of every tenant, without anything that a tenant's source returned. */
export interface FleetDocument {
  readonly syncs: readonly SyncDocument[]
  /** There are more tenants than are returned. */
  readonly isCut: boolean
}

export interface SyncDocument {
  readonly tenant: string
  readonly worker: string
  readonly sync: string
  readonly health: Health
  /** The copy is late from this time on, if no cycle completes before; see runner/late.ts. */
  readonly lateAt: string | null
  /** The connection that it reads with; null if it names none. */
  readonly connection: Pick<ConnectionDocument, 'name' | 'status' | 'statusReason'> | null
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

export type CycleDocument = Readonly<ReturnType<typeof toCycleDocument>>

/** The time that a chart shows. */
export type ActivityRange = '1h' | '24h' | '7d'

/** One value per equal time step, starting at `from`. */
export interface ActivityDocument {
  readonly from: string
  readonly stepMs: number
  readonly rows: readonly number[]
  /** Cycles that ended, and those of them with an error. */
  readonly cycles: readonly number[]
  readonly failed: readonly number[]
  readonly waitedMs: readonly number[]
  readonly retries: readonly number[]
  /** The lag at the end of each step; null before the first complete cycle. Null for several syncs. */
  readonly lagMs: readonly (number | null)[] | null
}

/** The rate limits of a sync, and its databases. */
export interface SyncDetailsDocument {
  readonly pacers: readonly PacerDocument[]
  readonly databases: readonly DatabaseFacts[]
  /** It has more databases than are returned. */
  readonly isCut: boolean
}

export interface PacerDocument {
  readonly name: string
  readonly allowedRequests: number
  readonly intervalMs: number
  /** Requests whose slots are reserved and not reached yet. */
  readonly reserved: number
  readonly lastSlotAt: string | null
  /** The source asked for no requests until this time. */
  readonly pausedUntil: string | null
}

export interface DatabaseFacts {
  readonly name: string
  readonly rows: number
  readonly isRowsExact: boolean
  readonly columns: number
  readonly drift: ReadonlyArray<
    WithIsoTimes<Pick<SchemaDrift, 'member' | 'kind' | 'column' | 'type' | 'found' | 'at'>, 'at'>
  >
  /** The last verification; null if there was none. */
  readonly certificate: ReturnType<typeof toCertificateDocument>
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

/** A vendor, with the form for credentials that the user creates there. */
export interface ProviderDocument {
  readonly name: string
  readonly title: string
  readonly documentation: string
  /** Whether this server's connect flow has it. */
  readonly canAuthorize: boolean
  /** Null if OAuth is the only way. */
  readonly form: {
    readonly kind: CredentialKind
    readonly steps: readonly string[]
    readonly secrets: readonly ProviderField[]
    readonly settings: readonly ProviderField[]
  } | null
}

export interface ProviderField {
  readonly name: string
  readonly label: string
  readonly hint: string | null
  readonly example: string | null
  readonly isSecret: boolean
  readonly isRequired: boolean
}
