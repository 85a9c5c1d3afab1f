import { isSyncError, SyncError, type Begun, type Checkpoint, type Commit, type CommitOutcome, type Inflight, type Lease, type Standing, type StateText, type Store, type SyncRef, type Webhook } from '../contract/index.ts'
import { canonicalInstant } from '../values/instant.ts'
import { DataKeys, type DataKey } from './data-keys.ts'
import type { KeyRing } from './key-ring.ts'
import type { RandomBytes } from './seal.ts'
import { FORMAT, openText, partsOf, sealText } from './sealed-text.ts'

/** As many processes may replace the key between reading it and writing with it. */
const KEY_ATTEMPTS_MAX = 32

/**
 * A store whose states are sealed before they reach it: in its tables, its log files and its backups they cannot be read,
 * moved to another sync, nor put back to an older version without it being noticed. What the source's records hold is not
 * sealed; people want to query it.
 */
export function sealStore(store: Store, ring: KeyRing, random: RandomBytes): Store {
  const keys = new DataKeys(store, ring, random)
  const sealing: Sealing = {
    store, keys, states: new States(store, keys, random), withNewestKey: (write) => withNewestKey(keys, write), sealOther: (other) => sealStore(other, ring, random),
  }
  const methods = Object.entries(SEAL_RULES).map(([method, rule]) => [method, rule === 'plain' ? passOn(store, method) : rule(sealing)])
  return { ...(Object.fromEntries(methods) as Pick<Store, MethodOf<Store>>), tenant: store.tenant, isReplica: store.isReplica === true, ...(store.keepsDeleted === true && { keepsDeleted: true as const }) }
}

export interface Sealing {
  readonly store: Store
  readonly keys: DataKeys
  readonly states: States
  withNewestKey<T>(write: () => Promise<T>): Promise<T>
  sealOther(other: Store): Store
}

type MethodOf<S> = { [M in keyof S]-?: S[M] extends (...args: never[]) => unknown ? M : never }[keyof S]

/**
 * For every method of a store: `plain` when neither its arguments nor its answers carry a state or a secret, else how it is
 * sealed. A method that is added to the contract does not compile until it has its rule here.
 */
export type SealRules<S> = { readonly [M in MethodOf<S>]: 'plain' | ((sealing: Sealing) => S[M]) }

