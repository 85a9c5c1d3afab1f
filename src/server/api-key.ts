import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { ApiKey } from '../contract/index.ts'

/** `tmk_<id>_<secret>`: the prefix lets scanners find a key that leaked, the id finds its record, the secret proves it. */
const KEY_PATTERN = /^tmk_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/

export interface NewApiKeyOptions {
  readonly name: string
  readonly scopes: readonly string[]
  readonly rateLimit: number
  readonly createdAt: number
  readonly endsAt?: number | null
}

/** The text is shown once; only what is in `key` is kept. */
export function createApiKey({ name, scopes, rateLimit, createdAt, endsAt = null }: NewApiKeyOptions): { text: string; key: Omit<ApiKey, 'tenant'> } {
  const id = randomBytes(8).toString('hex')
  const secret = randomBytes(32).toString('base64url')
  return { text: `tmk_${id}_${secret}`, key: { id, name, hash: hash('sha256', secret, 'hex'), scopes, rateLimit, createdAt, endsAt } }
}

export function parseApiKey(text: string): { id: string; hash: string } | null {
  const [, id, secret] = KEY_PATTERN.exec(text) ?? []
  return id === undefined || secret === undefined ? null : { id, hash: hash('sha256', secret, 'hex') }
}

/** In the same time whether the first or the last character differs, or the key does not exist. */
export function isKeyValid(key: ApiKey | null, given: string, now: number): key is ApiKey {
  const same = timingSafeEqual(Buffer.from(key?.hash ?? NO_KEY_HASH, 'hex'), Buffer.from(given, 'hex'))
  return same && key !== null && (key.endsAt === null || key.endsAt > now)
}

const NO_KEY_HASH = '0'.repeat(64)

export const DEFAULT_RATE_LIMIT = 1_200

/** `admin` may do everything; `*:read` reads every database and the feed. */
export function allowsScope(scopes: readonly string[], scope: string): boolean {
  if (scopes.includes('admin') || scopes.includes(scope)) return true
  if (scope === 'sync:read') return scopes.includes('sync:write')
  return scope.endsWith(':read') && scopes.includes('*:read')
}

/** To read the rows of one database. `sync:read` is about the syncs, so a database of that name needs more. */
export function databaseReadScope(database: string): string {
  return database === 'sync' ? '*:read' : `${database}:read`
}

const SCOPE_PATTERN = /^(?:admin|sync:write|(?:\*|[A-Za-z0-9][A-Za-z0-9_.-]{0,62}):read)$/

export function isScope(text: string): boolean {
  return SCOPE_PATTERN.test(text)
}
