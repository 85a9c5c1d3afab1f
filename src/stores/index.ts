/** `tidemark/store`: everything that a store of your own is written with. `describeStore` of tidemark/testing is its test. */
export { registerStore } from './drivers.ts'
export type { QuerySyntax, Selection, SelectOptions, StoreDriver, StoreLocation, StoreOpenOptions } from '../contract/index.ts'

// ── the contract ─────────────────────────────────────────────────────────────────────────────────────────────────────
export { isSyncError, SyncError } from '../contract/index.ts'
export type {
  Acquired, AcquireRequest, Action, ApiKey, ApiKeyStore, AsOf, AuditEntry, AuditLog, BackfillNeed, BeginRequest, Begun, ChangesQuery, Checkpoint, Column,
  ColumnKind, Commit, CommitOutcome, Compacted, CompactRequest, Consumer, ConsumerName, ConsumerStore, CursorSecret, CursorSecretOffer, CursorSecretStore,
  CycleRecord, CycleReport, DatabaseInfo, DataKeyStore, DeleteMode, Delivery, DeliveryNote, Ear, Erased, ErrorCode, FeedEntry, FeedPage, FeedQuery, Held, InboundClaim,
  InboundMessage, InboundStore, Inflight, JsonObject, JsonValue, Kernel, KeptMessage, Landing, LandingCounts, LastError, Lease, LeaseStore, Listening,
  Listing, LogEntry,
  Mode, Move, Occupied, Outline, PacingStore, Pause, PauseRequest, Pauses, Quarantine, Quarantined, QuarantineEntry, Row, SchemaChangeRequest, SchemaDrift,
  SchemaInfo, SchemaStep, SchemaStore, SealedText, SequenceStore, Signal, SlotRequest,
  Slots, Standing, Standings, StandingsQuery, StateText, StopReason, Store, Sweep, SyncDirectory, SyncErrorOptions, SyncRef, TenantDirectory, Trail,
  TrailEntry, TrailQuery, Webhook, WebhookAllowance, WebhookClaim, WebhookEdit, WebhookPlace, WebhookSettings, WebhookStanding, WebhookStore, WrappedKey,
} from '../contract/index.ts'

// ── the roles that are written once, and the port they are written on ────────────────────────────────────────────────
export { bindPlans, isRoleMethod, ROLES } from './kit/roles/roles.ts'
export type { RoleMethod, RoleMethods } from './kit/roles/roles.ts'
export { checkSealingKey } from './kit/roles/data-keys.ts'
export { makeSql, native, noSteps, runSteps, runStepsAsync } from './kit/sql/port.ts'
export type { KernelSteps, NativeStep, Plan, Sql, SqlValue, SqlValues, Statement, Step, Steps } from './kit/sql/port.ts'
export { StatementCompiler, upsertOnConflict } from './kit/sql/dialect.ts'
export type { CompiledStatement, Dialect, DialectWord, Upsert } from './kit/sql/dialect.ts'

// ── steps that the kernel takes with the roles ───────────────────────────────────────────────────────────────────────
export { chainAudit, ensureEntry, forgetSeen, heldEntry, lockTenant, toChained, writeInflight } from './kit/registry.ts'
export type { TenantRow, TimedEntry } from './kit/registry.ts'
export { addToCycle, isExpected, lockBackfill, moveCheckpoint, writeQuarantine } from './kit/checkpoint.ts'
export { logged, writeCommits } from './kit/commits.ts'
export type { CommitFacts, LoggedRange } from './kit/commits.ts'
export { COMPACTION } from './kit/compaction.ts'
export { logPlans } from './kit/log.ts'
export type { ReadVersions, Version, VersionRange } from './kit/log.ts'
export { ERASE_TENANT } from './kit/erase-tenant.ts'
export { CURSOR_SECRETS, isFresh } from './kit/roles/cursor-secrets.ts'

// ── the rules of the kernel ──────────────────────────────────────────────────────────────────────────────────────────
export { evenlySpaced, isBraked, mergeRanges, noCounts, planLanding, toRanges } from './kit/plan-landing.ts'
export type { LandingFacts, LandingPlan, RowContest, RowTouch, RowWrite } from './kit/plan-landing.ts'
export type { RowStatus, StoredRow } from './kit/judge.ts'
export { OUTLINE_COLUMNS, toCheckpoint, toInflight } from './kit/registry-rows.ts'
export type { CycleRow, OutlineEntry, RegistryEntry } from './kit/registry-rows.ts'
export { joinStandings } from './kit/standings.ts'
export { allowDeletesEntry, driftEntry } from './kit/audit-entries.ts'
export { linkHash, linkText } from '../registry/chain.ts'
export { sealingKeyOf } from './kit/sealed-texts.ts'
export { storeUrlInvalid } from './kit/store-url-invalid.ts'
export { maskUrl } from '../redaction/mask-url.ts'
export { queryTooLong } from './kit/query-too-long.ts'

// ── tables of typed columns ──────────────────────────────────────────────────────────────────────────────────────────
export { mergeColumns, nameColumn, quoteName, quoteText } from './kit/columns.ts'
export { itemTypeOf } from './kit/tables/column.ts'
export type { ColumnDialect, ColumnType, ScalarType, TableColumn } from './kit/tables/column.ts'
export { RecordDecoder } from './kit/tables/decode-record.ts'
export { hasDeleted, liveRows, withDeletes } from './kit/tables/delete-state.ts'
export type { DeleteState } from './kit/tables/delete-state.ts'
export { RecordEncoder } from './kit/tables/encode-record.ts'
export type { ColumnValue, EncodedRecord } from './kit/tables/encode-record.ts'
export { fitRow } from './kit/tables/fit-row.ts'
export type { RowWidth } from './kit/tables/fit-row.ts'
export { growColumns, shapeColumns, takesShape, withFormats } from './kit/tables/grow-columns.ts'
export type { ColumnLimits } from './kit/tables/grow-columns.ts'
export { isKeyOpen, refuseKey } from './kit/tables/key-columns.ts'
export { databasesWithoutColumns, DriftNotes, readDrift, refuseRecords, withRefused } from './kit/tables/schema-drift.ts'
export type { DriftingTable, RefusalFacts } from './kit/tables/schema-drift.ts'
export { NO_SCHEMA_CHANGES } from './kit/tables/no-schema-changes.ts'
export { countWaiting, showColumns, WAITING_MAX } from './kit/tables/waiting.ts'
export { withoutNul } from './kit/without-nul.ts'
export { canonicalInstant } from '../values/instant.ts'
export { parseJson, sameJson, stringifyJson } from '../values/json.ts'
