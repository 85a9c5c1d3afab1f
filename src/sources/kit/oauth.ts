import { hash } from 'node:crypto'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'
import { resolveSecret, type Auth, type Credentials, type SecretSource } from './auth.ts'
import { Origin } from './origin.ts'
import { requestTokens, type ClientAuth } from './token-endpoint.ts'
import { MemoryTokenStore, type StoredTokens, type Tokens, type TokenStore } from './token-store.ts'

interface OAuthOptions {
  readonly tokenUrl: string
  readonly clientId: SecretSource
  readonly clientSecret?: SecretSource
  readonly scope?: string
  /** Further fields of the request, such as `audience` or `resource`. */
  readonly fields?: Readonly<Record<string, string>>
  /** How the client authenticates: with a basic header, or with form fields. */
  readonly clientAuth?: ClientAuth
  /**
   * Opens the token store of an account. The default keeps tokens in memory. The account is a digest of the credentials, so
   * two tenants never share tokens, and neither do a lost refresh token and its replacement.
   */
  readonly tokens?: (account: string) => TokenStore
}

/** Authenticates with the OAuth 2.0 client credentials grant, and requests a new token when one expires. */
export function clientCredentials(options: OAuthOptions): Auth {
  return new OAuth(options, null)
}

/**
 * Pass durable `tokens` if the source rotates refresh tokens: the one in `refreshToken` is valid for the first renewal only.
 */
export function refreshToken(options: OAuthOptions & { readonly refreshToken: SecretSource }): Auth {
  return new OAuth(options, options.refreshToken)
}

class OAuth implements Auth {
  readonly #options: OAuthOptions
  readonly #initialRefreshToken: SecretSource | null
  readonly #accounts = new Map<string, OAuthAccount>()

  constructor(options: OAuthOptions, initialRefreshToken: SecretSource | null) {
    this.#options = options
    this.#initialRefreshToken = initialRefreshToken
    new Origin(options.tokenUrl) // Rejects an invalid URL at declaration instead of in the first cycle.
  }

  credentials(context: SyncContext): Promise<Credentials> {
    return this.#getAccount(context).credentials(context)
  }

  renew(refused: Credentials, context: SyncContext): Promise<Credentials> {
    return this.#getAccount(context).renew(refused, context)
  }

  #getAccount(context: SyncContext): OAuthAccount {
    const { clientId, clientSecret, tokenUrl, tokens } = this.#options
    const client: ClientIdentity = {
      id: resolveSecret(clientId, context),
      secret: clientSecret === undefined ? null : resolveSecret(clientSecret, context),
      refreshToken: this.#initialRefreshToken === null ? null : resolveSecret(this.#initialRefreshToken, context),
    }
    const name = hash(
      'sha256',
      JSON.stringify([tokenUrl, client.id.reveal(), client.secret?.reveal(), client.refreshToken?.reveal()]),
    )
    let account = this.#accounts.get(name)
    if (account === undefined)
      this.#accounts.set(
        name,
        (account = new OAuthAccount(this.#options, client, tokens?.(name) ?? new MemoryTokenStore())),
      )
    return account
  }
}

interface ClientIdentity {
  readonly id: Secret
  readonly secret: Secret | null
  /** The configured one, used until the source rotates it. */
  readonly refreshToken: Secret | null
}

interface RenewedTokens extends Tokens {
  readonly accessToken: string
}

interface TokenRenewal {
  readonly promise: Promise<Credentials>
  /** The signal of the caller that started the renewal. */
  readonly signal: AbortSignal
}

/** Tokens are renewed this long before they expire, or at half their lifetime if shorter, so none expires in flight. */
const EXPIRY_MARGIN_MS = 30_000

/** Longer than a token endpoint takes. A renewal whose process crashed is taken over after this time. */
const RENEWAL_CLAIM_MS = 90_000
const CLAIM_POLL_MS = 500

/**
 * One set of tokens, shared by all syncs of the account.
 *
 *   current ──expired, refused──▶ renewing ──stored by another process──▶ current
 *                                    │ claim (compare-and-swap) ──▶ request ──▶ store (compare-and-swap) ──▶ current
 *                                    └ claimed by another process: poll until it is stored or the claim expires
 *
 * The claim prevents a race condition: a second process that sends the same refresh token looks like a thief to a source that
 * rotates them, and the source revokes both tokens.
 */
