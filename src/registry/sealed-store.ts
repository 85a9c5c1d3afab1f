import { SyncError, type Begun, type Checkpoint, type Commit, type CommitOutcome, type Inflight, type Lease, type Standing, type StateText, type Store, type SyncRef, type Webhook } from '../contract/index.ts'
import { canonicalInstant } from '../values/instant.ts'
import { DataKeys, type DataKey } from './data-keys.ts'
import type { KeyRing } from './key-ring.ts'
import { seal, unseal, type RandomBytes } from './seal.ts'

/**
 * A store whose states are sealed before they reach it: in its tables, its log files and its backups they cannot be read,
 * moved to another sync, nor put back to an older version without it being noticed. What the source's records hold is not
 * sealed; people want to query it.
 */
export function sealStore(store: Store, ring: KeyRing, random: RandomBytes): Store {
  const keys = new DataKeys(store, ring, random)
  const states = new States(store, keys, random)
  return {
    ...methodsOf(store),
    tenant: store.tenant,
    isReplica: store.isReplica === true,
    forTenant: (tenant) => sealStore(store.forTenant(tenant), ring, random),
    acquire: async (ref, request) => {
      const taken = await store.acquire(ref, request)
      if (taken.kind === 'held') return taken
      try {
        // What never ran may belong to a tenant that was erased since: what is sealed with keys that are gone never opens again.
        if (taken.checkpoint.version === 0 && taken.checkpoint.inflight === null) await keys.load()
        return { ...taken, checkpoint: await states.openCheckpoint(ref, taken.checkpoint) }
      } catch (error) {
        await store.release(taken.lease)
        throw error
      }
    },
    begin: async (lease, request) => {
      const begun = await store.begin(lease, request)
      return begun === null ? null : states.openBegun(lease, begun)
    },
    // Nothing is waited for once the key is known: the next page, already being read, would be prepared before this one is sent off.
    commit: async (commit) => states.openOutcome(commit.lease.ref, await store.commit(states.sealCommit(commit, keys.newest ?? (await keys.current(commit.at))))),
    read: async (ref) => states.openCheckpoint(ref, await store.read(ref)),
    standings: async (query) => {
      const { syncs, ...rest } = await store.standings(query)
      return { ...rest, syncs: await Promise.all(syncs.map((standing) => states.openStanding(standing))) }
    },
    // Whoever could read these in a backup could make cursors of their own.
    cursorSecrets: async (offer) => {
      await keys.load()
      // A replica takes no offer, and has perhaps no key yet to seal one with.
      const secret = store.isReplica === true ? '' : await states.seal(OF_TENANT, offer.secret, CURSOR_SECRET, offer.createdAt)
      const secrets = await store.cursorSecrets({ ...offer, secret })
      return Promise.all(secrets.map(async (known) => ({ ...known, secret: (await states.open(OF_TENANT, known.secret, [CURSOR_SECRET]))! })))
    },
    // Whoever could read these could sign in our name.
    putWebhook: async (settings, place) => {
      await keys.load()
      await store.putWebhook({ ...settings, secrets: await states.seal(ofWebhook(settings.id), settings.secrets, WEBHOOK_SECRETS, settings.createdAt) }, place)
    },
    webhooks: async () => Promise.all((await store.webhooks()).map((webhook) => states.openWebhook(webhook))),
    claimWebhook: async (id, request) => {
      const claim = await store.claimWebhook(id, request)
      return claim === null ? null : { ...claim, webhook: await states.openWebhook(claim.webhook) }
    },
    audit: async (ref, options) => {
      const entries = await store.audit(ref, options)
      return Promise.all(entries.map(async (entry) => ({ ...entry, state: await states.open(ref, entry.state, [committedAt(entry.version)]) })))
    },
  }
}

/** Also of a store that is an instance of a class. */
function methodsOf(store: Store): Store {
  const methods: Record<string, unknown> = {}
  for (let owner: object | null = store; owner !== null && owner !== Object.prototype; owner = Object.getPrototypeOf(owner) as object | null) {
    for (const name of Object.getOwnPropertyNames(owner)) {
      const value = (store as unknown as Record<string, unknown>)[name]
      if (!(name in methods) && typeof value === 'function' && name !== 'constructor') methods[name] = value.bind(store)
    }
  }
  return methods as unknown as Store
}

/** Where a sealed text belongs. It is proven when it is opened, so that none can take another's place. */
type Place = string

const committedAt = (version: number): Place => `c${version}`
const inflightAt = (cycle: number, page: number): Place => `i${cycle}-${page}`
const SCOPE: Place = 's'
const TIDEMARK: Place = 't'
const GUARD: Place = 'g'
const CURSOR_SECRET: Place = 'cursors'
/** What belongs to no sync. */
const OF_TENANT: SyncRef = { worker: '', sync: '' }
const WEBHOOK_SECRETS: Place = 'webhook'
/** No worker has an empty name. */
const ofWebhook = (id: string): SyncRef => ({ worker: '', sync: id })
const PREFIX = 'sealed'
const FORMAT = '1'

class States {
  readonly #store: Store
  readonly #keys: DataKeys
  readonly #random: RandomBytes

  constructor(store: Store, keys: DataKeys, random: RandomBytes) {
    this.#store = store
    this.#keys = keys
    this.#random = random
  }

