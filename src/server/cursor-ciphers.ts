import { randomBytes } from 'node:crypto'
import type { ApiKey, Clock, CursorSecret, Store } from '../contract/index.ts'
import { FeedError } from '../feed/feed-error.ts'
import { CURSOR_LIFE_MS } from '../feed/feed-cursor.ts'
import { required } from '../values/required.ts'
import { CursorCipher } from '../feed/cursor-cipher.ts'

const DAY_MS = 24 * 3_600_000
const ROTATE_MS = 30 * DAY_MS
/** Another process may have created a new secret, so an undecryptable cursor triggers a reload, at most this often. */
const RELOAD_MIN_MS = 1_000
const REFRESH_MS = 600_000
/**
 * A new secret encrypts only after this delay: by then every process, and every replica with less lag, can decrypt
 * with it.
 */
const ACTIVATION_DELAY_MS = 3_600_000

/**
 * Adds a key and ensures that a cursor secret exists: a replica may serve the first request, and it cannot create one.
 */
export async function addApiKey(store: Store, key: Omit<ApiKey, 'tenant'>, by: string): Promise<void> {
  await store.addApiKey(key, by)
  await loadCursorSecrets(store, key.createdAt)
}

function loadCursorSecrets(store: Store, now: number): Promise<CursorSecret[]> {
  return store.cursorSecrets({
    secret: randomBytes(32).toString('hex'),
    createdAt: now,
    rotateAfterMs: ROTATE_MS,
    retainMs: CURSOR_LIFE_MS + DAY_MS,
  })
}

/** Cursor ciphers by tenant, rotated monthly; cursors of the previous secret stay valid until they expire. */
export class CursorCiphers {
  readonly #clock: Clock
  readonly #ciphers = new Map<string, { cipher: Promise<CursorCipher>; at: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Retries `body` with reloaded secrets if a cursor could not be decrypted. */
  async withCipher<T>(store: Store, body: (cipher: CursorCipher) => Promise<T>): Promise<T> {
    try {
      return await body(await this.#cipherFor(store, REFRESH_MS))
    } catch (error) {
      if (!(error instanceof FeedError) || error.reason !== 'cursor_invalid') throw error
      return await body(await this.#cipherFor(store, RELOAD_MIN_MS))
    }
  }

  #cipherFor(store: Store, ageMax: number): Promise<CursorCipher> {
    const now = this.#clock.now()
    const known = this.#ciphers.get(store.tenant)
    if (known !== undefined && now - known.at < ageMax) return known.cipher
    const cipher = loadCursorSecrets(store, now).then((secrets) => {
      const active =
        secrets.find(({ createdAt }) => createdAt <= now - ACTIVATION_DELAY_MS) ??
        required(secrets.at(-1), 'the cursor secret')
      return new CursorCipher([active, ...secrets.filter((secret) => secret !== active)].map(({ secret }) => secret))
    })
    this.#ciphers.set(store.tenant, { cipher, at: now })
    cipher.catch(() => this.#ciphers.delete(store.tenant))
    return cipher
  }
}
