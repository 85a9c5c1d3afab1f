import { randomBytes } from 'node:crypto'
import type { ApiKey, Clock, CursorSecret, Store } from '../contract/index.ts'
import { FeedError } from '../feed/feed-error.ts'
import { CURSOR_LIFE_MS } from '../feed/place.ts'
import { Seal } from '../feed/seal.ts'

const DAY_MS = 24 * 3_600_000
const RENEW_MS = 30 * DAY_MS
/** Another process may have brought a new secret; a cursor that cannot be read is a reason to look, but not more often than this. */
const LOOK_AGAIN_MS = 1_000
const REFRESH_MS = 600_000
/** A new secret seals only after this: by then every process, and every replica that is less behind, can open what it sealed. */
const RIPE_MS = 3_600_000

/** For whoever adds a key: with it comes a secret for the cursors it will be given, since a replica, which may be the first one asked, can make none. */
export async function addApiKey(store: Store, key: Omit<ApiKey, 'tenant'>, by: string): Promise<void> {
  await store.addApiKey(key, by)
  await readSecrets(store, key.createdAt)
}

function readSecrets(store: Store, now: number): Promise<CursorSecret[]> {
  return store.cursorSecrets({ secret: randomBytes(32).toString('hex'), createdAt: now, renewMs: RENEW_MS, keepMs: CURSOR_LIFE_MS + DAY_MS })
}

/** The seal of each tenant, renewed every month; cursors of the one before stay valid for their life. */
export class Seals {
  readonly #clock: Clock
  readonly #seals = new Map<string, { seal: Promise<Seal>; at: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `body` is tried again with the newest secrets when it met a cursor that nobody here sealed. */
  async with<T>(store: Store, body: (seal: Seal) => Promise<T>): Promise<T> {
    try {
      return await body(await this.#of(store, REFRESH_MS))
    } catch (error) {
      if (!(error instanceof FeedError) || error.reason !== 'cursor_invalid') throw error
      return await body(await this.#of(store, LOOK_AGAIN_MS))
    }
  }

  #of(store: Store, ageMax: number): Promise<Seal> {
    const now = this.#clock.now()
    const known = this.#seals.get(store.tenant)
    if (known !== undefined && now - known.at < ageMax) return known.seal
    const seal = readSecrets(store, now).then((secrets) => {
      const sealing = secrets.find(({ createdAt }) => createdAt <= now - RIPE_MS) ?? secrets.at(-1)!
      return new Seal([sealing, ...secrets.filter((known) => known !== sealing)].map(({ secret }) => secret))
    })
    this.#seals.set(store.tenant, { seal, at: now })
    seal.catch(() => this.#seals.delete(store.tenant))
    return seal
  }
}
