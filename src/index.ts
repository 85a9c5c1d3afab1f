export { Worker } from './config/worker.ts'
export type {
  DatabaseHandle, DatabaseOptions, Manifest, ManifestSync, PacerHandle, PacerOptions, SyncHandle, WebhookHandle, WorkerLike, WorkerOptions,
} from './config/worker.ts'
export type { SweepOptions, SyncOptions } from './config/sync-options.ts'
export type { TrackOptions, TrackSource } from './config/track-options.ts'
export type { WebhookOptions } from './config/webhook-options.ts'
export type { ExecuteWebhook, WebhookContext, WebhookEvent, WebhookResult } from './webhooks/inbound.ts'
export { githubSignature } from './webhooks/verify/github.ts'
export { hubspotSignature, type HubspotSignatureOptions } from './webhooks/verify/hubspot.ts'
export { standardSignature, verifyStandardWebhook } from './webhooks/verify/standard.ts'
export { stripeSignature } from './webhooks/verify/stripe.ts'
export { WebhookRefused, type InboundDelivery, type SignatureOptions, type Verified, type Verify, type VerifyContext } from './webhooks/verify/verify.ts'
export type { CronInput, Schedule, ScheduleInput } from './config/schedule.ts'
export type { JsonSchema, Schema, StandardSchema } from './config/schema.ts'
export { runCycle } from './config/run-cycle.ts'
export type { InlineDatabase, InlineRunOptions, InlineSync, RunOptions } from './config/run-cycle.ts'
export { openStore } from './config/open-store.ts'
export type { OpenStoreOptions } from './config/open-store.ts'
export type { CycleResult, Progress } from './engine/cycle-options.ts'
export type { Limits } from './engine/sync-plan.ts'
export { parseJson, stringifyJson } from './values/json.ts'
export { ERROR_CODES, isSyncError, SyncError } from './contract/index.ts'
export type {
  Action, AuditEntry, Blame, Change, ChangesQuery, Checkpoint, Clock, Column, ColumnKind, Commit, CommitOutcome, CycleFacts,
  CycleRecord, DatabaseInfo, ErrorCode, Execute, Inflight, JsonObject, JsonValue, Landing, LandingCounts, LastError, Lease, Log, Lookup,
  LogEntry, LogFields, Meter, Mode, Move, Pacing, Page, Ports, Quarantined, QuarantineEntry, Random, Remedy, Row, Secrets, SpanIds, StateText,
  StopReason, Store, Sweep, SyncContext, SyncErrorOptions, SyncRef, Tracer,
} from './contract/index.ts'
export { binaryIds, eventFeed, failover, flipFlop, frontier, keyset, numericIds, offset, offsets, pagedProvider, pageNumber, relay, relayNested, search, streams, token } from './strategies/index.ts'
export type {
  Anchored, Budget, Changes, CompareIds, EventFeedAnswer, EventFeedOptions, EventFeedState, FetchContext, FlipFlopOptions, FlipFlopState, FrontierOptions, FrontierPage, FrontierState, InnerAnswer, KeysetAnswer,
  KeysetOptions, KeysetQuery, KeysetState, ListAnswer, OffsetOptions, Offsets, OffsetsAnswer, OffsetsOptions, OffsetsQuery, OffsetsState, OffsetState, OuterAnswer, Pace, PageInfo, PageNumberOptions, PageNumberState, Pass,
  Place, RelayAnswer, RelayNestedOptions, RelayNestedState, RelayOptions, RelayState, SearchAnswer, SearchOptions, SearchQuery, SearchState, ServerClock, Streams, StreamsState,
  TokenAnswer, TokenOptions, TokenState,
} from './strategies/index.ts'
export type {
  Batch, BatchStats, Circuit, CursorMap, CursorMetadata, CursorState, CursorType, Failover, FailoverOptions, FailoverState, FetchRequest, Health, ImportBatch,
  Operation, PagedProvider, PaginationCursor, Position, PositionType, Provider, ProviderPage, Repair, Replay, ReplayWindow, Result, Session, SessionTotals,
  StreamRequest,
} from './strategies/index.ts'
export { envelopeOf, fileCursor, fileOrder, literalSqlQuery, newerFiles, odataQuery, registryRecord, soqlQuery, sqlQuery, watermark } from './strategies/index.ts'
export type {
  CursorKind, CursorValue, Envelope, ListedFile, RegistryRecord, Selected, SqlQuery, WatermarkAnswer, WatermarkInput, WatermarkOptions, WatermarkOutput, WatermarkQuery, WatermarkState,
} from './strategies/index.ts'
