export { Worker } from './worker/worker.ts'
export type {
  DatabaseHandle, DatabaseOptions, Manifest, ManifestSync, PacerHandle, PacerOptions, SyncHandle, WebhookHandle, WorkerLike, WorkerOptions,
} from './worker/worker.ts'
export type { SweepOptions, SyncOptions } from './worker/sync-options.ts'
export type { TrackOptions, TrackSource } from './worker/track-options.ts'
export type { WebhookOptions } from './worker/webhook-options.ts'
export type { ExecuteWebhook, WebhookContext, WebhookEvent, WebhookResult } from './webhooks/inbound-webhooks.ts'
export { githubSignature } from './webhooks/verify/github.ts'
export { hubspotSignature, type HubspotSignatureOptions } from './webhooks/verify/hubspot.ts'
export { standardSignature, verifyStandardWebhook } from './webhooks/verify/standard.ts'
export { stripeSignature } from './webhooks/verify/stripe.ts'
export { WebhookRefused, type InboundDelivery, type SignatureOptions, type VerifiedMessage, type WebhookVerifier, type VerifyContext } from './webhooks/verify/verify.ts'
export type { CronInput, Schedule, ScheduleInput } from './config/schedule.ts'
export type { JsonSchema, Schema, StandardSchema } from './worker/schema.ts'
export { runCycle } from './worker/run-cycle.ts'
export type { InlineDatabase, InlineRunOptions, InlineSync, RunOptions } from './worker/run-cycle.ts'
export { openStore } from './stores/open-store.ts'
export type { OpenStoreOptions } from './stores/open-store.ts'
export type { CycleResult, CycleProgress } from './engine/cycle-options.ts'
export type { SyncLimits } from './engine/sync-plan.ts'
export { parseJson, stringifyJson } from './values/json.ts'
export { ERROR_CODES, isSyncError, SyncError } from './contract/index.ts'
export type {
  ChangeAction, AuditEntry, ErrorCategory, Change, ChangesQuery, Checkpoint, Clock, Column, ColumnKind, Commit, CommitOutcome, CycleFacts,
  CycleRecord, DatabaseInfo, ErrorCode, Execute, Inflight, JsonObject, JsonValue, Landing, LandingCounts, LastError, Lease, Log, Lookup,
  LogEntry, LogFields, Meter, Mode, StateTransition, Pacing, Page, Ports, QuarantinedRecord, QuarantineEntry, Random, Remedy, Row, Secrets, SpanIds, StateText,
  StopReason, Store, Sweep, SyncContext, SyncErrorOptions, SyncRef, Tracer,
} from './contract/index.ts'
export { binaryIds, eventFeed, failover, flipFlop, frontier, keyset, numericIds, offset, offsets, pagedProvider, pageNumber, relay, relayNested, search, streams, token } from './strategies/index.ts'
export type {
  AnchoredExecute, RateBudget, ItemChanges, CompareIds, EventFeedAnswer, EventFeedOptions, EventFeedState, FetchContext, FlipFlopOptions, FlipFlopState, FrontierOptions, FrontierPage, FrontierState, InnerAnswer, KeysetAnswer,
  KeysetOptions, KeysetQuery, KeysetState, ListAnswer, OffsetOptions, PartitionOffsets, OffsetsAnswer, OffsetsOptions, OffsetsQuery, OffsetsState, OffsetState, OuterAnswer, RequestPace, PageInfo, PageNumberOptions, PageNumberState, ListPass,
  KeysetCursor, RelayAnswer, RelayNestedOptions, RelayNestedState, RelayOptions, RelayState, SearchAnswer, SearchOptions, SearchQuery, SearchState, ServerClock, Streams, StreamsState,
  TokenAnswer, TokenOptions, TokenState,
} from './strategies/index.ts'
export type {
  ProviderBatch, BatchStats, CircuitState, CursorMap, CursorMetadata, CursorState, CursorType, Failover, FailoverOptions, FailoverState, FetchRequest, ProviderHealth, ImportBatch,
  ProviderOperation, PagedProvider, PaginationCursor, ComparableCursor, ComparableCursorType, Provider, ProviderPage, HistoryRepair, Replay, ReplayWindow, FailoverResult, ImportSession, ImportTotals,
  StreamRequest,
} from './strategies/index.ts'
export { toEnvelope, fileCursor, fileOrder, literalSqlQuery, newerFiles, odataQuery, toRegistryRecord, soqlQuery, sqlQuery, watermark } from './strategies/index.ts'
export type {
  CursorKind, CursorValue, Envelope, ListedFile, RegistryRecord, QueryTarget, SqlQuery, WatermarkAnswer, WatermarkInput, WatermarkOptions, WatermarkOutput, WatermarkQuery, WatermarkState,
} from './strategies/index.ts'