  sealCommit(commit: Commit, key: DataKey): Commit {
    const { move, version, lease: { ref } } = commit
    if (move.kind === 'abandon' || move.kind === 'replay') return commit
    const place = move.kind === 'continue' ? inflightAt(move.cycle, move.page) : committedAt(version + 1)
    const state = this.#sealWith(key, ref, move.state, place)
    if (move.kind === 'set') return { ...commit, move: { ...move, state } }
    // A time is for everybody to see; the cursor of a source without times is a piece of its state.
    const tidemark = move.tidemark === null || canonicalInstant(move.tidemark) !== null ? move.tidemark : this.#sealWith(key, ref, move.tidemark, TIDEMARK)
    const scope = this.#sealWith(key, ref, move.scope, SCOPE)
    if (move.kind === 'complete') return { ...commit, move: { ...move, state, tidemark, scope } }
    // Few states are so hard to guess that a digest would not tell them.
    return { ...commit, move: { ...move, state, tidemark, scope, guard: this.#sealWith(key, ref, move.guard, GUARD) } }
  }

  async seal(ref: SyncRef, text: string, place: Place, at: number): Promise<string> {
    return this.#sealWith(await this.#keys.current(at), ref, text, place)!
  }

  #sealWith(key: DataKey, ref: SyncRef, text: string | null, place: Place): string | null {
    if (text === null) return null
    return [PREFIX, FORMAT, key.id, place, seal(key.bytes, text, this.#proof(ref, key.id, place), this.#random)].join('.')
  }

  async openCheckpoint(ref: SyncRef, checkpoint: Checkpoint): Promise<Checkpoint> {
    const { version, committed, inflight } = checkpoint
    return {
      ...checkpoint,
      committed: await this.open(ref, committed, [committedAt(version)]),
      inflight: inflight === null ? null : await this.#openInflight(ref, inflight, version),
      scope: await this.open(ref, checkpoint.scope, [SCOPE]),
      tidemark: await this.#openTidemark(ref, checkpoint.tidemark),
    }
  }

  /** Only what is a cursor has to be opened: of thousands of syncs that have times nothing is. */
  async openStanding(standing: Standing): Promise<Standing> {
    const { checkpoint } = standing
    const tidemark = await this.#openTidemark(standing, checkpoint.tidemark)
    return tidemark === checkpoint.tidemark ? standing : { ...standing, checkpoint: { ...checkpoint, tidemark } }
  }

  async openBegun({ ref }: Lease, begun: Begun): Promise<Begun> {
    // Before its first page a cycle stands on what was committed, sealed for the version that it has.
    const version = begun.inflight.page === 0 && begun.inflight.state !== null ? (await this.#store.read(ref)).version : 0
    return { ...begun, inflight: await this.#openInflight(ref, begun.inflight, version) }
  }

  async openOutcome(ref: SyncRef, outcome: CommitOutcome): Promise<CommitOutcome> {
    return outcome.kind === 'conflict' ? { ...outcome, checkpoint: await this.openCheckpoint(ref, outcome.checkpoint) } : outcome
  }

  async openWebhook(webhook: Webhook): Promise<Webhook> {
    return { ...webhook, secrets: (await this.open(ofWebhook(webhook.id), webhook.secrets, [WEBHOOK_SECRETS]))! }
  }

  async #openInflight(ref: SyncRef, inflight: Inflight, version: number): Promise<Inflight> {
    const { cycle, page, state, scope, tidemark, guard } = inflight
    const places = page === 0 ? [committedAt(version)] : [inflightAt(cycle, page)]
    return {
      ...inflight,
      state: await this.open(ref, state, places),
      scope: await this.open(ref, scope, [SCOPE]),
      tidemark: await this.#openTidemark(ref, tidemark),
      guard: await this.open(ref, guard, [GUARD]),
    }
  }

  async #openTidemark(ref: SyncRef, tidemark: string | null): Promise<string | null> {
    return tidemark === null || canonicalInstant(tidemark) !== null ? tidemark : this.open(ref, tidemark, [TIDEMARK])
  }

  async open(ref: SyncRef, text: StateText, places: readonly Place[]): Promise<StateText> {
    if (text === null) return null
    const [prefix, format, keyId, place, body, ...rest] = text.split('.')
    const fail = (what: string): SyncError => new SyncError('STATE_UNREADABLE', `The stored state of ${ref.sync} (worker ${ref.worker}) ${what}. Nothing was changed.`)
    if (prefix !== PREFIX || keyId === undefined || place === undefined || body === undefined || rest.length > 0) throw fail('is not sealed: something other than tidemark wrote it')
    if (format !== FORMAT) throw fail(`is sealed in format ${format}, which this tidemark does not know`)
    if (!places.includes(place)) throw fail('belongs to another moment: it was put back or moved')
    const key = await this.#keys.find(keyId)
    if (key === undefined) throw fail(`is sealed with data key ${keyId}, which is not in the store`)
    const bytes = unseal(key.bytes, body, this.#proof(ref, keyId, place))
    if (bytes === null) throw fail('was changed, or belongs to another sync')
    return bytes.toString()
  }

  #proof({ worker, sync }: SyncRef, keyId: string, place: Place): string {
    return JSON.stringify(['tidemark state', FORMAT, this.#store.tenant, worker, sync, keyId, place])
  }
}
