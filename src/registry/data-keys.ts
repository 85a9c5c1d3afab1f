import { SyncError, type Store } from '../contract/index.ts'
import type { KeyRing } from './key-ring.ts'
import { KEY_BYTES, seal, unseal, type RandomBytes } from './seal.ts'
import { unsealText, parseSealedText, sealText } from './sealed-text.ts'
import { required } from '../values/required.ts'

export interface DataKey {
  readonly id: string
  readonly bytes: Buffer
}

/** The keys that encrypt one tenant's states. They are stored wrapped; the unwrapped keys exist only in memory. */
export class DataKeys {
  readonly #store: Store
  readonly #keyRing: KeyRing
  readonly #random: RandomBytes
  #known = new Map<string, DataKey>()
  #newest: DataKey | null = null

  constructor(store: Store, keyRing: KeyRing, random: RandomBytes) {
    this.#store = store
    this.#keyRing = keyRing
    this.#random = random
  }

  /** Null until a key is loaded. */
  get newest(): DataKey | null {
    return this.#newest
  }

  /** The newest key; the first key is created on first use. */
  async getOrCreateCurrent(at: number): Promise<DataKey> {
    if (this.#newest === null) await this.load()
    if (this.#newest === null) await this.add('engine', at)
    return required(this.#newest, 'newest data key')
  }

  async find(id: string): Promise<DataKey | undefined> {
    if (!this.#known.has(id)) await this.load()
    return this.#known.get(id)
  }

  /** Adds a key that encrypts from now on, in every process that loads it; texts of older keys stay readable. */
  async add(actor: string, at: number): Promise<void> {
    const id = `d${this.#random(4).toString('hex')}`
    await this.#assertKeyRingMatches()
    const { id: wrappedBy, bytes } = this.#keyRing.current
    await this.#store.putDataKey(
      {
        id,
        wrappedBy,
        wrapped: seal(bytes, this.#random(KEY_BYTES), buildDataKeyAad(this.#store.tenant, id), this.#random),
      },
      { actor, at },
    )
    await this.load()
  }

  /**
   * A key ring that opens nothing in the store belongs to another store: a key wrapped by it would hide that the right
   * one is missing.
   */
  async #assertKeyRingMatches(): Promise<void> {
    const wrapping = await this.#store.wrappingKeys()
    if (wrapping.length === 0 || wrapping.some((id) => this.#keyRing.find(id) !== undefined)) return
    const have = this.#keyRing.keys.map((key) => key.id).join(', ')
    throw new SyncError(
      'KEYS_MISSING',
      `The states in this store are encrypted with ${wrapping.join(', ')}; this process has ${have}. Nothing was changed.`,
    )
  }

  /** Rewraps the data keys with the ring's current key, one at a time. Idempotent: it can be stopped and restarted. */
  async rewrap(actor: string, at: number): Promise<number> {
    const { current } = this.#keyRing
    let count = 0
    for (const { id, wrappedBy } of await this.#store.dataKeys()) {
      if (wrappedBy === current.id) continue
      const { bytes } = required(await this.find(id), `data key ${id}`)
      const wrapped = seal(current.bytes, bytes, buildDataKeyAad(this.#store.tenant, id), this.#random)
      if (await this.#store.putDataKey({ id, wrappedBy: current.id, wrapped }, { actor, at, replaces: wrappedBy }))
        count++
    }
    return count
  }

  /**
   * Replaces the data keys with a new one and re-encrypts stored texts while syncs continue: the store then refuses
   * texts of an older key. An interrupted rotation is continued by the next, with the key it created. Unused keys are
   * deleted; keys that the audit log needs stay, wrapped by the ring's current key.
   */
  async rotate(
    actor: string,
    at: number,
    progress: (resealed: number) => void = () => {},
  ): Promise<{ resealed: number; removed: readonly string[]; kept: readonly string[] }> {
    const stored = await this.#store.dataKeys()
    const newest = stored.at(-1)
    if (newest === undefined) return { resealed: 0, removed: [], kept: [] }
    const isUnfinished =
      newest.wrappedBy === this.#keyRing.current.id &&
      (await this.#store.sealedTexts({ except: newest.id, limit: 1 })).length > 0
    if (!isUnfinished) await this.add(actor, at)
    await this.load()
    const current = required(this.#newest, 'newest data key')
    const resealed = await this.#resealAll(current, progress)
    const old = (await this.#store.dataKeys()).map(({ id }) => id).filter((id) => id !== current.id)
    const removed: string[] = []
    for (const id of old) if (await this.#store.removeDataKey(id, { actor, at })) removed.push(id)
    await this.load()
    return { resealed, removed, kept: old.filter((id) => !removed.includes(id)) }
  }

  async #resealAll(key: DataKey, progress: (resealed: number) => void): Promise<number> {
    let resealed = 0
    for (;;) {
      const texts = await this.#store.sealedTexts({ except: key.id, limit: RESEAL_BATCH })
      if (texts.length === 0) return resealed
      for (const sealed of texts) {
        const { worker, sync, column, text } = sealed
        const parts = parseSealedText(text)
        const opener = parts === null ? undefined : await this.find(parts.keyId)
        const bytes =
          parts === null || opener === undefined
            ? null
            : unsealText(opener, this.#store.tenant, { worker, sync }, parts)
        if (parts === null || bytes === null)
          throw new SyncError(
            'STATE_UNREADABLE',
            `The stored data of ${sync || 'the cursors'} (${column}) cannot be decrypted. Texts already encrypted with the new key stay; nothing else was changed.`,
          )
        // A text that changed meanwhile was already written with the new key.
        if (
          await this.#store.reseal(
            sealed,
            sealText(key, this.#store.tenant, { worker, sync }, bytes, parts.purpose, this.#random),
          )
        )
          resealed++
      }
      progress(resealed)
    }
  }

  /** Reloads the keys from the store: another process may have added some, or erased the tenant with all of them. */
  async load(): Promise<void> {
    const wrapped = await this.#store.dataKeys()
    const known = wrapped.map((key) => this.#known.get(key.id) ?? this.#unwrap(key.id, key.wrappedBy, key.wrapped))
    this.#known = new Map(known.map((key) => [key.id, key]))
    this.#newest = known.at(-1) ?? null
  }

  #unwrap(id: string, wrappedBy: string, wrapped: string): DataKey {
    const master = this.#keyRing.find(wrappedBy)
    if (master === undefined) {
      const have = this.#keyRing.keys.map((key) => key.id).join(', ')
      throw new SyncError(
        'STATE_UNREADABLE',
        `The states of tenant ${this.#store.tenant} are encrypted with key ${wrappedBy}; this process has ${have}. Nothing was changed.`,
      )
    }
    const bytes = unseal(master.bytes, wrapped, buildDataKeyAad(this.#store.tenant, id))
    if (bytes === null)
      throw new SyncError(
        'STATE_UNREADABLE',
        `Data key ${id} of tenant ${this.#store.tenant} was tampered with: key ${wrappedBy} does not decrypt it. Nothing was changed.`,
      )
    return { id, bytes }
  }
}

const RESEAL_BATCH = 200

function buildDataKeyAad(tenant: string, id: string): string {
  return JSON.stringify(['tidemark data key', 1, tenant, id])
}
