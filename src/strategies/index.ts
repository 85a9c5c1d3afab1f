export { dateWindows } from './date-windows.ts'
export type { DateWindow, DateWindowsOptions } from './date-windows.ts'
export { eventFeed } from './event-feed.ts'
export type {
  EventConversion,
  EventFeedAnswer,
  EventFeedCursor,
  EventFeedOptions,
  EventFeedReader,
  EventFeedState,
  EventPage,
  EventPageConversion,
  EventPageEnd,
} from './event-feed.ts'
export { failover } from './failover/failover.ts'
export type { Failover, FailoverOptions, ImportBatch, HistoryRepair } from './failover/failover.ts'
export { pagedProvider } from './failover/paged-provider.ts'
export type { PagedProvider } from './failover/paged-provider.ts'
export type {
  ProviderBatch,
  BatchStats,
  FetchRequest,
  ProviderOperation,
  Provider,
  ProviderPage,
  ReplayWindow,
  StreamRequest,
} from './failover/provider.ts'
export type {
  CursorMap,
  CursorMetadata,
  CursorState,
  CursorType,
  PaginationCursor,
  ComparableCursor,
  ComparableCursorType,
  Replay,
} from './failover/cursors.ts'
export type { CircuitState, ProviderHealth } from './failover/circuit-breaker.ts'
export type { FailoverResult } from './failover/result.ts'
export type { ImportSession, ImportTotals } from './failover/import-session.ts'
export type { FailoverState } from './failover/state.ts'
export { flipFlop } from './flip-flop.ts'
export type { FlipFlopOptions, FlipFlopState } from './flip-flop.ts'
export { frontier } from './frontier.ts'
export type { FetchContext, FrontierOptions, FrontierPage, FrontierState } from './frontier.ts'
export { keyset } from './keyset.ts'
export type { KeysetAnswer, KeysetOptions, KeysetQuery, KeysetState, KeysetCursor } from './keyset.ts'
export { offset } from './offset.ts'
export type { OffsetOptions, OffsetState } from './offset.ts'
export { offsets } from './offsets.ts'
export type { PartitionOffsets, OffsetsAnswer, OffsetsOptions, OffsetsQuery, OffsetsState } from './offsets.ts'
export { pageNumber } from './page-number.ts'
export type { PageNumberOptions, PageNumberState } from './page-number.ts'
export { partitioned } from './partitioned.ts'
export type {
  Partition,
  PartitionedCycle,
  PartitionedOptions,
  PartitionedState,
  PartitionList,
  PartitionPage,
  PartitionRows,
} from './partitioned.ts'
export { relay } from './relay.ts'
export type { RelayAnswer, RelayOptions, RelayState } from './relay.ts'
export { relayNested } from './relay-nested.ts'
export type { InnerAnswer, NestedPage, OuterAnswer, RelayNestedOptions, RelayNestedState } from './relay-nested.ts'
export { search } from './search.ts'
export type { SearchAnswer, SearchOptions, SearchQuery, SearchState } from './search.ts'
export { streams } from './streams.ts'
export type { Streams, StreamsState } from './streams.ts'
export { token } from './token.ts'
export type { TokenAnswer, TokenOptions, TokenState } from './token.ts'
export { watermark } from './watermark.ts'
export type {
  WatermarkAnswer,
  WatermarkInput,
  WatermarkOptions,
  WatermarkOutput,
  WatermarkQuery,
  WatermarkState,
} from './watermark.ts'
export type { AnchoredExecute } from './kit/anchored-execute.ts'
export type { RateBudget, RequestPace } from './kit/request-pace.ts'
export { binaryIds, numericIds } from './kit/compare-ids.ts'
export type { CompareIds } from './kit/compare-ids.ts'
export {
  fileCursor,
  fileOrder,
  literalSqlQuery,
  newerFiles,
  odataQuery,
  soqlQuery,
  sqlQuery,
} from './kit/cursor-queries.ts'
export type { ListedFile, QueryTarget, SqlQuery } from './kit/cursor-queries.ts'
export type { CursorKind, CursorValue } from './kit/cursor-values.ts'
export { toEnvelope, toRegistryRecord } from './kit/envelope.ts'
export type { Envelope, RegistryRecord } from './kit/envelope.ts'
export type { ExtraAnswer, ExtraState } from './kit/extra.ts'
export type { ServerClock } from './kit/horizon.ts'
export type { PageInfo } from './kit/page-info.ts'
export type { ListAnswer, ListPass } from './kit/list-pass.ts'
export type { ItemChanges } from './kit/to-changes.ts'