class OAuthAccount {
  readonly #options: OAuthOptions
  readonly #client: ClientIdentity
  readonly #store: TokenStore
  #current: {
    readonly credentials: Credentials
    readonly accessToken: string
    readonly renewAt: number | null
  } | null = null
  #renewing: TokenRenewal | null = null
  /** Received from the source but not stored, because the store failed. Stored first in the next renewal. */
  #unsaved: { readonly version: number; readonly tokens: Tokens } | null = null

  constructor(options: OAuthOptions, client: ClientIdentity, store: TokenStore) {
    this.#options = options
    this.#client = client
    this.#store = store
  }

  async credentials(context: SyncContext): Promise<Credentials> {
    const current = this.#current
    if (current !== null && !isRenewalDue(current.renewAt, context)) return current.credentials
    return this.#joinRenewal(null, context)
  }

  async renew(refused: Credentials, context: SyncContext): Promise<Credentials> {
    const current = this.#current
    if (current === null) return this.#joinRenewal(null, context)
    return current.credentials === refused ? this.#joinRenewal(current.accessToken, context) : current.credentials
  }

  /** Concurrent callers share one renewal. */
  async #joinRenewal(refused: string | null, context: SyncContext): Promise<Credentials> {
    for (;;) {
      context.signal.throwIfAborted()
      this.#renewing ??= this.#startRenewal(refused, context)
      const { promise, signal } = this.#renewing
      try {
        return await promise
      } catch (error) {
        context.signal.throwIfAborted()
        // Only the caller that started the renewal was aborted; the others start a new one.
        if (!signal.aborted) throw error
      }
    }
  }

  #startRenewal(refused: string | null, context: SyncContext): TokenRenewal {
    const promise = this.#renewOnce(refused, context).finally(() => (this.#renewing = null))
    promise.catch(() => {})
    return { promise, signal: context.signal }
  }

  async #renewOnce(refused: string | null, context: SyncContext): Promise<Credentials> {
    await this.#saveUnsaved()
    for (;;) {
      const stored = await this.#store.read()
      if (stored?.accessToken != null && stored.accessToken !== refused && !isRenewalDue(stored.renewAt, context))
        return this.#setCurrent(stored.accessToken, stored.renewAt)
      const now = context.clock.now()
      if (stored?.claimedUntil != null && stored.claimedUntil > now && stored.claimedUntil <= now + RENEWAL_CLAIM_MS) {
        await context.clock.sleep(Math.min(CLAIM_POLL_MS, stored.claimedUntil - now), context.signal)
        continue
      }
      const version = stored?.version ?? 0
      const before = toTokens(stored)
      if (!(await this.#store.write(version, { ...before, claimedUntil: now + RENEWAL_CLAIM_MS }))) continue
      const tokens = await this.#requestOrRelease(version + 1, before, context)
      if (!(await this.#save(version + 1, tokens))) continue
      return this.#setCurrent(tokens.accessToken, tokens.renewAt)
    }
  }

  async #requestOrRelease(version: number, before: Tokens, context: SyncContext): Promise<RenewedTokens> {
    try {
      return await this.#requestTokens(before.refreshToken ?? this.#client.refreshToken?.reveal() ?? null, context)
    } catch (error) {
      // If the release fails too, the claim expires by itself.
      await this.#store.write(version, before).catch(() => false)
      throw error
    }
  }

  async #save(version: number, tokens: Tokens): Promise<boolean> {
    this.#unsaved = { version, tokens }
    const isSaved = await this.#store.write(version, tokens)
    this.#unsaved = null
    return isSaved
  }

  async #saveUnsaved(): Promise<void> {
    if (this.#unsaved !== null) await this.#save(this.#unsaved.version, this.#unsaved.tokens)
  }

  #setCurrent(accessToken: string, renewAt: number | null): Credentials {
    const credentials = { headers: { authorization: new Secret(`Bearer ${accessToken}`) }, query: {} }
    this.#current = { credentials, accessToken, renewAt }
    return credentials
  }

  async #requestTokens(refresh: string | null, context: SyncContext): Promise<RenewedTokens> {
    const { tokenUrl: url, scope, fields, clientAuth = 'basic' } = this.#options
    const { id: clientId, secret: clientSecret } = this.#client
    const answer = await requestTokens(
      { url, clientId, clientSecret, clientAuth },
      {
        ...fields,
        ...(refresh === null
          ? { grant_type: 'client_credentials' }
          : { grant_type: 'refresh_token', refresh_token: refresh }),
        ...(scope !== undefined && { scope }),
      },
      context,
    )
    if (answer.kind === 'refused')
      throw new SyncError(
        'AUTH_REJECTED',
        `${answer.label}: the token was not renewed. Check the client credentials and the refresh token.`,
      )
    const { accessToken, refreshToken, lifetimeMs } = answer
    return {
      accessToken,
      // A source that does not rotate sends no new refresh token, and the old one stays valid.
      refreshToken: refreshToken ?? refresh,
      renewAt:
        lifetimeMs === null ? null : context.clock.now() + lifetimeMs - Math.min(EXPIRY_MARGIN_MS, lifetimeMs / 2),
      claimedUntil: null,
    }
  }
}

function isRenewalDue(renewAt: number | null, { clock }: SyncContext): boolean {
  return renewAt !== null && renewAt <= clock.now()
}

function toTokens(stored: StoredTokens | null): Tokens {
  return {
    accessToken: stored?.accessToken ?? null,
    refreshToken: stored?.refreshToken ?? null,
    renewAt: stored?.renewAt ?? null,
    claimedUntil: null,
  }
}
