import { systemClock } from '../platform/clock.ts'
import { SyncError } from '../contract/index.ts'
import type { ConnectFlow, ConnectLink, CreateConnectSession } from '../connections/connect/connect-flow.ts'
import type {
  ConnectionAccount,
  ConnectionCredentials,
  ConnectionStatus,
  JsonObject,
  Store,
} from '../contract/index.ts'
import { buildCredentials, type CredentialKind } from '../connections/build-credentials.ts'
import { toConnectionDocument } from '../connections/connection-document.ts'
import {
  addConnection,
  disableConnection,
  editConnection,
  enableConnection,
  getConnection,
  removeConnection,
  revokeConnection,
  testConnection,
  type ConnectionActor,
  type ConnectionRuntime,
  type ConnectionTest,
} from '../connections/manage-connections.ts'
import type { Connection } from '../contract/index.ts'

/** A connection without its credentials. */
export interface ConnectionInfo {
  readonly name: string
  readonly provider: string
  readonly status: ConnectionStatus
  /** Why it is not active; null while it is. */
  readonly statusReason: string | null
  readonly settings: JsonObject
  readonly scopes: readonly string[]
  /** The account as the vendor states it; null if it is unknown. */
  readonly account: ConnectionAccount | null
  readonly createdAt: string
  readonly updatedAt: string
  readonly version: number
}

/** The tenant of a connection. Default: the first of the instance. */
export interface ConnectionTenant {
  readonly tenant?: string
  /** Recorded in the audit log. */
  readonly reason?: string
}

/** A new connection. */
export interface CreateConnectionOptions extends ConnectionTenant {
  /** A shipped provider such as `stripe`, or a name of your own. */
  readonly provider: string
  /** Default: the provider. */
  readonly name?: string
  readonly kind: CredentialKind
  /** The secrets by name: `{ key }`, `{ user, password }`, or `{ access_token, refresh_token }`. */
  readonly secrets: Readonly<Record<string, string>>
  readonly settings?: JsonObject
  readonly scopes?: readonly string[]
}

/** Changes of a connection. */
export interface UpdateConnectionOptions extends ConnectionTenant {
  readonly kind?: CredentialKind
  /** New secrets make the connection active again. */
  readonly secrets?: Readonly<Record<string, string>>
  readonly settings?: JsonObject
  readonly scopes?: readonly string[]
  /** Accept secrets of another account. Syncs then stop before they read, until an operator confirms. */
  readonly allowAccountChange?: boolean
}

/** The options of a connect link. */
export interface CreateConnectSessionOptions extends Omit<CreateConnectSession, 'tenant'> {
  /** The tenant of the signed-in user. Default: the first of the instance. */
  readonly tenant?: string
}

/** The connections of the tenants. Syncs of a worker run for each tenant that has the connection that they name. */
export class Connections {
  readonly #storeOf: (tenant: string | undefined) => Promise<Store>
  readonly #openRuntime: () => Promise<ConnectionRuntime>
  readonly #openFlow: () => Promise<ConnectFlow | null>

  /** `openFlow` returns null without the option `connect`. */
  constructor(
    storeOf: (tenant: string | undefined) => Promise<Store>,
    openRuntime: () => Promise<ConnectionRuntime>,
    openFlow: () => Promise<ConnectFlow | null>,
  ) {
    this.#storeOf = storeOf
    this.#openRuntime = openRuntime
    this.#openFlow = openFlow
  }

