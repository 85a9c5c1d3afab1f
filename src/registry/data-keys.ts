import { SyncError, type Store } from '../contract/index.ts'
import type { KeyRing } from './key-ring.ts'
import { KEY_BYTES, seal, unseal, type RandomBytes } from './seal.ts'

export interface DataKey {
  readonly id: string
  readonly bytes: Buffer
}

/** The keys that seal one tenant's states. They live in the store, wrapped; unwrapped they are only ever in memory. */
export class DataKeys {
  readonly #store: Store
  readonly #ring: KeyRing
  readonly #random: RandomBytes
  #known = new Map<string, DataKey>()
  #newest: DataKey | null = null

  constructor(store: Store, ring: KeyRing, random: RandomBytes) {
    this.#store = store
    this.#ring = ring
    this.#random = random
  }

  /** Null until one was asked for. */
  get newest(): DataKey | null {
    return this.#newest
  }

  /** The newest; the first is made when it is needed, and not before. */
  async current(at: number): Promise<DataKey> {
    if (this.#newest === null) await this.load()
    if (this.#newest === null) await this.add('engine', at)
    return this.#newest!
  }

  async find(id: string): Promise<DataKey | undefined> {
    if (!this.#known.has(id)) await this.load()
    return this.#known.get(id)
  }

  /** Seals from now on, in every process that hears of it; what the others sealed stays readable. */
  async add(actor: string, at: number): Promise<void> {
    const id = `d${this.#random(4).toString('hex')}`
    const { id: wrappedBy, bytes } = this.#ring.current
    await this.#store.putDataKey({ id, wrappedBy, wrapped: seal(bytes, this.#random(KEY_BYTES), placeOf(this.#store.tenant, id), this.#random) }, { actor, at })
    await this.load()
  }

  /** Wraps what another key wraps with the ring's current one, one at a time: to be stopped and begun again at will. */
  async rewrap(actor: string, at: number): Promise<number> {
    const { current } = this.#ring
    let count = 0
    for (const { id, wrappedBy } of await this.#store.dataKeys()) {
      if (wrappedBy === current.id) continue
      const { bytes } = (await this.find(id))!
      const wrapped = seal(current.bytes, bytes, placeOf(this.#store.tenant, id), this.#random)
      if (await this.#store.putDataKey({ id, wrappedBy: current.id, wrapped }, { actor, at, replaces: wrappedBy })) count++
    }
    return count
  }

  /** What the store has now: another process may have added some, or erased the tenant and all of them. */
  async load(): Promise<void> {
    const wrapped = await this.#store.dataKeys()
    const known = wrapped.map((key) => this.#known.get(key.id) ?? this.#unwrap(key.id, key.wrappedBy, key.wrapped))
    this.#known = new Map(known.map((key) => [key.id, key]))
    this.#newest = known.at(-1) ?? null
  }

  #unwrap(id: string, wrappedBy: string, wrapped: string): DataKey {
    const master = this.#ring.find(wrappedBy)
    if (master === undefined) {
      const have = this.#ring.keys.map((key) => key.id).join(', ')
      throw new SyncError('STATE_UNREADABLE', `The states of tenant ${this.#store.tenant} are sealed with key ${wrappedBy}; this process has ${have}. Nothing was changed.`)
    }
    const bytes = unseal(master.bytes, wrapped, placeOf(this.#store.tenant, id))
    if (bytes === null) throw new SyncError('STATE_UNREADABLE', `Data key ${id} of tenant ${this.#store.tenant} was tampered with: key ${wrappedBy} does not open it. Nothing was changed.`)
    return { id, bytes }
  }
}

function placeOf(tenant: string, id: string): string {
  return JSON.stringify(['tidemark data key', 1, tenant, id])
}
