export type { JsonObject, JsonValue } from './json.ts'
export type { Clock, Log, LogFields, Ports, Random } from './ports.ts'
export { ATTRIBUTES, METRICS, NO_SPAN, SPANS } from './telemetry.ts'
export type { AttributeName, Attributes, Meter, Metric, MetricName, Span, SpanIds, SpanName, Tracer } from './telemetry.ts'
export type { AsOf, Change, CycleFacts, Execute, Lookup, Mode, Pacing, Page, Secrets, SyncContext } from './page.ts'
export { NEVER_RUN } from './checkpoint.ts'
export type { BackfillNeed, Checkpoint, Inflight, LastError, Lease, Outline, StateText, SyncRef } from './checkpoint.ts'
export type {
  Acquired, AcquireRequest, Action, BeginRequest, Begun, ChangesQuery, Column, ColumnKind, Commit,
  CommitOutcome, CycleRecord, CycleReport, DatabaseInfo, Ear, Erased, Held, Landing, LandingCounts, Listening, Listing, LogEntry, Move, Occupied,
  Row, Standing, Standings, StandingsQuery, StopReason, Store, Sweep,
} from './store.ts'
export type { ApiKeyStore } from './store/api-keys.ts'
export type { AuditEntry, AuditLog, Trail, TrailEntry, TrailQuery } from './store/audit.ts'
export type { ConsumerStore } from './store/consumers.ts'
export type { CursorSecretStore } from './store/cursor-secrets.ts'
export type { DataKeyStore, SealedText, WrappedKey } from './store/data-keys.ts'
export type { InboundStore } from './store/inbound.ts'
export type { Kernel } from './store/kernel.ts'
export type { LeaseStore } from './store/leases.ts'
export type { SequenceStore } from './store/sequences.ts'
export type { PacingStore, Pause, PauseRequest, Pauses, SlotRequest, Slots } from './store/pacing.ts'
export type { Quarantine, Quarantined, QuarantineEntry } from './store/quarantine.ts'
export type { Signal, SyncDirectory } from './store/syncs.ts'
export type { TenantDirectory } from './store/tenants.ts'
export type { WebhookStore } from './store/webhooks.ts'
export type { SchemaStore } from './store/schemas.ts'
export type { DeleteMode } from './deletes.ts'
export type {
  ColumnChange, SchemaChangeRequest, SchemaChangeState, SchemaColumn, SchemaDrift, SchemaInfo, SchemaMode, SchemaPhase, SchemaStep, WaitingMember,
} from './schema.ts'
export { SCALAR_TYPES } from './table-shape.ts'
export type { ColumnType, CommitShape, ScalarType, ShapeColumn, TableShape, TypeOrigin } from './table-shape.ts'
export type { Consumer, ConsumerName } from './consumers.ts'
export type { QuerySyntax, Selection, SelectOptions, StoreDriver, StoreLocation, StoreOpenOptions } from './store-driver.ts'
export type {
  ApiKey, Compacted, CompactRequest, CursorSecret, CursorSecretOffer, FeedEntry, FeedPage, FeedQuery,
} from './feed.ts'
export type {
  Delivery, DeliveryNote, InboundClaim, InboundMessage, KeptMessage, Webhook, WebhookAllowance, WebhookClaim, WebhookEdit, WebhookPlace, WebhookSettings, WebhookStanding,
} from './webhooks.ts'
export { ERROR_CODES, isSyncError, SyncError } from './errors.ts'
export type { Blame, ErrorCode, Remedy, SyncErrorOptions } from './errors.ts'
