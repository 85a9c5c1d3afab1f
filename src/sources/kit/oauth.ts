import { hash } from 'node:crypto'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'
import { resolveSecret, type Auth, type Credentials, type SecretSource } from './auth.ts'
import { Origin } from './origin.ts'
import { requestTokens, type ClientAuth, type TokenGrant } from './token-endpoint.ts'
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

  async credentials(context: SyncContext): Promise<Credentials> {
    return toCredentials(await this.#getAccount(context).getAccessToken(context))
  }

  async renew(refused: Credentials, context: SyncContext): Promise<Credentials> {
    return toCredentials(await this.#getAccount(context).renewAccessToken(readAccessToken(refused), context))
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
        (account = new OAuthAccount(
          (before, renewing) => requestConfiguredTokens(this.#options, client, before, renewing),
          tokens?.(name) ?? new MemoryTokenStore(),
        )),
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

/** Tokens from a successful answer of the token endpoint. */
export interface RenewedTokens extends Tokens {
  readonly accessToken: string
}

/** Requests new tokens with the refresh token of the stored ones. */
export type RequestTokens = (before: Tokens, context: SyncContext) => Promise<RenewedTokens>

interface TokenRenewal {
  readonly promise: Promise<string>
  /** The signal of the caller that started the renewal. */
  readonly signal: AbortSignal
}

/** Tokens are renewed this long before they expire, or at half their lifetime if shorter, so none expires in flight. */
export const EXPIRY_MARGIN_MS = 30_000

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
export class OAuthAccount {
  readonly #request: RequestTokens
  readonly #store: TokenStore
  #current: { readonly accessToken: string; readonly renewAt: number | null } | null = null
  #renewing: TokenRenewal | null = null
  /** Received from the source but not stored, because the store failed. Stored first in the next renewal. */
  #unsaved: { readonly version: number; readonly tokens: Tokens } | null = null

  constructor(request: RequestTokens, store: TokenStore) {
    this.#request = request
    this.#store = store
  }

  async getAccessToken(context: SyncContext): Promise<string> {
    const current = this.#current
    if (current !== null && !isRenewalDue(current.renewAt, context)) return current.accessToken
    return this.#joinRenewal(null, context)
  }

  /** Returns another access token than the refused one. */
  async renewAccessToken(refused: string, context: SyncContext): Promise<string> {
    const current = this.#current
    return current === null || current.accessToken === refused
      ? this.#joinRenewal(refused, context)
      : current.accessToken
  }

  /** Resolves when no renewal is in progress. A renewal continues if its caller is aborted: its tokens must be stored. */
  async settle(): Promise<void> {
    await this.#renewing?.promise.catch(() => {})
  }

  /** Concurrent callers share one renewal. */
  async #joinRenewal(refused: string | null, context: SyncContext): Promise<string> {
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

  async #renewOnce(refused: string | null, context: SyncContext): Promise<string> {
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
      return await this.#request(before, context)
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

  #setCurrent(accessToken: string, renewAt: number | null): string {
    this.#current = { accessToken, renewAt }
    return accessToken
  }
}

async function requestConfiguredTokens(
  options: OAuthOptions,
  client: ClientIdentity,
  before: Tokens,
  context: SyncContext,
): Promise<RenewedTokens> {
  const { tokenUrl: url, scope, fields, clientAuth = 'basic' } = options
  const { id: clientId, secret: clientSecret } = client
  const refresh = before.refreshToken ?? client.refreshToken?.reveal() ?? null
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
  return toRenewedTokens(answer, refresh, context)
}

/** A vendor that does not rotate sends no new refresh token, and the old one stays valid. */
export function toRenewedTokens(
  { accessToken, refreshToken, lifetimeMs }: TokenGrant,
  used: string | null,
  { clock }: SyncContext,
): RenewedTokens {
  return {
    accessToken,
    refreshToken: refreshToken ?? used,
    renewAt: lifetimeMs === null ? null : clock.now() + lifetimeMs - Math.min(EXPIRY_MARGIN_MS, lifetimeMs / 2),
    claimedUntil: null,
  }
}

const BEARER = 'Bearer '

function toCredentials(accessToken: string): Credentials {
  return { headers: { authorization: new Secret(`${BEARER}${accessToken}`) }, query: {} }
}

function readAccessToken({ headers }: Credentials): string {
  return headers.authorization?.reveal().slice(BEARER.length) ?? ''
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
