import {
  SyncError,
  type Clock,
  type Connection,
  type ConnectionStore,
  type OAuthCredentials,
} from '../contract/index.ts'
import { EXPIRY_MARGIN_MS } from '../sources/kit/oauth.ts'
import type { StoredTokens, Tokens, TokenStore } from '../sources/kit/token-store.ts'
import { parseCredentials, serializeCredentials } from './credentials.ts'
import { createReplacedError } from './replaced-error.ts'

/** A renewal whose process crashed is taken over after this time. Longer than a token request takes. */
const CLAIM_MS = 30_000

/** The wait after a failed renewal; doubles with every further failure. */
const RETRY_MS = 5_000
const RETRY_MAX_MS = 10 * 60_000

/**
 * The tokens of a connection, for every process of a fleet: each write is a compare-and-swap of the sealed record.
 *
 *   claim ──▶ request ──▶ write (the old refresh token is kept) ──▶ next renewal: the new one worked
 *     │          └ failed: release with the time of the next attempt
 *     └ refused while another process has the claim, or before the time of the next attempt
 */
export class ConnectionTokens implements TokenStore {
  readonly #store: ConnectionStore
  readonly #name: string
  /** The creation of the connection. One of the same name that was added later has other tokens. */
  readonly createdAt: number
  readonly #clock: Clock
  #credentials: OAuthCredentials | null = null
  #version = 0

  constructor(store: ConnectionStore, { name, createdAt }: Connection, clock: Clock) {
    this.#store = store
    this.#name = name
    this.createdAt = createdAt
    this.#clock = clock
  }

  /** As of the last read or write. */
  get version(): number {
    return this.#version
  }

  /** As of the last read or write. Legal only after one of them. */
  get credentials(): OAuthCredentials {
    if (this.#credentials === null) throw new Error('The tokens were not read yet.')
    return this.#credentials
  }

  async read(): Promise<StoredTokens> {
    const found = await this.#store.connectionCredentials(this.#name)
    const credentials = found === null ? null : parseCredentials(this.#name, found.credentials)
    if (found === null || credentials?.kind !== 'oauth')
      throw new SyncError('CONNECTION_UNKNOWN', `The connection ${this.#name} no longer has tokens.`)
    if (found.connection.createdAt !== this.createdAt) throw createReplacedError(this.#name)
    this.#credentials = credentials
    this.#version = found.connection.credentialsVersion
    const { accessToken, refreshToken, renewAt, claimedUntil } = credentials
    return { accessToken, refreshToken, renewAt, claimedUntil, version: this.#version }
  }

  async write(expectedVersion: number, tokens: Tokens): Promise<boolean> {
    const before = this.credentials
    const isClaim = tokens.claimedUntil !== null
    if (isClaim) this.#assertDue(before)
    const credentials: OAuthCredentials = isClaim
      ? { ...before, claimedUntil: this.#clock.now() + CLAIM_MS }
      : tokens.accessToken === before.accessToken && tokens.refreshToken === before.refreshToken
        ? { ...before, claimedUntil: null, ...this.#delayNext(before) }
        : this.#rotate(before, tokens)
    const isWritten = await this.#store.swapCredentials(this.#name, {
      credentials: serializeCredentials(credentials),
      replaces: { createdAt: this.createdAt, credentialsVersion: expectedVersion },
      at: this.#clock.now(),
    })
    if (!isWritten) return false
    this.#credentials = credentials
    this.#version = expectedVersion + 1
    return true
  }

  /** The refresh token that was just used stays until the next renewal: then the new one has worked. */
  #rotate(before: OAuthCredentials, { accessToken, refreshToken, renewAt }: Tokens): OAuthCredentials {
    const hasRotated = refreshToken !== before.refreshToken
    return {
      ...before,
      accessToken,
      refreshToken,
      renewAt,
      previousRefreshToken: hasRotated ? before.refreshToken : null,
      expiresAt: renewAt === null ? null : renewAt + EXPIRY_MARGIN_MS,
      claimedUntil: null,
      retryAt: null,
      failures: 0,
    }
  }

  #delayNext({ failures }: OAuthCredentials): Pick<OAuthCredentials, 'failures' | 'retryAt'> {
    return {
      failures: failures + 1,
      retryAt: this.#clock.now() + Math.min(RETRY_MS * 2 ** Math.min(failures, 20), RETRY_MAX_MS),
    }
  }

  /** All processes wait together after a failure, however many syncs use the connection. */
  #assertDue({ retryAt, failures }: OAuthCredentials): void {
    const waitMs = (retryAt ?? 0) - this.#clock.now()
    if (waitMs <= 0 || waitMs > RETRY_MAX_MS) return
    throw new SyncError(
      'SOURCE_UNAVAILABLE',
      `The tokens of the connection ${this.#name} could not be renewed (${failures} attempts).`,
      { retryAfterMs: waitMs },
    )
  }
}
