export type { JsonObject, JsonValue } from './json.ts'
export type { Clock, Log, LogFields, Ports, Random } from './ports.ts'
export { ATTRIBUTES, METRICS, NOOP_SPAN, SPANS } from './telemetry.ts'
export type {
  AttributeName,
  Attributes,
  Meter,
  Metric,
  MetricName,
  Span,
  SpanIds,
  SpanName,
  Tracer,
} from './telemetry.ts'
export type {
  AsOf,
  Change,
  CycleFacts,
  Execute,
  Lookup,
  Mode,
  Pacing,
  Page,
  PartitionReader,
  PartitionState,
  PartitionWrite,
  RowScope,
  Secrets,
  SyncContext,
  StateFormat,
  ImportedState,
  StateImport,
  TimeRange,
} from './page.ts'
export { EMPTY_CHECKPOINT } from './checkpoint.ts'
export type {
  BackfillRequest,
  Checkpoint,
  Inflight,
  LastError,
  Lease,
  CheckpointSummary,
  StateText,
  SyncRef,
} from './checkpoint.ts'
export type {
  LeaseAcquired,
  AcquireRequest,
  ChangeAction,
  BeginRequest,
  BeginResult,
  ChangesQuery,
  Column,
  ColumnKind,
  ColumnRulesInForce,
  Commit,
  CommitOutcome,
  CycleRecord,
  CycleReport,
  DatabaseInfo,
  Listener,
  EraseResult,
  LeaseHeld,
  Landing,
  LandingCounts,
  PartitionChange,
  Subscription,
  ListingContext,
  LogEntry,
  StateTransition,
  TenantBusy,
  Row,
  RowValues,
  SyncStatusRow,
  SyncStatusList,
  SyncStatusQuery,
  StopReason,
  Store,
  Sweep,
  SweepScope,
} from './store.ts'
export type { ApiKeyStore } from './store/api-keys.ts'
export type { AuditEntry, AuditLog, AuditChain, AuditChainEntry, AuditChainQuery } from './store/audit.ts'
export type { ColumnKey, ColumnStore, StoredColumnRules, UsedColumnRules } from './store/columns.ts'
export type { ConnectSessionStore } from './store/connect-sessions.ts'
export type { ConnectionStore } from './store/connections.ts'
export type { ConsumerStore } from './store/consumers.ts'
export type { CursorSecretStore } from './store/cursor-secrets.ts'
export type { DataKeyStore, SealedText, WrappedKey } from './store/data-keys.ts'
export type { DestinationStore } from './store/destinations.ts'
export type { InboundStore } from './store/inbound.ts'
export type { Kernel, RowsQuery } from './store/kernel.ts'
export type { LeaseStore } from './store/leases.ts'
export type { PartitionQuery, PartitionRow, PartitionStore } from './store/partitions.ts'
export type { SequenceStore } from './store/sequences.ts'
export type { PacingStore, Pause, PauseRequest, PauseList, SlotRequest, SlotGrant } from './store/pacing.ts'
export type { QuarantineStore, QuarantinedRecord, QuarantineEntry } from './store/quarantine.ts'
export type { CycleTotals, CycleTotalsQuery, SyncSignal, SyncDirectory } from './store/syncs.ts'
export type { TenantDirectory } from './store/tenants.ts'
export type { WebhookStore } from './store/webhooks.ts'
export { ROW_TESTS } from './store/row-search.ts'
export type {
  ColumnStatistics,
  ColumnStatisticsRequest,
  RowFilter,
  RowOrder,
  RowPosition,
  RowSearch,
  RowSearchPage,
  RowSearchStore,
  RowSelection,
  RowTest,
} from './store/row-search.ts'
export type { SchemaStore } from './store/schemas.ts'
export type { VerificationStore } from './store/verifications.ts'
export type {
  Difference,
  DifferenceCause,
  DifferenceKind,
  KeyList,
  KeyPage,
  KeyRange,
  RangeSummary,
  RecordSummaries,
  SourceChecks,
  Verification,
  VerificationClaim,
  VerificationGap,
  VerificationMethod,
  VerificationReport,
} from './verification.ts'
export type { DeleteMode } from './delete-mode.ts'
export type {
  ColumnChange,
  SchemaChangeRequest,
  SchemaChangeState,
  SchemaColumn,
  SchemaDrift,
  SchemaInfo,
  SchemaMode,
  SchemaPhase,
  SchemaStepResult,
  ExtraMember,
} from './schema.ts'
export { SCALAR_TYPES } from './table-shape.ts'
export type { ColumnType, CommitShape, ScalarType, ShapeColumn, TableShape, TypeOrigin } from './table-shape.ts'
export type {
  Connection,
  ConnectionAccount,
  ConnectionOpener,
  ConnectionChanges,
  ConnectionCredentials,
  ConnectionRef,
  ConnectionStatus,
  ConnectionSummary,
  ConnectionWithCredentials,
  CredentialsVersion,
  ConnectionWrite,
  OAuthClient,
  OAuthCredentials,
  SourceConnection,
  SourceCredentials,
  TenantConnections,
} from './connections.ts'
export type { ConnectAttempt, ConnectSession, ConnectSessionSecrets, ConnectSessionStatus } from './connect-sessions.ts'
export type { Consumer, ConsumerName } from './consumers.ts'
export type {
  Destination,
  DestinationPosition,
  DestinationSession,
  DestinationSupport,
  DestinationToken,
  TokenStep,
} from './destination.ts'
export type { DestinationBatch, DestinationChange, DestinationMode, DestinationSchema } from './destination-batch.ts'
export type {
  DestinationClaim,
  DestinationFailure,
  DestinationProgress,
  DestinationEvent,
  DestinationReport,
  DestinationSignal,
  DestinationStatus,
} from './destinations.ts'
export type {
  QuerySyntax,
  SelectResult,
  SelectOptions,
  StoreDriver,
  StoreLocation,
  StoreOpenOptions,
} from './store-driver.ts'
export { RESULT_BYTES_MAX } from './store-driver.ts'
export type {
  ApiKey,
  CompactResult,
  CompactRequest,
  CursorSecret,
  CursorSecretCandidate,
  FeedEntry,
  FeedPage,
  FeedQuery,
} from './feed.ts'
export type {
  Delivery,
  DeliveryReport,
  InboundClaim,
  InboundMessage,
  PendingInboundMessage,
  Webhook,
  WebhookAction,
  WebhookAllowance,
  WebhookClaim,
  WebhookEdit,
  WebhookCursor,
  WebhookMessage,
  WebhookSettings,
  WebhookProgress,
} from './webhooks.ts'
export { ERROR_CODES, isSyncError, SyncError } from './errors.ts'
export type { ErrorCategory, ErrorCode, Remedy, SyncErrorOptions } from './errors.ts'
