import type { OAuthClient } from './connections.ts'

/**
 * A session of the connect flow: one link, for one browser, used once.
 *
 *   open ──form or start──▶ authorizing ──callback──▶ finishing ──stored──▶ connected
 *     ▲                          │                        │
 *     └──────── another try ─────┴──── refused, failed ───┘
 *
 * An expired session is deleted in every status.
 */
export type ConnectSessionStatus = 'open' | 'authorizing' | 'finishing' | 'connected'

/** A session of the connect flow, without its secrets. */
export interface ConnectSession {
  /** The digest of the token in the link. */
  readonly id: string
  readonly tenant: string
  /** The digest of the secret in the cookie of the browser that may use the link. */
  readonly browser: string
  readonly status: ConnectSessionStatus
  /** Grows with every write. */
  readonly version: number
  readonly createdAt: number
  readonly expiresAt: number
}

/** The sealed part of a session, as JSON text in the store. */
export interface ConnectSessionSecrets {
  /** The token of the link, to return to its page after a failure. */
  readonly token: string
  readonly provider: string
  readonly method: 'oauth' | 'form'
  /** The name of the connection. */
  readonly connection: string
  /** A URL that the program allows; null to end on a page of Tidemark. */
  readonly returnTo: string | null
  /** Whether an existing connection may change to another account. */
  readonly allowAccountChange: boolean
  readonly scopes: readonly string[] | null
  /** The reason of the last failure, to show on the page. */
  readonly failure: string | null
  /** The authorization that is in progress. */
  readonly attempt: ConnectAttempt | null
}

/** One authorization at the vendor. Every try has its own state and code verifier. */
export interface ConnectAttempt {
  /** The digest of the secret part of `state`. */
  readonly state: string
  readonly codeVerifier: string
  readonly settings: Readonly<Record<string, string>>
  /** The client that the user registered; null for the client of the program. */
  readonly client: Pick<OAuthClient, 'clientId' | 'clientSecret'> | null
  /** Whether the page is in a pop-up, which reports to its opener. */
  readonly isPopup: boolean
}
