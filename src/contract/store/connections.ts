import type {
  Connection,
  ConnectionChanges,
  ConnectionStatus,
  ConnectionWithCredentials,
  ConnectionWrite,
  CredentialsVersion,
} from '../connections.ts'

/** The connections of a tenant, with their sealed credentials. */
export interface ConnectionStore {
  /** In order of name. */
  connections(): Promise<Connection[]>
  connection(name: string): Promise<Connection | null>
  connectionCredentials(name: string): Promise<ConnectionWithCredentials | null>
  /**
   * Compare-and-swap: adds a connection, or replaces everything but its name, provider and creation time. Null, and
   * nothing is written, if the stored connection is not the one in `replaces`. Audited.
   */
  putConnection(write: ConnectionWrite, by: { actor: string; at: number; reason?: string }): Promise<Connection | null>
  /**
   * Compare-and-swap of the credentials alone, for renewals. False if they are no longer those of `replaces`.
   * Not audited.
   */
  swapCredentials(
    name: string,
    swap: { readonly credentials: string; readonly replaces: CredentialsVersion; readonly at: number },
  ): Promise<boolean>
  /**
   * Audited with the reason. False if there is no such connection, or if its credentials are no longer the given ones:
   * they were replaced since, or the connection was removed and added again.
   */
  setConnectionStatus(
    name: string,
    change: {
      readonly status: ConnectionStatus
      readonly reason: string
      readonly credentials?: CredentialsVersion
    },
    by: { actor: string; at: number },
  ): Promise<boolean>
  /** Deletes a connection with its credentials. Its rows and states stay. Audited. False if there is none. */
  removeConnection(name: string, by: { actor: string; at: number; reason?: string }): Promise<boolean>
  /**
   * The tenants whose connections were added, removed or changed since the token, in that order; without a token, all
   * that ever had one. A query across tenants that costs nothing for unchanged ones. Renewals are no changes.
   */
  connectionChanges(query: { readonly since: string | null; readonly limit: number }): Promise<ConnectionChanges>
}
