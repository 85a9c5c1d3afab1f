import {
  SyncError,
  type Connection,
  type ConnectionCredentials,
  type ConnectionOpener,
  type ConnectionStore,
  type OAuthClient,
  type OAuthCredentials,
  type Ports,
  type SourceConnection,
  type SourceCredentials,
  type SyncContext,
} from '../contract/index.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { Secret } from '../redaction/secret.ts'
import { OAuthAccount, toRenewedTokens, type RenewedTokens } from '../sources/kit/oauth.ts'
import { requestTokens, type TokenAnswer, type TokenEndpoint } from '../sources/kit/token-endpoint.ts'
import type { Tokens } from '../sources/kit/token-store.ts'
import { ConnectionTokens } from './connection-tokens.ts'
import { parseCredentials } from './credentials.ts'
import { isClientError } from './oauth/token-requests.ts'
import { createReplacedError } from './replaced-error.ts'

type TenantConnectionStore = ConnectionStore & { readonly tenant: string }

/** The client with the details of the provider's token endpoint. */
export interface ProviderClient extends OAuthClient {
  readonly tokenFormat?: 'form' | 'json'
  readonly tokensAt?: string
}

export interface SourceConnectionsOptions {
  readonly ports: Pick<Ports, 'clock' | 'log'>
  /** For token requests, which must not end with the cycle that needs the token. */
  readonly fetch: SyncContext['fetch']
  /** The client that the program registered at the provider; null if there is none. */
  readonly findClient: (connection: Connection, tenant: string) => ProviderClient | null
}

/** The number of accounts whose tokens stay in memory. Others are read again when they are used. */
const ACCOUNTS_MAX = 20_000
const ACTOR = 'engine'
/** Shorter than the claim, so that no other process sends the same refresh token meanwhile. */
const REQUEST_TIMEOUT_MS = 20_000

/** The connections of all tenants, as their sources use them. One per process. */
export class SourceConnections implements ConnectionOpener {
  readonly #options: SourceConnectionsOptions
  readonly #accounts = new Map<string, OpenAccount>()

  constructor(options: SourceConnectionsOptions) {
    this.#options = options
  }

  async open(store: TenantConnectionStore, name: string): Promise<SourceConnection> {
    const connection = await store.connection(name)
    if (connection === null)
      throw new SyncError('CONNECTION_UNKNOWN', `The tenant ${store.tenant} has no connection ${name}.`)
    if (connection.status !== 'active') throw createInactiveError(connection)
    let loaded: SourceCredentials | null = null
    return {
      ...connection,
      // Other credentials than tokens are read once per call of the source.
      credentials: async (context) => loaded ?? this.#load(store, connection, context, (found) => (loaded = found)),
      renew: async (refused, context) => this.#renew(store, connection, refused, context, (found) => (loaded = found)),
    }
  }

  async settle(tenant: string, name: string): Promise<void> {
    await this.#accounts.get(toKey(tenant, name))?.settle()
  }