export const SEAL_RULES = {
  forTenant: ({ store, sealOther }) => (tenant) => sealOther(store.forTenant(tenant)),
  acquire: ({ store, keys, states }) => async (ref, request) => {
    const taken = await store.acquire(ref, request)
    if (taken.kind === 'held') return taken
    try {
      // What never ran may belong to a tenant that was erased since: what is sealed with keys that are gone never opens again.
      if (taken.checkpoint.version === 0 && taken.checkpoint.inflight === null) await keys.load()
      return { ...taken, checkpoint: await states.openCheckpoint(ref, taken.checkpoint, request.forRepair) }
    } catch (error) {
      await store.release(taken.lease)
      throw error
    }
  },
  begin: ({ store, states }) => async (lease, request) => {
    const begun = await store.begin(lease, request)
    return begun === null ? null : states.openBegun(lease, begun)
  },
  // Nothing is waited for once the key is known: the next page, already being read, would be prepared before this one is sent off.
  commit: ({ store, keys, states, withNewestKey }) => async (commit) => {
    const send = async (): Promise<CommitOutcome> => store.commit(states.sealCommit(commit, keys.newest ?? (await keys.current(commit.at))))
    return states.openOutcome(commit.lease.ref, await withNewestKey(send))
  },
  read: ({ store, states }) => async (ref, options) => states.openCheckpoint(ref, await store.read(ref, options), options?.forRepair),
  standings: ({ store, states }) => async (query) => {
    const { syncs, ...rest } = await store.standings(query)
    return { ...rest, syncs: await Promise.all(syncs.map((standing) => states.openStanding(standing))) }
  },
  // Whoever could read these in a backup could make cursors of their own.
  cursorSecrets: ({ store, keys, states, withNewestKey }) => async (offer) => {
    await keys.load()
    const secrets = await withNewestKey(async () => {
      // A replica takes no offer, and has perhaps no key yet to seal one with.
      const secret = store.isReplica === true ? '' : await states.seal(OF_TENANT, offer.secret, CURSOR_SECRET, offer.createdAt)
      return store.cursorSecrets({ ...offer, secret })
    })
    return Promise.all(secrets.map(async (known) => ({ ...known, secret: (await states.open(OF_TENANT, known.secret, [CURSOR_SECRET]))! })))
  },
  // Whoever could read these could sign in our name.
  putWebhook: ({ store, keys, states, withNewestKey }) => async (settings, place, by) => {
    await keys.load()
    await withNewestKey(async () => store.putWebhook({ ...settings, secrets: await states.seal(ofWebhook(settings.id), settings.secrets, WEBHOOK_SECRETS, settings.createdAt) }, place, by))
  },
  rotateWebhook: ({ store, keys, states, withNewestKey }) => async (id, secrets, by) => {
    await keys.load()
    const stored = (await store.webhooks()).find((webhook) => webhook.id === id)
    if (stored === undefined || (await states.openWebhook(stored)).secrets !== by.replaces) return false
    return withNewestKey(async () => store.rotateWebhook(id, await states.seal(ofWebhook(id), secrets, WEBHOOK_SECRETS, by.at), { ...by, replaces: stored.secrets }))
  },
  webhookSecrets: ({ store, states }) => async (claim) => states.open(ofWebhook(claim.id), await store.webhookSecrets(claim), [WEBHOOK_SECRETS]),
  webhooks: ({ store, states }) => async () => Promise.all((await store.webhooks()).map((webhook) => states.openWebhook(webhook))),
  claimWebhook: ({ store, states }) => async (id, request) => {
    const claim = await store.claimWebhook(id, request)
    return claim === null ? null : { ...claim, webhook: await states.openWebhook(claim.webhook) }
  },
  audit: ({ store, states }) => async (ref, options) => {
    const entries = await store.audit(ref, options)
    return Promise.all(entries.map(async (entry) => ({ ...entry, state: await states.open(ref, entry.state, [committedAt(entry.version)]) })))
  },
  // Texts of these are sealed, wrapped or chained already, and are carried unopened.
  trail: 'plain',
  sealedTexts: 'plain',
  reseal: 'plain',
  wrappingKeys: 'plain',
  dataKeys: 'plain',
  putDataKey: 'plain',
  removeDataKey: 'plain',
  // The source's records, names, times and counts.
  close: 'plain',
  erase: 'plain',
  renew: 'plain',
  release: 'plain',
  listen: 'plain',
  position: 'plain',
  changes: 'plain',
  rows: 'plain',
  row: 'plain',
  history: 'plain',
  databases: 'plain',
  feed: 'plain',
  sequenceBefore: 'plain',
  compact: 'plain',
  syncs: 'plain',
  signal: 'plain',
  cycles: 'plain',
  tenants: 'plain',
  databaseNames: 'plain',
  takeSlots: 'plain',
  pacers: 'plain',
  notePause: 'plain',
  pauses: 'plain',
  quarantined: 'plain',
  apiKey: 'plain',
  apiKeys: 'plain',
  addApiKey: 'plain',
  endApiKey: 'plain',
  consumers: 'plain',
  putConsumer: 'plain',
  removeConsumer: 'plain',
  countRequests: 'plain',
  editWebhook: 'plain',
  removeWebhook: 'plain',
  restartWebhook: 'plain',
  switchWebhook: 'plain',
  renewWebhook: 'plain',
  releaseWebhook: 'plain',
  noteDeliveries: 'plain',
  deliveries: 'plain',
  claimInbound: 'plain',
  keptInbound: 'plain',
  settleInbound: 'plain',
  schemaDrift: 'plain',
  schema: 'plain',
  beginSchemaChange: 'plain',
  advanceSchemaChange: 'plain',
} satisfies SealRules<Store>

