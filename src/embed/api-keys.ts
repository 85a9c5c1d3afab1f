import { SyncError, type ApiKey, type Store } from '../contract/index.ts'
import { describeValue } from '../config/names.ts'
import { createApiKey, DEFAULT_RATE_LIMIT, isScope } from '../server/api-key.ts'
import { addApiKey } from '../server/cursor-ciphers.ts'
import { systemClock } from '../platform/clock.ts'

/** An API key without its secret. */
export interface ApiKeyInfo extends Pick<ApiKey, 'id' | 'name' | 'scopes' | 'rateLimit'> {
  readonly createdAt: Date
  /** Null if it does not expire. */
  readonly endsAt: Date | null
}

/** The name, the scopes and the limits of a new API key. */
export interface CreateApiKeyOptions {
  readonly tenant?: string
  readonly name: string
  /** Default: `['*:read']`. */
  readonly scopes?: readonly string[]
  /** Requests per minute. */
  readonly rateLimit?: number
  readonly endsAt?: Date
}

const ACTOR = 'program'

/** The API keys of the served feed, per tenant. */
export class ApiKeys {
  readonly #storeOf: (tenant: string | undefined) => Promise<Store>

  constructor(storeOf: (tenant: string | undefined) => Promise<Store>) {
    this.#storeOf = storeOf
  }

  /** The text of the key is returned once: only its hash is stored. */
  async create({
    tenant,
    name,
    scopes = ['*:read'],
    rateLimit = DEFAULT_RATE_LIMIT,
    endsAt,
  }: CreateApiKeyOptions): Promise<ApiKeyInfo & { readonly text: string }> {
    const wrong = scopes.find((scope) => !isScope(scope))
    if (wrong !== undefined)
      throw new SyncError(
        'ARGUMENT_INVALID',
        `${describeValue(wrong)} is not a scope. The scopes are changes:read, <database>:read, *:read, sync:read, sync:write, connections:write and admin.`,
      )
    const { text, key } = createApiKey({
      name,
      scopes,
      rateLimit,
      createdAt: systemClock.now(),
      endsAt: endsAt?.getTime() ?? null,
    })
    await addApiKey(await this.#storeOf(tenant), key, ACTOR)
    return { ...toInfo(key), text }
  }

  async list({ tenant }: { readonly tenant?: string } = {}): Promise<ApiKeyInfo[]> {
    return (await (await this.#storeOf(tenant)).apiKeys()).map(toInfo)
  }

  /** Requests with the key are refused within a second. */
  async revoke(id: string, { tenant }: { readonly tenant?: string } = {}): Promise<void> {
    const store = await this.#storeOf(tenant)
    if (!(await store.apiKeys()).some((key) => key.id === id))
      throw new SyncError('KEY_UNKNOWN', `Tenant ${store.tenant} has no key ${describeValue(id)}.`)
    const at = systemClock.now()
    await store.revokeApiKey(id, at, { actor: ACTOR, at })
  }
}

function toInfo({ id, name, scopes, rateLimit, createdAt, endsAt }: Omit<ApiKey, 'tenant'>): ApiKeyInfo {
  return {
    id,
    name,
    scopes,
    rateLimit,
    createdAt: new Date(createdAt),
    endsAt: endsAt === null ? null : new Date(endsAt),
  }
}
