export { createTidemark, type Tidemark } from './create-tidemark.ts'
export type { QueryOptions, QueryResult, RowVersion, TickResult } from './create-tidemark.ts'
export type { DestinationRunResult, Destinations } from './destinations.ts'
export type { TenantOption, TidemarkOptions } from './options.ts'
export type { SyncEvent, TidemarkEvents, Unsubscribe } from './events.ts'
export type { CreateConnectSessionOptions } from './connections.ts'
export { defineProvider } from '../connections/define-provider.ts'
export type {
  AccountRequest,
  FormAuth,
  FormMethod,
  OAuthMethod,
  Provider,
  ProviderInput,
  RevocationRequest,
} from '../connections/define-provider.ts'
export type { ConnectedEvent, ConnectLink } from '../connections/connect/connect-flow.ts'
export type { ConnectOptions } from '../connections/connect/connect-options.ts'
export type { ConnectMethod, ProviderOptions } from '../connections/resolve-provider.ts'
export type { VendorAccount } from '../connections/identify-account.ts'
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
