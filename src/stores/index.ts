/** `tidemark/store`: everything needed to implement a store. `describeStore` of tidemark/testing is its test. */
export { registerStore } from './drivers.ts'
export type {
  QuerySyntax,
  SelectResult,
  SelectOptions,
  StoreDriver,
  StoreLocation,
  StoreOpenOptions,
} from '../contract/index.ts'

// ── the contract ─────────────────────────────────────────────────────────────────────────────────────────────────────
export { isSyncError, SyncError } from '../contract/index.ts'
export type {
  LeaseAcquired,
  AcquireRequest,
  ChangeAction,
  DestinationEvent,
  WebhookAction,
  WebhookMessage,
  ApiKey,
  ApiKeyStore,
  AsOf,
  AuditEntry,
  AuditLog,
  BackfillRequest,
  BeginRequest,
  BeginResult,
  ChangesQuery,
  Checkpoint,
  Column,
  ColumnKind,
  Commit,
  CommitOutcome,
  CompactResult,
  CompactRequest,
  Consumer,
  ConsumerName,
  ConsumerStore,
  CursorSecret,
  CursorSecretCandidate,
  CursorSecretStore,
  CycleRecord,
  CycleReport,
  DatabaseInfo,
  DataKeyStore,
  DeleteMode,
  Delivery,
  DeliveryReport,
  Listener,
  EraseResult,
  ErrorCode,
  FeedEntry,
  FeedPage,
  FeedQuery,
  LeaseHeld,
  InboundClaim,
  InboundMessage,
  InboundStore,
  Inflight,
  JsonObject,
  JsonValue,
  Kernel,
  PendingInboundMessage,
  Landing,
  LandingCounts,
  LastError,
  Lease,
  LeaseStore,
  Subscription,
  ListingContext,
  LogEntry,
  Mode,
  StateTransition,
  TenantBusy,
  CheckpointSummary,
  PacingStore,
  PartitionChange,
  PartitionQuery,
  PartitionRow,
  PartitionStore,
  Pause,
  PauseRequest,
  PauseList,
  QuarantineStore,
  QuarantinedRecord,
  QuarantineEntry,
  ColumnStatistics,
  ColumnStatisticsRequest,
  Row,
  RowFilter,
  RowOrder,
  RowPosition,
  RowSearch,
  RowSearchPage,
  RowSearchStore,
  RowSelection,
  RowTest,
  SchemaChangeRequest,
  SchemaDrift,
  SchemaInfo,
  SchemaStepResult,
  SchemaStore,
  SealedText,
  SequenceStore,
  CycleTotals,
  CycleTotalsQuery,
  SyncSignal,
  SlotRequest,
  SlotGrant,
  SyncStatusRow,
  SyncStatusList,
  SyncStatusQuery,
  StateText,
  StopReason,
  Store,
  Sweep,
  SweepScope,
  SyncDirectory,
  SyncErrorOptions,
  SyncRef,
  TenantDirectory,
  AuditChain,
  AuditChainEntry,
  AuditChainQuery,
  Webhook,
  WebhookAllowance,
  WebhookClaim,
  WebhookEdit,
  WebhookCursor,
  WebhookSettings,
  WebhookProgress,
  WebhookStore,
  WrappedKey,
} from '../contract/index.ts'

// ── the shared roles and their SQL port
// ────────────────────────────────────────────────────────────────────────────────
export { bindPlans, isRoleMethod, ROLE_PLANS } from './kit/roles/roles.ts'
export type { RoleMethod, RoleMethods } from './kit/roles/roles.ts'
export { checkSealingKey } from './kit/roles/data-keys.ts'
export { writePartitions } from './kit/roles/partitions.ts'
export { createSql, runNative, noSteps, runSteps, runStepsAsync } from './kit/sql/port.ts'
export type {
  KernelSteps,
  NativeStep,
  TransactionPlan,
  Sql,
  SqlValue,
  SqlValues,
  Statement,
  Step,
  Steps,
} from './kit/sql/port.ts'
export { StatementCompiler, upsertOnConflict } from './kit/sql/dialect.ts'
export type { CompiledStatement, Dialect, DialectToken, UpsertSpec } from './kit/sql/dialect.ts'

