import type { ConnectSession, ConnectSessionStatus } from '../connect-sessions.ts'

/** The sessions of the connect flow. They live for minutes. */
export interface ConnectSessionStore {
  /** Adds a session with its secrets as JSON text, and deletes some that expired. */
  addConnectSession(session: Omit<ConnectSession, 'tenant' | 'status' | 'version'>, secrets: string): Promise<void>
  /** Finds a session of any tenant that has not expired. The id proves that the caller knows the link. */
  connectSession(id: string, at: number): Promise<ConnectSession | null>
  /** The secrets of a session of this tenant, and the version that they belong to. */
  connectSecrets(id: string): Promise<{ readonly version: number; readonly secrets: string } | null>
  /**
   * Compare-and-swap. False, and nothing is written, if the session has expired or has another version: another request
   * used it.
   */
  moveConnectSession(
    id: string,
    move: {
      readonly replaces: number
      readonly status: ConnectSessionStatus
      readonly secrets: string
      readonly at: number
    },
  ): Promise<boolean>
}