function passOn(store: Store, method: string): unknown {
  return (...args: readonly unknown[]) => (store as unknown as Record<string, (...args: readonly unknown[]) => unknown>)[method]!(...args)
}

/** Again when another process has replaced the data key since it was read. Processes that open a new store all make a first one. */
async function withNewestKey<T>(keys: DataKeys, write: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write()
    } catch (error) {
      if (!isSyncError(error) || error.code !== 'DATA_KEY_REPLACED' || attempt === KEY_ATTEMPTS_MAX) throw error
      await keys.load()
    }
  }
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
    // Also a time: for many sources it is the very cursor of their state.
    const tidemark = this.#sealWith(key, ref, move.tidemark, TIDEMARK)
    const scope = this.#sealWith(key, ref, move.scope, SCOPE)
    if (move.kind === 'complete') return { ...commit, move: { ...move, state, tidemark, scope } }
    // Few states are so hard to guess that a digest would not tell them.
    return { ...commit, move: { ...move, state, tidemark, scope, guard: this.#sealWith(key, ref, move.guard, GUARD) } }
  }

  async seal(ref: SyncRef, text: string, place: Place, at: number): Promise<string> {
    return this.#sealWith(await this.#keys.current(at), ref, text, place)!
  }

  #sealWith(key: DataKey, ref: SyncRef, text: string | null, place: Place): string | null {
    return text === null ? null : sealText(key, this.#store.tenant, ref, text, place, this.#random)
  }

  /** `forRepair`: a state that cannot be opened is left out, because it is about to be replaced. */
  async openCheckpoint(ref: SyncRef, checkpoint: Checkpoint, forRepair = false): Promise<Checkpoint> {
    try {
      return await this.#openWhole(ref, checkpoint)
    } catch (error) {
      if (!forRepair || !isSyncError(error) || error.code !== 'STATE_UNREADABLE') throw error
      return { ...checkpoint, committed: null, inflight: null, scope: null, tidemark: null }
    }
  }

  async #openWhole(ref: SyncRef, checkpoint: Checkpoint): Promise<Checkpoint> {
    const { version, committed, inflight } = checkpoint
    return {
      ...checkpoint,
      committed: await this.open(ref, committed, [committedAt(version)]),
      inflight: inflight === null ? null : await this.#openInflight(ref, inflight, version),
      scope: await this.open(ref, checkpoint.scope, [SCOPE]),
      tidemark: await this.#openTidemark(ref, checkpoint.tidemark),
    }
  }

  /** Of an outline only the tidemark is sealed. */
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

  /** Times were not sealed before, and stay as they are until they move. */
  async #openTidemark(ref: SyncRef, tidemark: string | null): Promise<string | null> {
    return tidemark === null || canonicalInstant(tidemark) !== null ? tidemark : this.open(ref, tidemark, [TIDEMARK])
  }

  async open(ref: SyncRef, text: StateText, places: readonly Place[]): Promise<StateText> {
    if (text === null) return null
    const parts = partsOf(text)
    const fail = (what: string): SyncError => new SyncError('STATE_UNREADABLE', `The stored state of ${ref.sync} (worker ${ref.worker}) ${what}. Nothing was changed.`)
    if (parts === null) throw fail('is not sealed: something other than tidemark wrote it')
    if (parts.format !== FORMAT) throw fail(`is sealed in format ${parts.format}, which this tidemark does not know`)
    if (!places.includes(parts.place)) throw fail('belongs to another moment: it was put back or moved')
    const key = await this.#keys.find(parts.keyId)
    if (key === undefined) throw fail(`is sealed with data key ${parts.keyId}, which is not in the store`)
    const bytes = openText(key, this.#store.tenant, ref, parts)
    if (bytes === null) throw fail('was changed, or belongs to another sync')
    return bytes.toString()
  }
}