  async #load(
    store: TenantConnectionStore,
    connection: Connection,
    context: SyncContext,
    onLoad: (credentials: SourceCredentials) => void,
  ): Promise<SourceCredentials> {
    const key = toKey(store.tenant, connection.name)
    const known = this.#accounts.get(key)
    if (known !== undefined) {
      const { createdAt, version } = known.tokens
      if (createdAt === connection.createdAt && version >= connection.credentialsVersion) return known.load(context)
      // Another process has renewed or replaced the tokens: read them again.
      this.#accounts.delete(key)
    }
    const { credentials } = await this.#read(store, connection)
    if (credentials.kind === 'oauth') return this.#openAccount(store, connection).load(context)
    onLoad(credentials)
    return credentials
  }

  async #read(
    store: TenantConnectionStore,
    { name, createdAt }: Connection,
  ): Promise<{ credentials: ConnectionCredentials; connection: Connection }> {
    const found = await store.connectionCredentials(name)
    if (found === null)
      throw new SyncError('CONNECTION_UNKNOWN', `The tenant ${store.tenant} has no connection ${name}.`)
    if (found.connection.createdAt !== createdAt) throw createReplacedError(name)
    return { credentials: parseCredentials(name, found.credentials), connection: found.connection }
  }

  async #renew(
    store: TenantConnectionStore,
    connection: Connection,
    refused: SourceCredentials,
    context: SyncContext,
    onLoad: (credentials: SourceCredentials) => void,
  ): Promise<SourceCredentials> {
    if (refused.kind === 'oauth') return this.#openAccount(store, connection).renew(refused.accessToken, context)
    const { credentials, connection: found } = await this.#read(store, connection)
    // An operator may have replaced them while the request was sent.
    if (credentials.kind !== 'oauth' && JSON.stringify(credentials) !== JSON.stringify(refused)) {
      onLoad(credentials)
      return credentials
    }
    throw await this.#rejectCredentials(store, found, 'the vendor refused the credentials')
  }

  #openAccount(store: TenantConnectionStore, connection: Connection): OpenAccount {
    const { clock } = this.#options.ports
    const key = toKey(store.tenant, connection.name)
    let open = this.#accounts.get(key)
    if (open === undefined || open.tokens.createdAt !== connection.createdAt) {
      if (this.#accounts.size >= ACCOUNTS_MAX) this.#accounts.delete([...this.#accounts.keys()][0] ?? '')
      const tokens = new ConnectionTokens(store, connection, clock)
      const account = new OAuthAccount(
        (before, context) => this.#requestTokens(store, connection, tokens, before, context),
        tokens,
      )
      const toCredentials = (accessToken: string): SourceCredentials => ({
        kind: 'oauth',
        accessToken,
        fields: tokens.credentials.fields,
      })
      open = {
        tokens,
        load: async (context) => toCredentials(await account.getAccessToken(context)),
        renew: async (refused, context) => toCredentials(await account.renewAccessToken(refused, context)),
        settle: () => account.settle(),
      }
      this.#accounts.set(key, open)
    }
    return open
  }

  /** Called with the claim of the renewal. */
  async #requestTokens(
    store: TenantConnectionStore,
    connection: Connection,
    tokens: ConnectionTokens,
    before: Tokens,
    context: SyncContext,
  ): Promise<RenewedTokens> {
    const { credentials, version: credentialsVersion } = tokens
    const read = { ...connection, credentialsVersion }
    const client = this.#findClient(store, connection, credentials)
    const grants = listGrants(credentials, before)
    if (grants.length === 0)
      throw await this.#rejectCredentials(store, read, 'the access token ended, and there is no refresh token')
    let answer: TokenAnswer | null = null
    for (const grant of grants) {
      // Not the signal of the page: a vendor that rotates tokens has replaced the old one before it answers, so the
      // answer must be stored even if the cycle is stopped.
      const limited = {
        ...context,
        fetch: this.#options.fetch,
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      }
      answer = await requestTokens(toEndpoint(client), { ...grant, ...toClientFields(client) }, limited)
      if (answer.kind === 'granted') return toRenewedTokens(answer, grant.refresh_token ?? null, context)
      if (isClientError(answer.reason))
        throw new SyncError(
          'CONNECTION_INVALID',
          `${answer.label}: the vendor refused the OAuth client of ${connection.provider} (${answer.reason ?? 'no reason'}). Check its id and secret.`,
        )
    }
    const reason = answer?.kind === 'refused' ? (answer.reason ?? 'no reason') : 'no reason'
    throw await this.#rejectCredentials(store, read, `the vendor refused to renew the tokens (${reason})`)
  }

  #findClient(store: TenantConnectionStore, connection: Connection, { client }: OAuthCredentials): ProviderClient {
    const found = client ?? this.#options.findClient(connection, store.tenant)
    if (found !== null) return found
    throw new SyncError(
      'CONNECTION_INVALID',
      `The connection ${connection.name} cannot be renewed: this program has no OAuth client for ${connection.provider}.`,
    )
  }

  /** Stops the connection, unless its credentials were replaced meanwhile, and returns the error to throw. */
  async #rejectCredentials(
    store: TenantConnectionStore,
    credentials: Connection,
    answered: string,
  ): Promise<SyncError> {
    const { name } = credentials
    const reason = maskSecrets(answered)
    const { clock, log } = this.#options.ports
    const isStopped = await store.setConnectionStatus(
      name,
      { status: 'needs_reauthorization', reason, credentials },
      { actor: ACTOR, at: clock.now() },
    )
    this.#accounts.delete(toKey(store.tenant, name))
    if (!isStopped)
      return new SyncError('CONNECTION_CHANGED', `The credentials of the connection ${name} were replaced meanwhile.`)
    log.warn('a connection needs to be authorized again', { tenant: store.tenant, connection: name, reason })
    return new SyncError('CONNECTION_INACTIVE', `The connection ${name} needs to be authorized again: ${reason}.`)
  }
}

interface OpenAccount {
  readonly tokens: ConnectionTokens
  load(context: SyncContext): Promise<SourceCredentials>
  renew(refused: string, context: SyncContext): Promise<SourceCredentials>
  settle(): Promise<void>
}

/** The newest refresh token first. An older one is tried only when the vendor refused the newest. */
function listGrants(
  { refreshToken, previousRefreshToken, client }: OAuthCredentials,
  before: Tokens,
): Array<Record<string, string>> {
  const newest = before.refreshToken ?? refreshToken
  if (newest === null) return client === null ? [] : [{ grant_type: 'client_credentials' }]
  const tokens = previousRefreshToken === null ? [newest] : [newest, previousRefreshToken]
  return tokens.map((token) => ({ grant_type: 'refresh_token', refresh_token: token }))
}

function toEndpoint({
  tokenUrl,
  clientId,
  clientSecret,
  clientAuth,
  tokenFormat,
  tokensAt,
}: ProviderClient): TokenEndpoint {
  return {
    url: tokenUrl,
    clientId: new Secret(clientId),
    clientSecret: clientSecret === null ? null : new Secret(clientSecret),
    clientAuth,
    ...(tokenFormat !== undefined && { format: tokenFormat }),
    ...(tokensAt !== undefined && { tokensAt }),
  }
}

function toClientFields({ scope, parameters }: OAuthClient): Record<string, string> {
  return { ...parameters, ...(scope !== null && { scope }) }
}

function createInactiveError({ name, status, statusReason }: Connection): SyncError {
  const reason = statusReason === null || statusReason === '' ? '' : `: ${statusReason}`
  const state = status === 'needs_reauthorization' ? 'needs to be authorized again' : `is ${status}`
  return new SyncError('CONNECTION_INACTIVE', `The connection ${name} ${state}${reason}.`)
}

function toKey(tenant: string, name: string): string {
  return `${tenant}\n${name}`
}