  /**
   * Creates a link with which a user of the tenant connects an account. Send `cookie` as a `Set-Cookie` header of the same
   * response as `url`: the link works only in that browser.
   */
  async createSession({ tenant, ...request }: CreateConnectSessionOptions): Promise<ConnectLink> {
    const flow = await this.#openFlow()
    if (flow === null)
      throw new SyncError('ARGUMENT_INVALID', 'Set the option `connect` of createTidemark to create connect links.')
    return flow.createSession({ ...request, tenant: (await this.#storeOf(tenant)).tenant })
  }

  /** In order of name. */
  async list({ tenant }: ConnectionTenant = {}): Promise<ConnectionInfo[]> {
    return (await (await this.#storeOf(tenant)).connections()).map(toConnectionDocument)
  }

  /** Null if the tenant has no such connection. */
  async get(name: string, { tenant }: ConnectionTenant = {}): Promise<ConnectionInfo | null> {
    const found = await (await this.#storeOf(tenant)).connection(name)
    return found === null ? null : toConnectionDocument(found)
  }

  /** Stores the secrets sealed. Syncs that name the connection start in every process, without a restart. */
  async create({
    provider,
    name = provider,
    kind,
    secrets,
    ...options
  }: CreateConnectionOptions): Promise<ConnectionInfo> {
    const credentials = buildCredentials(provider, kind, secrets)
    const store = await this.#storeOf(options.tenant)
    const { settings = {}, scopes = [] } = options
    return toConnectionDocument(
      await addConnection(store, { name, provider, credentials, settings, scopes }, toActor(options)),
    )
  }

  /** Replaces what is given. */
  async update(name: string, { kind, secrets, ...options }: UpdateConnectionOptions): Promise<ConnectionInfo> {
    const store = await this.#storeOf(options.tenant)
    const credentials =
      secrets === undefined ? null : await this.#rebuild(await getConnection(store, name), store, kind, secrets)
    const { settings, scopes, allowAccountChange } = options
    const edit = {
      ...(credentials !== null && { credentials }),
      ...(settings !== undefined && { settings }),
      ...(scopes !== undefined && { scopes }),
      ...(allowAccountChange !== undefined && { allowAccountChange }),
    }
    return toConnectionDocument(await editConnection(store, name, edit, toActor(options)))
  }

  /** Asks the vendor whose account it is. */
  async test(name: string, { tenant }: ConnectionTenant = {}): Promise<ConnectionTest> {
    return testConnection(await this.#storeOf(tenant), name, await this.#openRuntime())
  }

  /** Stops the syncs of a connection in every process. */
  disable(name: string, options: ConnectionTenant = {}): Promise<ConnectionInfo> {
    return this.#apply(options, (store, by) => disableConnection(store, name, by))
  }

  enable(name: string, options: ConnectionTenant = {}): Promise<ConnectionInfo> {
    return this.#apply(options, (store, by) => enableConnection(store, name, by))
  }

  /** Ends the grant at the vendor, if it can, and deletes the credentials; the connection and its rows stay. */
  async revoke(name: string, options: ConnectionTenant = {}): Promise<ConnectionInfo> {
    await this.#endGrant(name, options)
    return this.#apply(options, (store, by) => revokeConnection(store, name, by))
  }

  /**
   * Ends the grant at the vendor, if it can, and removes a connection with its credentials. Its syncs stop; their rows
   * stay.
   */
  async remove(name: string, options: ConnectionTenant = {}): Promise<void> {
    await this.#endGrant(name, options)
    await removeConnection(await this.#storeOf(options.tenant), name, toActor(options))
  }

  async #endGrant(name: string, { tenant }: ConnectionTenant): Promise<void> {
    await (await this.#openFlow())?.revoke(await this.#storeOf(tenant), name)
  }

  async #apply(
    options: ConnectionTenant,
    act: (store: Store, by: ConnectionActor) => Promise<Connection>,
  ): Promise<ConnectionInfo> {
    return toConnectionDocument(await act(await this.#storeOf(options.tenant), toActor(options)))
  }

  async #rebuild(
    { name, provider }: Connection,
    store: Store,
    kind: CredentialKind | undefined,
    secrets: Readonly<Record<string, string>>,
  ): Promise<ConnectionCredentials> {
    if (kind !== undefined) return buildCredentials(provider, kind, secrets)
    const stored = await store.connectionCredentials(name)
    const { kind: known } = JSON.parse(stored?.credentials ?? '{"kind":"none"}') as ConnectionCredentials
    return buildCredentials(provider, known, secrets)
  }
}

function toActor({ reason }: ConnectionTenant): ConnectionActor {
  return { actor: 'program', at: systemClock.now(), ...(reason !== undefined && { reason }) }
}
