import { hash } from 'node:crypto'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { createBasicHeader, resolveSecret, type Auth, type Credentials, type SecretSource } from './auth.ts'
import { sendRequest, readJson } from './send-request.ts'
import { isObject } from './classify-response.ts'
import { Origin } from './origin.ts'
import { rateLimitWaitMs, retryAfterMs } from '../../values/retry-after.ts'
import { registerSecret } from '../../redaction/known-secrets.ts'
import { Secret } from '../../redaction/secret.ts'
import { classifyStatus } from './http-status.ts'
import { MemoryTokenStore, type StoredTokens, type Tokens, type TokenStore } from './token-store.ts'

interface OAuthOptions {
  readonly tokenUrl: string
  readonly clientId: SecretSource
  readonly clientSecret?: SecretSource
  readonly scope?: string
  /** Further fields of the request, such as `audience` or `resource`. */
  readonly fields?: Readonly<Record<string, string>>
  /** How the client authenticates: with a basic header, or with form fields. */
  readonly clientAuth?: 'basic' | 'form'
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
    const { tokenUrl, scope, fields, clientAuth = 'basic' } = this.#options
    const { id, secret } = this.#client
    const url = new URL(tokenUrl)
    const label = `POST ${url.pathname}`
    const form = new URLSearchParams({
      ...fields,
      ...(refresh === null
        ? { grant_type: 'client_credentials' }
        : { grant_type: 'refresh_token', refresh_token: refresh }),
      ...(scope !== undefined && { scope }),
    })
    const headers: Record<string, string> = {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    }
    if (secret !== null && clientAuth === 'basic')
      headers.authorization = createBasicHeader(formEncode(id), formEncode(secret)).reveal()
    else {
      form.set('client_id', id.reveal())
      if (secret !== null) form.set('client_secret', secret.reveal())
    }
    const response = await sendRequest(
      { method: 'POST', url, label, headers, body: form.toString() },
      new Origin(tokenUrl),
      context,
    )
    return this.#parseTokens(response, `${label} answered ${response.status}`, refresh, context)
  }

  async #parseTokens(
    response: Response,
    label: string,
    refresh: string | null,
    context: SyncContext,
  ): Promise<RenewedTokens> {
    const { status, headers } = response
    const code = classifyStatus(status, headers)
    if (code !== null) {
      await response.body?.cancel().catch(() => {})
      // A token endpoint rejects the grant or the client with 400.
      if (code === 'CONNECTOR_FAILED')
        throw new SyncError(
          'AUTH_REJECTED',
          `${label}: the token was not renewed. Check the client credentials and the refresh token.`,
        )
      const waitMs = (code === 'RATE_LIMITED' ? rateLimitWaitMs : retryAfterMs)(headers, context.clock.now())
      throw new SyncError(code, `${label}.`, waitMs === undefined ? {} : { retryAfterMs: waitMs })
    }
    const body = await readJson(response, label, TOKEN_BODY_LIMITS, context)
    if (!isObject(body) || typeof body.access_token !== 'string' || body.access_token === '')
      throw new SyncError('SOURCE_INVALID', `${label} without an access token.`)
    // An access token is registered when it becomes a header; a refresh token never does.
    if (typeof body.refresh_token === 'string') registerSecret(body.refresh_token)
    const seconds = Number(body.expires_in)
    return {
      accessToken: body.access_token,
      // A source that does not rotate sends no new refresh token, and the old one stays valid.
      refreshToken: typeof body.refresh_token === 'string' && body.refresh_token !== '' ? body.refresh_token : refresh,
      renewAt:
        body.expires_in !== undefined && seconds > 0
          ? context.clock.now() + seconds * 1_000 - Math.min(EXPIRY_MARGIN_MS, seconds * 500)
          : null,
      claimedUntil: null,
    }
  }
}

const TOKEN_BODY_LIMITS = { bodyBytesMax: 256 * 1024, depthMax: 32, bodyDeadlineMs: 30_000 }

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

/** RFC 6749 requires form encoding for both parts of the basic header. */
function formEncode(secret: Secret): Secret {
  return new Secret(new URLSearchParams({ '': secret.reveal() }).toString().slice(1))
}
