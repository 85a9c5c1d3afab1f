import type { JsonObject } from './json.ts'
import type { SyncContext } from './page.ts'
import type { ConnectionStore } from './store/connections.ts'

/**
 * `active`: syncs run with it. `needs_reauthorization`: the vendor refused the credentials, and the user has to connect
 * again. `disabled`: an operator stopped it. `revoked`: the credentials were deleted.
 */
export type ConnectionStatus = 'active' | 'needs_reauthorization' | 'revoked' | 'disabled'

/** The account as the vendor states it. A changed id means another account. */
export interface ConnectionAccount {
  readonly id: string
  readonly label: string
}

/** One account of a tenant at a vendor, without its credentials. Its name is unique within the tenant. */
export interface Connection {
  readonly name: string
  /** The name of the provider descriptor, such as `stripe`. It never changes. */
  readonly provider: string
  readonly status: ConnectionStatus
  /** Why it has this status; null while it is active. */
  readonly statusReason: string | null
  /** Plain settings such as the URL of an instance. Never secrets. */
  readonly settings: JsonObject
  /** Scopes that the vendor granted, sorted. */
  readonly scopes: readonly string[]
  readonly account: ConnectionAccount | null
  /** A connection of the same name with another time was removed and added again. */
  readonly createdAt: number
  readonly updatedAt: number
  /** Grows with every change except a renewal of the credentials. */
  readonly version: number
  /** Grows with every write of the credentials. */
  readonly credentialsVersion: number
}

/** A connection of any tenant. */
export interface ConnectionRef {
  readonly tenant: string
  readonly name: string
}

/** The secrets of a connection. They are stored as JSON text, sealed with the tenant's key. */
export type ConnectionCredentials =
  | OAuthCredentials
  | {
      readonly kind: 'api_key'
      readonly key: string
      /** Further secrets that the provider names. */
      readonly fields: Readonly<Record<string, string>>
    }
  | {
      readonly kind: 'basic'
      readonly user: string
      readonly password: string
      readonly fields: Readonly<Record<string, string>>
    }
  | { readonly kind: 'none'; readonly fields: Readonly<Record<string, string>> }

/** OAuth 2.0 tokens, and the state of their renewal. */
export interface OAuthCredentials {
  readonly kind: 'oauth'
  /** Null before the first renewal. */
  readonly accessToken: string | null
  /** Null for the client credentials grant, and for tokens that never expire. */
  readonly refreshToken: string | null
  /** The refresh token before the newest rotation; kept until the newest one has worked. */
  readonly previousRefreshToken: string | null
  /** The expiry of the access token; null if the vendor states none. */
  readonly expiresAt: number | null
  /** When a renewal is due: shortly before the expiry. Null if the token has no known expiry. */
  readonly renewAt: number | null
  /** A process is renewing the tokens until this time; null if none is. */
  readonly claimedUntil: number | null
  /** No renewal is tried before this time, because earlier ones failed. */
  readonly retryAt: number | null
  /** Consecutive failed renewals. */
  readonly failures: number
  /** The client of this connection; null for the client that the program registered with the provider. */
  readonly client: OAuthClient | null
  readonly fields: Readonly<Record<string, string>>
}

/** How to request tokens. */
export interface OAuthClient {
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string | null
  /** With a basic header, or with form fields. */
  readonly clientAuth: 'basic' | 'form'
  readonly scope: string | null
  /** Further fields of token requests, such as `audience`. */
  readonly parameters: Readonly<Record<string, string>>
}

/** A connection as a source uses it, for one tenant. */
export interface SourceConnection extends Pick<
  Connection,
  'name' | 'provider' | 'status' | 'settings' | 'scopes' | 'account'
> {
  /** An access token that is due is renewed first, by one process of all. */
  credentials(context: SyncContext): Promise<SourceCredentials>
  /**
   * Returns newer credentials than those that the vendor refused. Throws CONNECTION_INACTIVE if there are none: the
   * connection then needs its user.
   */
  renew(refused: SourceCredentials, context: SyncContext): Promise<SourceCredentials>
}

/** The secrets that authenticate requests. */
export type SourceCredentials =
  | {
      readonly kind: 'oauth'
      readonly accessToken: string
      readonly fields: Readonly<Record<string, string>>
    }
  | Exclude<ConnectionCredentials, OAuthCredentials>

/** Opens the connections of tenants for sources. */
export interface ConnectionOpener {
  /** Throws CONNECTION_UNKNOWN, or CONNECTION_INACTIVE if it is not active. */
  open(store: ConnectionStore & { readonly tenant: string }, name: string): Promise<SourceConnection>
  /** Resolves when no renewal of the connection is in progress here. Call it before the store is closed. */
  settle(tenant: string, name: string): Promise<void>
}

/** A write of a connection, as compare-and-swap. */
export interface ConnectionWrite extends Pick<
  Connection,
  'name' | 'provider' | 'status' | 'statusReason' | 'settings' | 'scopes' | 'account'
> {
  /** The connection that the writer has read; null if there must be none. */
  readonly replaces: (CredentialsVersion & Pick<Connection, 'version'>) | null
  /** New credentials as JSON text; absent to keep the stored ones. */
  readonly credentials?: string
}

/** Identifies credentials: versions restart when a connection is removed and added again. */
export type CredentialsVersion = Pick<Connection, 'createdAt' | 'credentialsVersion'>

/** A connection with its credentials as JSON text. */
export interface ConnectionWithCredentials {
  readonly connection: Connection
  readonly credentials: string
}

/** The parts of a connection that decide whether syncs run with it. */
export type ConnectionSummary = Pick<
  Connection,
  'name' | 'provider' | 'status' | 'statusReason' | 'version' | 'updatedAt'
>

/** The connections of a tenant whose list or status changed. Empty if the last one was removed. */
export interface TenantConnections {
  readonly tenant: string
  readonly connections: readonly ConnectionSummary[]
}

/** Changed connections of all tenants, with a token to read only later changes. */
export interface ConnectionChanges {
  readonly changeToken: string
  /** More tenants changed: read again with the token. */
  readonly hasMore: boolean
  readonly tenants: readonly TenantConnections[]
}