// ── steps that kernel and roles share
// ──────────────────────────────────────────────────────────────────────────────────
export {
  appendAuditEntry,
  ensureEntry,
  deleteSeen,
  findLeasedEntry,
  lockTenant,
  toAuditChainInput,
  writeInflight,
} from './kit/registry.ts'
export type { TenantRow, RegistryEntryWithNow } from './kit/registry.ts'
export {
  addPageToCycle,
  isOutsideCycle,
  matchesCheckpoint,
  lockBackfill,
  toLogPage,
  updateCheckpoint,
  writeQuarantine,
} from './kit/checkpoint.ts'
export { listLoggedRanges, writeCommits } from './kit/commits.ts'
export type { CommitFacts, LoggedRange } from './kit/commits.ts'
export { COMPACTION_PLANS } from './kit/compaction.ts'
export { createLogPlans } from './kit/log.ts'
export type { VersionReader, RowVersion, VersionRange } from './kit/log.ts'
export { ERASE_TENANT_PLAN } from './kit/erase-tenant.ts'
export { CURSOR_SECRET_PLANS, hasFreshSecret } from './kit/roles/cursor-secrets.ts'

// ── the rules of the kernel ──────────────────────────────────────────────────────────────────────────────────────────
export {
  sampleEvenly,
  exceedsDeleteLimit,
  mergeRanges,
  createEmptyCounts,
  planLanding,
  toSequenceRanges,
} from './kit/plan-landing.ts'
export type { LandingFacts, LandingPlan, RowContest, RowTouch, RowWrite } from './kit/plan-landing.ts'
export type { RowStatus, StoredRow } from './kit/resolve-landing.ts'
export { CHECKPOINT_SUMMARY_COLUMNS, toCheckpoint, toInflight } from './kit/registry-rows.ts'
export type { CycleRow, CheckpointSummaryEntry, RegistryEntry } from './kit/registry-rows.ts'
export { joinSyncStatus } from './kit/sync-status.ts'
export { createAllowDeletesAuditEntry, createDriftAuditEntry } from './kit/audit-entries.ts'
export { hashLink, serializeLink } from '../registry/audit-chain.ts'
export { findSealingKeyId } from './kit/sealed-texts.ts'
export { createStoreUrlInvalidError } from './kit/store-url-invalid-error.ts'
export { maskUrl } from '../redaction/mask-url.ts'
export { createQueryTooLongError } from './kit/query-too-long-error.ts'

// ── tables of typed columns ──────────────────────────────────────────────────────────────────────────────────────────
export { mergeColumns, nameColumn, quoteIdentifier, quoteLiteral } from './kit/column-names.ts'
export { itemTypeOf } from './kit/tables/column.ts'
export type { ColumnDialect, ColumnType, ScalarType, TableColumn } from './kit/tables/column.ts'
export { RecordDecoder } from './kit/tables/decode-record.ts'
export { mayHaveDeletedRows, liveRows, withDeleteMode } from './kit/tables/delete-state.ts'
export type { DeleteState } from './kit/tables/delete-state.ts'
export { RecordEncoder } from './kit/tables/encode-record.ts'
export type { ColumnValue, EncodedRecord } from './kit/tables/encode-record.ts'
export { fitRow } from './kit/tables/fit-row.ts'
export type { RowSizeLimits } from './kit/tables/fit-row.ts'
export { growColumns, addDeclaredColumns, acceptsShape, withFormats } from './kit/tables/grow-columns.ts'
export type { ColumnLimits } from './kit/tables/grow-columns.ts'
export { isKeyUndecided, refuseKey } from './kit/tables/key-columns.ts'
export {
  databasesWithoutColumns,
  DriftCollector,
  parseDrift,
  refuseRecords,
  quarantineRefused,
} from './kit/tables/schema-drift.ts'
export type { TableWithDrift, RefusalFacts } from './kit/tables/schema-drift.ts'
export { computeStatistics, NO_STATISTICS } from './kit/search/column-statistics.ts'
export { findRows } from './kit/search/find-rows.ts'
export type { FoundRows, SearchQuery, SearchSteps, SearchTuple } from './kit/search/find-rows.ts'
export { caseVariants, isAscii, likePattern } from './kit/search/search-dialect.ts'
export type { Bind, SearchDialect, SearchParameter, SearchTable } from './kit/search/search-dialect.ts'
export { explainDeadline, keyBatches, PageCollector, scanOf } from './kit/search/search-rows.ts'
export { createConfinedError } from './kit/confined-error.ts'
export { UNSUPPORTED_SCHEMA_CHANGES } from './kit/tables/unsupported-schema-changes.ts'
export { countExtraMembers, describeColumns, EXTRA_ROWS_MAX } from './kit/tables/extra-members.ts'
export { replaceNul } from './kit/replace-nul.ts'
export { canonicalizeInstant } from '../values/instant.ts'
export { parseJson, equalsJson, stringifyJson } from '../values/json.ts'
