import type { ApiKey, Clock, Store } from '../contract/index.ts'
import { allows, isKeyValid, parseApiKey } from './api-key.ts'
import { HttpError } from './http-error.ts'
import { rateHeaders, RateLimit, tooMany, type Allowance } from './rate-limit.ts'

/** Who asks, as far as the key tells. */
export interface Caller {
  /** The key's id; for somebody on this machine without a key, none. */
  readonly id: string | null
  readonly name: string
  readonly scopes: readonly string[]
  /** Bound to the key's tenant: nothing else can be reached from here (invariant 10). */
  readonly store: Store
  readonly allowance: Allowance | null
  /** When the key ends; null when nobody has ended it. */
  readonly endsAt: number | null
}

export interface Followed {
  readonly signal: AbortSignal
  close(): void
}

/** A record is asked for again after this, so that an ended key ends everywhere within it. */
const REMEMBER_MS = 1_000
const REMEMBERED_MAX = 10_000
/** How often a key is looked up while a long answer depends on it. */
const FOLLOW_MS = 500
/** Wrong keys from one address before it has to wait. */
const FAILURES_MAX = 300

export class Callers {
  readonly #store: Store
  readonly #clock: Clock
  readonly #limit: RateLimit
  readonly #stopping: AbortSignal
  readonly #stores = new Map<string, Store>()
  /** By key, the long answers that depend on it. */
  readonly #followed = new Map<string, Set<(key: ApiKey | null) => void>>()
  readonly #known = new Map<string, { key: ApiKey | null; until: number }>()

  constructor(store: Store, clock: Clock, stopping: AbortSignal) {
    this.#store = store
    this.#clock = clock
    this.#limit = new RateLimit(clock, stopping)
    this.#stopping = stopping
    this.#stores.set(store.tenant, store)
  }

  /** Throws 401 or 429. */
  identify(text: string | undefined, address: string): Caller | Promise<Caller> {
    const given = text === undefined ? null : parseApiKey(text)
    const key = given === null ? null : this.#find(given.id)
    if (key instanceof Promise) return key.then((found) => this.#judge(text, given, found, address))
    return this.#judge(text, given, key, address)
  }

  #judge(text: string | undefined, given: { id: string; hash: string } | null, key: ApiKey | null, address: string): Caller {
    const now = this.#clock.now()
    if (given === null || !isKeyValid(key, given.hash, now)) {
      // Only who fails has to wait: behind one address there may be others, with keys that are valid.
      const failed = this.#limit.take(`failed ${address}`, FAILURES_MAX)
      if (failed.remaining < 0) throw withRate(tooMany(failed, now), failed)
      throw text === undefined ? unauthorized('Send a key as `Authorization: Bearer …`. `tidemark keys create` makes one.') : keyEnded()
    }
    const allowance = this.charge(key)
    if (allowance.remaining < 0) throw withRate(tooMany(allowance, now), allowance)
    return { id: key.id, name: key.name, scopes: key.scopes, store: this.#storeOf(key.tenant), allowance, endsAt: key.endsAt }
  }

  /** A valid key that was asked about a moment ago; null for all others, whatever the reason. */
  recall(text: string): ApiKey | null {
    const given = parseApiKey(text)
    const known = given === null ? undefined : this.#known.get(given.id)
    const now = this.#clock.now()
    return known !== undefined && known.until > now && isKeyValid(known.key, given!.hash, now) ? known.key : null
  }

  charge({ id, tenant, rateLimit }: ApiKey): Allowance {
    const store = this.#storeOf(tenant)
    return this.#limit.take(id, rateLimit, store.isReplica === true ? null : store)
  }

  /** For whoever is allowed in without a key. */
  local(): Caller {
    return { id: null, name: 'local', scopes: ['admin'], store: this.#store, allowance: null, endsAt: null }
  }

  /** For whoever may be anybody. */
  anybody(): Caller {
    return { ...this.local(), name: 'anybody', scopes: [] }
  }

  /** Asks the store, so that a long answer never goes on after its key was revoked, has expired, lost the scope, or was erased with its tenant. */
  async isStillValid({ id }: Caller, scope: string): Promise<boolean> {
    return id === null || this.#mayRead(await this.#ask(id, this.#clock.now()), scope)
  }

  /** For a long answer: `signal` is aborted within a second after the caller loses the right to it. */
  follow({ id }: Caller, scope: string): Followed {
    const ended = new AbortController()
    if (id === null) return { signal: ended.signal, close: () => {} }
    const look = (key: ApiKey | null): void => {
      if (!this.#mayRead(key, scope)) ended.abort()
    }
    const looks = this.#followed.get(id)
    if (looks === undefined) {
      this.#followed.set(id, new Set([look]))
      void this.#lookAfter(id)
    } else {
      looks.add(look)
    }
    return { signal: ended.signal, close: () => void this.#followed.get(id)?.delete(look) }
  }

  /** One look-up serves all long answers of a key. */
  async #lookAfter(id: string): Promise<void> {
    const looks = this.#followed.get(id)!
    while (looks.size > 0 && !this.#stopping.aborted) {
      // A store that cannot be asked is asked again; the answer itself cannot be read from it either.
      const key = await this.#ask(id, this.#clock.now()).catch(() => undefined)
      if (key !== undefined) for (const look of looks) look(key)
      await this.#clock.sleep(FOLLOW_MS, this.#stopping).catch(() => {})
    }
    this.#followed.delete(id)
  }

  #mayRead(key: ApiKey | null, scope: string): boolean {
    return key !== null && (key.endsAt === null || key.endsAt > this.#clock.now()) && allows(key.scopes, scope)
  }

  /** At once while it is remembered. */
  #find(id: string): ApiKey | null | Promise<ApiKey | null> {
    const known = this.#known.get(id)
    return known !== undefined && known.until > this.#clock.now() ? known.key : this.#ask(id, this.#clock.now())
  }

  async #ask(id: string, now: number): Promise<ApiKey | null> {
    const key = await this.#store.apiKey(id)
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear()
    this.#known.set(id, { key, until: now + REMEMBER_MS })
    return key
  }

  #storeOf(tenant: string): Store {
    let store = this.#stores.get(tenant)
    if (store === undefined) this.#stores.set(tenant, (store = this.#store.forTenant(tenant)))
    return store
  }
}

/** Also when it ends while an answer is under way. */
export function keyEnded(): HttpError {
  return unauthorized('The key is not valid, or has ended.')
}

function unauthorized(message: string): HttpError {
  return new HttpError('UNAUTHORIZED', message, { headers: { 'www-authenticate': 'Bearer' } })
}

function withRate(error: HttpError, allowance: Allowance): HttpError {
  return new HttpError(error.code, error.message, { headers: { ...error.headers, ...rateHeaders(allowance) } })
}
