import type { ConnectFlow, ConnectLink, CreateConnectSession } from '../connections/connect/connect-flow.ts'
import { SyncError, type Connection, type Store } from '../contract/index.ts'
import type { TenantOption } from './options.ts'

/** The options of a connect link. */
export interface CreateConnectSessionOptions extends Omit<CreateConnectSession, 'tenant'>, TenantOption {}

interface ConnectionsOptions {
  readonly tenantOf: (options: TenantOption) => string
  readonly storeOf: (options: TenantOption) => Promise<Store>
  readonly now: () => number
  /** Null without `connect`. */
  readonly openFlow: () => Promise<ConnectFlow | null>
}

/** The accounts of tenants at vendors. */
export class Connections {
  readonly #options: ConnectionsOptions

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /** In order of name, without credentials. */
  async list(options: TenantOption = {}): Promise<Connection[]> {
    return (await this.#options.storeOf(options)).connections()
  }

  /**
   * Ends the grant at the vendor, as far as the vendor allows it, and deletes the connection with its credentials. Its
   * syncs stop, and its rows stay. False if there is none of this name.
   */
  async remove(name: string, options: TenantOption = {}): Promise<boolean> {
    const store = await this.#options.storeOf(options)
    await (await this.#options.openFlow())?.revoke(store, name)
    return store.removeConnection(name, { actor: 'program', at: this.#options.now() })
  }

  /**
   * Creates a link with which a user of the tenant connects an account. Send `cookie` as a `Set-Cookie` header of the same
   * response as `url`: the link works only in that browser.
   */
  async createSession({ tenant, ...request }: CreateConnectSessionOptions): Promise<ConnectLink> {
    const flow = await this.#options.openFlow()
    if (flow === null)
      throw new SyncError('ARGUMENT_INVALID', 'Set the option `connect` of createTidemark to create connect links.')
    return flow.createSession({ ...request, tenant: this.#options.tenantOf({ tenant }) })
  }
}
