import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { ApiKey } from '../contract/index.ts'

/** `tmk_<id>_<secret>`: secret scanners recognise the prefix, the id selects the record, the secret authenticates. */
const KEY_PATTERN = /^tmk_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/

export interface NewApiKeyOptions {
  readonly name: string
  readonly scopes: readonly string[]
  readonly rateLimit: number
  readonly createdAt: number
  readonly endsAt?: number | null
}

/** The text is shown once; only the fields of `key` are stored. */
export function createApiKey({ name, scopes, rateLimit, createdAt, endsAt = null }: NewApiKeyOptions): {
  text: string
  key: Omit<ApiKey, 'tenant'>
} {
  const id = randomBytes(8).toString('hex')
  const secret = randomBytes(32).toString('base64url')
  return {
    text: `tmk_${id}_${secret}`,
    key: { id, name, hash: hash('sha256', secret, 'hex'), scopes, rateLimit, createdAt, endsAt },
  }
}

export function parseApiKey(text: string): { id: string; hash: string } | null {
  const [, id, secret] = KEY_PATTERN.exec(text) ?? []
  return id === undefined || secret === undefined ? null : { id, hash: hash('sha256', secret, 'hex') }
}

/** Takes the same time whichever character differs, and whether or not the key exists. */
export function isKeyValid(key: ApiKey | null, given: string, now: number): key is ApiKey {
  const same = timingSafeEqual(Buffer.from(key?.hash ?? NO_KEY_HASH, 'hex'), Buffer.from(given, 'hex'))
  return same && key !== null && (key.endsAt === null || key.endsAt > now)
}

const NO_KEY_HASH = '0'.repeat(64)

export const DEFAULT_RATE_LIMIT = 1_200

/** `admin` allows everything; `*:read` allows every database and the feed. */
export function allowsScope(scopes: readonly string[], scope: string): boolean {
  if (scopes.includes('admin') || scopes.includes(scope)) return true
  if (scope === 'sync:read') return scopes.includes('sync:write')
  // Connections are no records: a key for every database does not see them.
  if (scope === 'connections:read') return scopes.includes('connections:write')
  return scope.endsWith(':read') && scopes.includes('*:read')
}

/**
 * Scope to read the rows of one database. `sync:read` and `connections:read` are about syncs and connections, so
 * databases of these names need `*:read`.
 */
export function databaseReadScope(database: string): string {
  return database === 'sync' || database === 'connections' ? '*:read' : `${database}:read`
}

const SCOPE_PATTERN = /^(?:admin|sync:write|connections:write|(?:\*|[A-Za-z0-9][A-Za-z0-9_.-]{0,62}):read)$/

export function isScope(text: string): boolean {
  return SCOPE_PATTERN.test(text)
}
