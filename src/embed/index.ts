export { createTidemark, type Tidemark } from './create-tidemark.ts'
export type { QueryOptions, QueryResult, RowVersion, TickResult } from './create-tidemark.ts'
export type { DestinationRunResult, Destinations } from './destinations.ts'
export type { TenantOption, TidemarkOptions } from './options.ts'
export type { SyncEvent, TidemarkEvents, Unsubscribe } from './events.ts'
export type { ApiKeyInfo, ApiKeys, CreateApiKeyOptions } from './api-keys.ts'
export type {
  ConnectionInfo,
  Connections,
  ConnectionTenant,
  CreateConnectionOptions,
  UpdateConnectionOptions,
} from './connections.ts'
export type { ConnectionChange } from '../connections/connection-changes.ts'
export type { ConnectionTest } from '../connections/manage-connections.ts'
export type { ChangesPage, DatabaseChange, DatabaseReader, DatabaseRow } from './database-reader.ts'
export type { FetchHandler } from './fetch-handler.ts'
