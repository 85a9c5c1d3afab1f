import type { ApiKey, Clock, Store } from '../contract/index.ts'
import { allowsScope, isKeyValid, parseApiKey } from './api-key.ts'
import { HttpError } from './http-error.ts'
import { rateLimitHeaders, RateLimiter, rateLimitError, type RateLimitStatus } from './rate-limiter.ts'

/** The authenticated caller. */
export interface Caller {
  /** The key's id; null for a local caller without a key. */
  readonly id: string | null
  readonly name: string
  readonly scopes: readonly string[]
  /** Bound to the key's tenant: no other data is reachable from here (invariant 10). */
  readonly store: Store
  readonly rateLimit: RateLimitStatus | null
  /** Expiry or revocation time of the key; null for none. */
  readonly endsAt: number | null
}

export interface AccessWatch {
  readonly signal: AbortSignal
  close(): void
}

/** A revoked key is rejected by every process within this time. */
const KEY_CACHE_MS = 1_000
const KEY_CACHE_MAX = 10_000
/** Poll interval for a key while a stream or long poll depends on it. */
const KEY_POLL_MS = 500
/** Invalid keys per minute from one address before it is rate limited. */
const AUTH_FAILURES_MAX = 300

export class Authenticator {
  readonly #store: Store
  readonly #clock: Clock
  readonly #rateLimiter: RateLimiter
  readonly #stopping: AbortSignal
  readonly #stores = new Map<string, Store>()
  /** Streams and long polls by key. */
  readonly #watches = new Map<string, Set<(key: ApiKey | null) => void>>()
  readonly #keyCache = new Map<string, { key: ApiKey | null; until: number }>()

  constructor(store: Store, clock: Clock, stopping: AbortSignal) {
    this.#store = store
    this.#clock = clock
    this.#rateLimiter = new RateLimiter(clock, stopping)
    this.#stopping = stopping
    this.#stores.set(store.tenant, store)
  }

  /** Throws 401 or 429. */
  identify(text: string | undefined, address: string): Caller | Promise<Caller> {
    const given = text === undefined ? null : parseApiKey(text)
    const key = given === null ? null : this.#findKey(given.id)
    if (key instanceof Promise) return key.then((found) => this.#authenticate(text, given, found, address))
    return this.#authenticate(text, given, key, address)
  }

  #authenticate(
    text: string | undefined,
    given: { id: string; hash: string } | null,
    key: ApiKey | null,
    address: string,
  ): Caller {
    const now = this.#clock.now()
    if (given === null || !isKeyValid(key, given.hash, now)) {
      // Only failed attempts are limited: other callers behind the same address may have valid keys.
      const failed = this.#rateLimiter.count(`failed ${address}`, AUTH_FAILURES_MAX)
      if (failed.remaining < 0) throw withRateLimitHeaders(rateLimitError(failed, now), failed)
      throw text === undefined
        ? unauthorizedError('Send a key as `Authorization: Bearer …`. `tidemark keys create` creates one.')
        : keyEndedError()
    }
    const rateLimit = this.countRequest(key)
    if (rateLimit.remaining < 0) throw withRateLimitHeaders(rateLimitError(rateLimit, now), rateLimit)
    return {
      id: key.id,
      name: key.name,
      scopes: key.scopes,
      store: this.#storeOf(key.tenant),
      rateLimit,
      endsAt: key.endsAt,
    }
  }

  /** Returns a valid key from the cache; null for every other key. */
  findCachedKey(text: string): ApiKey | null {
    const given = parseApiKey(text)
    const known = given === null ? undefined : this.#keyCache.get(given.id)
    const now = this.#clock.now()
    return given !== null && known !== undefined && known.until > now && isKeyValid(known.key, given.hash, now)
      ? known.key
      : null
  }

  countRequest({ id, tenant, rateLimit }: ApiKey): RateLimitStatus {
    const store = this.#storeOf(tenant)
    return this.#rateLimiter.count(id, rateLimit, store.isReplica === true ? null : store)
  }

  /** A local caller without a key. */
  localCaller(): Caller {
    return { id: null, name: 'local', scopes: ['admin'], store: this.#store, rateLimit: null, endsAt: null }
  }

  /** An anonymous caller without scopes. */
  anonymousCaller(): Caller {
    return { ...this.localCaller(), name: 'anonymous', scopes: [] }
  }

  /**
   * Reads the store, so that a stream ends once its key is revoked, expired, has lost the scope, or was erased with
   * its tenant.
   */
  async isStillValid({ id }: Caller, scope: string): Promise<boolean> {
    return id === null || this.#mayRead(await this.#loadKey(id, this.#clock.now()), scope)
  }

  /** For streams and long polls: `signal` aborts within a second after the caller loses the scope. */
  watchAccess({ id }: Caller, scope: string): AccessWatch {
    const ended = new AbortController()
    if (id === null) return { signal: ended.signal, close: () => {} }
    const check = (key: ApiKey | null): void => {
      if (!this.#mayRead(key, scope)) ended.abort()
    }
    const checks = this.#watches.get(id)
    if (checks === undefined) {
      this.#watches.set(id, new Set([check]))
      void this.#pollKey(id)
    } else {
      checks.add(check)
    }
    return { signal: ended.signal, close: () => void this.#watches.get(id)?.delete(check) }
  }

  /** One lookup serves all streams of a key. */
  async #pollKey(id: string): Promise<void> {
    const checks = this.#watches.get(id) ?? new Set()
    while (checks.size > 0 && !this.#stopping.aborted) {
      // An unreachable store is retried; the stream cannot read from it either.
      const key = await this.#loadKey(id, this.#clock.now()).catch(() => undefined)
      if (key !== undefined) for (const check of checks) check(key)
      await this.#clock.sleep(KEY_POLL_MS, this.#stopping).catch(() => {})
    }
    this.#watches.delete(id)
  }

  #mayRead(key: ApiKey | null, scope: string): boolean {
    return key !== null && (key.endsAt === null || key.endsAt > this.#clock.now()) && allowsScope(key.scopes, scope)
  }

  /** Synchronous on a cache hit. */
  #findKey(id: string): ApiKey | null | Promise<ApiKey | null> {
    const known = this.#keyCache.get(id)
    return known !== undefined && known.until > this.#clock.now() ? known.key : this.#loadKey(id, this.#clock.now())
  }

  async #loadKey(id: string, now: number): Promise<ApiKey | null> {
    const key = await this.#store.apiKey(id)
    if (this.#keyCache.size >= KEY_CACHE_MAX) this.#keyCache.clear()
    this.#keyCache.set(id, { key, until: now + KEY_CACHE_MS })
    return key
  }

  #storeOf(tenant: string): Store {
    let store = this.#stores.get(tenant)
    if (store === undefined) this.#stores.set(tenant, (store = this.#store.forTenant(tenant)))
    return store
  }
}

/** Also thrown when a key ends during a stream. */
export function keyEndedError(): HttpError {
  return unauthorizedError('The key is invalid, expired or revoked.')
}

function unauthorizedError(message: string): HttpError {
  return new HttpError('UNAUTHORIZED', message, { headers: { 'www-authenticate': 'Bearer' } })
}

function withRateLimitHeaders(error: HttpError, rateLimit: RateLimitStatus): HttpError {
  return new HttpError(error.code, error.message, { headers: { ...error.headers, ...rateLimitHeaders(rateLimit) } })
}
