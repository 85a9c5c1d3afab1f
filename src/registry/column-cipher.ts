import { createHmac, hkdfSync } from 'node:crypto'
import { SyncError, type ColumnKey, type Store } from '../contract/index.ts'
import { required } from '../values/required.ts'
import { KEY_BYTES, seal, unseal, type RandomBytes } from './seal.ts'

/** The format of an encrypted value: `encrypted.1.<column key>.<database and field>.<nonce, ciphertext and tag>`. */
const PREFIX = 'encrypted'
const FORMAT = '1'
export const CIPHERTEXT_PATTERN = /^encrypted\.1\.c[0-9a-f]{8}\.[\w-]+\.[\w-]+$/

/** The column that a value is encrypted for. A ciphertext opens only with the names that it was sealed with. */
export interface CipherColumn {
  readonly database: string
  readonly field: string
}

interface DerivedKeys {
  readonly hash: Buffer
  readonly encrypt: Buffer
  readonly nonce: Buffer
}

/** Hashes and encrypts values of columns with the keys of one tenant. */
export class ColumnCipher {
  readonly #keys: ReadonlyMap<string, DerivedKeys>
  readonly #oldest: DerivedKeys
  readonly #newestId: string

  /** Oldest key first: it hashes, so that hashes stay the same. The newest encrypts, and all of them decrypt. */
  constructor(tenant: string, keys: readonly ColumnKey[]) {
    const oldest = required(keys[0], 'column key')
    this.#keys = new Map(keys.map((key) => [key.id, deriveKeys(key, tenant)]))
    this.#oldest = required(this.#keys.get(oldest.id), 'oldest column key')
    this.#newestId = required(keys.at(-1), 'newest column key').id
  }

  /** HMAC-SHA256 in hexadecimal: equal texts of a tenant have equal hashes, in every database. */
  hash(text: string): string {
    return createHmac('sha256', this.#oldest.hash).update(text).digest('hex')
  }

  /**
   * The same text in the same column of the same record gives the same ciphertext, or every listing would rewrite the
   * row. The nonce covers the record's key, so that equal texts of two records differ.
   */
  encrypt(column: CipherColumn, recordKey: string, text: string): string {
    const keys = required(this.#keys.get(this.#newestId), 'newest column key')
    const aad = buildAad(this.#newestId, column)
    const nonce = createHmac('sha256', keys.nonce)
      .update(JSON.stringify([aad, recordKey, text]))
      .digest()
    const body = seal(keys.encrypt, text, aad, (bytes) => nonce.subarray(0, bytes))
    const location = Buffer.from(JSON.stringify([column.database, column.field])).toString('base64url')
    return [PREFIX, FORMAT, this.#newestId, location, body].join('.')
  }

  /** Null if the text was changed or moved to another tenant, or if its key is gone. */
  decrypt(ciphertext: string): (CipherColumn & { readonly text: string }) | null {
    if (!CIPHERTEXT_PATTERN.test(ciphertext)) return null
    const [, , id = '', location = '', body = ''] = ciphertext.split('.')
    const keys = this.#keys.get(id)
    const column = parseLocation(location)
    if (keys === undefined || column === null) return null
    const bytes = unseal(keys.encrypt, body, buildAad(id, column))
    return bytes === null ? null : { ...column, text: bytes.toString() }
  }
}

/** The cipher of the tenant; its first key is created on first use. */
export async function openColumnCipher(store: Store, by: { actor: string; at: number }): Promise<ColumnCipher> {
  const keys = await store.columnKeys()
  return new ColumnCipher(store.tenant, keys.length > 0 ? keys : await offerKey(store, by))
}

async function offerKey(store: Store, by: { actor: string; at: number }): Promise<ColumnKey[]> {
  if (store.isReplica === true)
    throw new SyncError('STORE_READONLY', `Tenant ${store.tenant} has no column key, and a replica cannot store one.`)
  return store.offerColumnKey(null, by)
}

/** A cipher with a key of its own, for values that are shown and not stored. */
export function createTemporaryCipher(tenant: string, random: RandomBytes): ColumnCipher {
  return new ColumnCipher(tenant, [generateColumnKey(random)])
}

export function generateColumnKey(random: RandomBytes): ColumnKey {
  return { id: `c${random(4).toString('hex')}`, secret: random(KEY_BYTES).toString('hex') }
}

function deriveKeys({ secret }: ColumnKey, tenant: string): DerivedKeys {
  const derive = (use: string): Buffer =>
    Buffer.from(hkdfSync('sha256', Buffer.from(secret, 'hex'), tenant, `tidemark column ${use} 1`, KEY_BYTES))
  return { hash: derive('hash'), encrypt: derive('encrypt'), nonce: derive('nonce') }
}

function parseLocation(text: string): CipherColumn | null {
  try {
    const [database, field] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    return typeof database === 'string' && typeof field === 'string' ? { database, field } : null
  } catch {
    return null
  }
}

function buildAad(keyId: string, { database, field }: CipherColumn): string {
  return JSON.stringify(['tidemark column', FORMAT, keyId, database, field])
}
