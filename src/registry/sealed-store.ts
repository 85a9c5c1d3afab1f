import { hash } from 'node:crypto'
import {
  isSyncError,
  SyncError,
  type BeginResult,
  type Checkpoint,
  type ColumnKey,
  type Commit,
  type CommitOutcome,
  type ConnectionWithCredentials,
  type Inflight,
  type Lease,
  type PartitionRow,
  type SyncStatusRow,
  type StateText,
  type Store,
  type SyncRef,
  type Webhook,
} from '../contract/index.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { generateColumnKey } from './column-cipher.ts'
import { DataKeys, type DataKey } from './data-keys.ts'
import type { KeyRing } from './key-ring.ts'
import type { RandomBytes } from './seal.ts'
import { SEALED_FORMAT, unsealText, parseSealedText, sealText } from './sealed-text.ts'
import { required } from '../values/required.ts'

/** The number of concurrent key replacements to tolerate between reading a key and writing with it. */
const KEY_ATTEMPTS_MAX = 32

/**
 * A store that encrypts states before they are written: in tables, log files and backups they cannot be read, moved to
 * another sync, or rolled back unnoticed. Records are not encrypted, so that users can query them.
 */
export function sealStore(store: Store, keyRing: KeyRing, random: RandomBytes): Store {
  const keys = new DataKeys(store, keyRing, random)
  const context: SealContext = {
    store,
    keys,
    random,
    sealer: new StateSealer(store, keys, random),
    withNewestKey: (write) => withNewestKey(keys, write),
    sealTenantStore: (other) => sealStore(other, keyRing, random),
  }
  const methods = Object.entries(SEAL_RULES)
    .filter(([method]) => store[method as MethodName<Store>] !== undefined)
    .map(([method, rule]) => [
      method,
      rule === 'plain' ? forwardMethod(store, method as MethodName<Store>) : rule(context),
    ])
  return {
    ...(Object.fromEntries(methods) as Pick<Store, MethodName<Store>>),
    tenant: store.tenant,
    isReplica: store.isReplica === true,
    ...(store.supportsSoftDeletes === true && { supportsSoftDeletes: true as const }),
    ...(store.supportsScopedSweeps === true && { supportsScopedSweeps: true as const }),
  }
}

export interface SealContext {
  readonly store: Store
  readonly keys: DataKeys
  readonly random: RandomBytes
  readonly sealer: StateSealer
  withNewestKey<T>(write: () => Promise<T>): Promise<T>
  sealTenantStore(other: Store): Store
}

/** Optional methods too. */
type MethodName<S> = { [M in keyof S]-?: NonNullable<S[M]> extends (...args: never[]) => unknown ? M : never }[keyof S]

/**
 * For every method of a store: `plain` if neither arguments nor results contain a state or a secret, else how it is
 * sealed. A method added to the contract does not compile until it has a rule here.
 */
export type SealRules<S> = { readonly [M in MethodName<S>]: 'plain' | ((context: SealContext) => S[M]) }

export const SEAL_RULES = {
  forTenant:
    ({ store, sealTenantStore }) =>
    (tenant) =>
      sealTenantStore(store.forTenant(tenant)),
  acquire:
    ({ store, keys, sealer }) =>
    async (ref, request) => {
      const result = await store.acquire(ref, request)
      if (result.kind === 'held') return result
      try {
        // A sync that never ran may belong to a tenant that was erased since: texts sealed with its deleted keys can
        // never be opened.
        if (result.checkpoint.version === 0 && result.checkpoint.inflight === null) await keys.load()
        return { ...result, checkpoint: await sealer.openCheckpoint(ref, result.checkpoint, request.forRepair) }
      } catch (error) {
        await store.release(result.lease)
        throw error
      }
    },
  beginCycle:
    ({ store, sealer }) =>
    async (lease, request) => {
      const started = await store.beginCycle(lease, request)
      return started === null ? null : sealer.openBeginResult(lease, started)
    },
  // No await once the key is known: otherwise the next page, already being read, would be prepared before this one is
  // sent.
  commit:
    ({ store, keys, sealer, withNewestKey }) =>
    async (commit) => {
      const send = async (): Promise<CommitOutcome> =>
        store.commit(sealer.sealCommit(commit, keys.newest ?? (await keys.getOrCreateCurrent(commit.at))))
      return sealer.openOutcome(commit.lease.ref, await withNewestKey(send))
    },
  readCheckpoint:
    ({ store, sealer }) =>
    async (ref, options) =>
      sealer.openCheckpoint(ref, await store.readCheckpoint(ref, options), options?.forRepair),
  listSyncStatus:
    ({ store, sealer }) =>
    async (query) => {
      const { syncs, ...rest } = await store.listSyncStatus(query)
      return { ...rest, syncs: await Promise.all(syncs.map((row) => sealer.openSyncStatus(row))) }
    },
  // Cursor secrets are sealed: a reader of a backup could otherwise forge cursors.
  cursorSecrets:
    ({ store, keys, sealer, withNewestKey }) =>
    async (candidate) => {
      await keys.load()
      const secrets = await withNewestKey(async () => {
        // A replica stores no candidate, and may have no key yet to seal one with.
        const secret =
          store.isReplica === true
            ? ''
            : await sealer.seal(TENANT_REF, candidate.secret, CURSOR_SECRET_PURPOSE, candidate.createdAt)
        return store.cursorSecrets({ ...candidate, secret })
      })
      return Promise.all(
        secrets.map(async (known) => ({
          ...known,
          secret: required(await sealer.open(TENANT_REF, known.secret, [CURSOR_SECRET_PURPOSE]), 'cursor secret'),
        })),
      )
    },
  // Column keys are sealed: a reader of a backup could otherwise decrypt columns, or guess what is hashed.
  columnKeys:
    ({ store, sealer }) =>
    async () =>
      Promise.all((await store.columnKeys()).map((key) => sealer.openColumnKey(key))),
  offerColumnKey:
    ({ store, keys, random, sealer, withNewestKey }) =>
    async (given, by) => {
      const { id, secret } = given ?? generateColumnKey(random)
      await keys.load()
      const known = await withNewestKey(async () =>
        store.offerColumnKey({ id, secret: await sealer.seal(TENANT_REF, secret, columnKeyPurpose(id), by.at) }, by),
      )
      return Promise.all(known.map((key) => sealer.openColumnKey(key)))
    },
  // Webhook secrets are sealed: a reader of a backup could otherwise sign messages.
  putWebhook:
    ({ store, keys, sealer, withNewestKey }) =>
    async (settings, cursor, by) => {
      await keys.load()
      await withNewestKey(async () =>
        store.putWebhook(
          {
            ...settings,
            secrets: await sealer.seal(
              toWebhookRef(settings.id),
              settings.secrets,
              WEBHOOK_SECRETS_PURPOSE,
              settings.createdAt,
            ),
          },
          cursor,
          by,
        ),
      )
    },
  rotateWebhook:
    ({ store, keys, sealer, withNewestKey }) =>
    async (id, secrets, by) => {
      await keys.load()
      const stored = (await store.webhooks()).find((webhook) => webhook.id === id)
      if (stored === undefined || (await sealer.openWebhook(stored)).secrets !== by.replaces) return false
      return withNewestKey(async () =>
        store.rotateWebhook(id, await sealer.seal(toWebhookRef(id), secrets, WEBHOOK_SECRETS_PURPOSE, by.at), {
          ...by,
          replaces: stored.secrets,
        }),
      )
    },
  webhookSecrets:
    ({ store, sealer }) =>
    async (claim) =>
      sealer.open(toWebhookRef(claim.id), await store.webhookSecrets(claim), [WEBHOOK_SECRETS_PURPOSE]),
  webhooks:
    ({ store, sealer }) =>
    async () =>
      Promise.all((await store.webhooks()).map((webhook) => sealer.openWebhook(webhook))),
  claimWebhook:
    ({ store, sealer }) =>
    async (id, request) => {
      const claim = await store.claimWebhook(id, request)
      return claim === null ? null : { ...claim, webhook: await sealer.openWebhook(claim.webhook) }
    },
  audit:
    ({ store, sealer }) =>
    async (ref, options) => {
      const entries = await store.audit(ref, options)
      return Promise.all(
        entries.map(async (entry) => ({
          ...entry,
          state: await sealer.open(ref, entry.state, [committedPurpose(entry.version)]),
        })),
      )
    },
  partitions:
    ({ store, sealer }) =>
    async (ref, query) =>
      sealer.openPartitions(ref, await store.partitions(ref, query)),
  partitionStates:
    ({ store, sealer }) =>
    async (ref, keys) =>
      sealer.openPartitions(ref, await store.partitionStates(ref, keys)),
  // Credentials are sealed for their connection and version: a reader of a backup could otherwise use them, and an older
  // refresh token that is put back would revoke the grant.
  putConnection:
    ({ store, keys, sealer, withNewestKey }) =>
    async (write, by) => {
      const { name, credentials, replaces } = write
      if (credentials === undefined) return store.putConnection(write, by)
      const version = (replaces?.credentialsVersion ?? 0) + 1
      await keys.load()
      return withNewestKey(async () =>
        store.putConnection(
          { ...write, credentials: await sealer.sealCredentials(name, credentials, version, by.at) },
          by,
        ),
      )
    },
  swapCredentials:
    ({ store, sealer, withNewestKey }) =>
    async (name, swap) =>
      withNewestKey(async () =>
        store.swapCredentials(name, {
          ...swap,
          credentials: await sealer.sealCredentials(
            name,
            swap.credentials,
            swap.replaces.credentialsVersion + 1,
            swap.at,
          ),
        }),
      ),
  connectionCredentials:
    ({ store, sealer }) =>
    async (name) => {
      const found = await store.connectionCredentials(name)
      return found === null ? null : { ...found, credentials: await sealer.openCredentials(found) }
    },
  // The secrets of a connect session are sealed for its id and version: one session's cannot replace another's.
  addConnectSession:
    ({ store, keys, sealer, withNewestKey }) =>
    async (session, secrets) => {
      await keys.load()
      await withNewestKey(async () =>
        store.addConnectSession(session, await sealer.sealConnectSecrets(session.id, secrets, 1, session.createdAt)),
      )
    },
  moveConnectSession:
    ({ store, keys, sealer, withNewestKey }) =>
    async (id, move) => {
      await keys.load()
      return withNewestKey(async () =>
        store.moveConnectSession(id, {
          ...move,
          secrets: await sealer.sealConnectSecrets(id, move.secrets, move.replaces + 1, move.at),
        }),
      )
    },
  connectSecrets:
    ({ store, sealer }) =>
    async (id) => {
      const found = await store.connectSecrets(id)
      return found === null ? null : { ...found, secrets: await sealer.openConnectSecrets(id, found) }
    },
  // These texts are already sealed, wrapped or chained, and pass through unopened.
  auditChain: 'plain',
  sealedTexts: 'plain',
  reseal: 'plain',
  wrappingKeys: 'plain',
  dataKeys: 'plain',
  putDataKey: 'plain',
  removeDataKey: 'plain',
  // Records, names, times and counts.
  close: 'plain',
  eraseTenant: 'plain',
  renew: 'plain',
  release: 'plain',
  subscribe: 'plain',
  headSequence: 'plain',
  changes: 'plain',
  rows: 'plain',
  row: 'plain',
  history: 'plain',
  databases: 'plain',
  feed: 'plain',
  sequenceBefore: 'plain',
  compact: 'plain',
  syncs: 'plain',
  signalSync: 'plain',
  cycles: 'plain',
  countPartitions: 'plain',
  tenants: 'plain',
  databaseNames: 'plain',
  takeSlots: 'plain',
  lastSlotTimes: 'plain',
  recordPause: 'plain',
  pauses: 'plain',
  cycleTotals: 'plain',
  quarantineEntries: 'plain',
  apiKey: 'plain',
  apiKeys: 'plain',
  addApiKey: 'plain',
  revokeApiKey: 'plain',
  connectSession: 'plain',
  connections: 'plain',
  connection: 'plain',
  setConnectionStatus: 'plain',
  removeConnection: 'plain',
  connectionChanges: 'plain',
  consumers: 'plain',
  putConsumer: 'plain',
  removeConsumer: 'plain',
  countRequests: 'plain',
  editWebhook: 'plain',
  removeWebhook: 'plain',
  restartWebhook: 'plain',
  setWebhookDisabled: 'plain',
  renewWebhook: 'plain',
  releaseWebhook: 'plain',
  recordDeliveries: 'plain',
  deliveries: 'plain',
  claimInbound: 'plain',
  pendingInbound: 'plain',
  settleInbound: 'plain',
  columnRules: 'plain',
  changeColumnRules: 'plain',
  recordReveal: 'plain',
  storeId: 'plain',
  destinations: 'plain',
  claimDestination: 'plain',
  renewDestination: 'plain',
  releaseDestination: 'plain',
  recordDestination: 'plain',
  signalDestination: 'plain',
  removeDestination: 'plain',
  schemaDrift: 'plain',
  rowValues: 'plain',
  searchRows: 'plain',
  columnStatistics: 'plain',
  schema: 'plain',
  beginSchemaChange: 'plain',
  advanceSchemaChange: 'plain',
  beginVerification: 'plain',
  renewVerification: 'plain',
  endVerification: 'plain',
  verifications: 'plain',
  lastVerifications: 'plain',
} satisfies SealRules<Store>

function forwardMethod(store: Store, method: MethodName<Store>): unknown {
  return (...args: readonly unknown[]): unknown => Reflect.apply(required(store[method], method), store, args)
}

/**
 * Retries if another process has replaced the data key since it was read. Processes that open a new store concurrently
 * all create a first one.
 */
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

/** The purpose of a sealed text within its sync. It is authenticated, so that one text cannot replace another. */
type SealPurpose = string

const committedPurpose = (version: number): SealPurpose => `c${version}`
const inflightPurpose = (cycle: number, page: number): SealPurpose => `i${cycle}-${page}`
/**
 * A digest of the key binds the state to its partition. The state is not bound to a page: an older state only makes the
 * source return rows again; see docs/decisions/0025-partitions-are-rows-of-the-registry.md.
 */
const partitionPurpose = (key: string): SealPurpose => `p${hash('sha256', key, 'base64url')}`
const SCOPE_PURPOSE: SealPurpose = 's'
const TIDEMARK_PURPOSE: SealPurpose = 't'
const GUARD_PURPOSE: SealPurpose = 'g'
const CURSOR_SECRET_PURPOSE: SealPurpose = 'cursors'
/** The ref of texts that belong to no sync. */
const TENANT_REF: SyncRef = { worker: '', sync: '' }
const columnKeyPurpose = (id: string): SealPurpose => `column-${id}`
const WEBHOOK_SECRETS_PURPOSE: SealPurpose = 'webhook'
const connectionPurpose = (version: number): SealPurpose => `connection-${version}`
const connectPurpose = (version: number): SealPurpose => `connect-${version}`
const toConnectionRef = (name: string): SyncRef => ({ worker: '', sync: name })
/** The ref of a webhook; no worker has an empty name. */
const toWebhookRef = (id: string): SyncRef => ({ worker: '', sync: id })

class StateSealer {
  readonly #store: Store
  readonly #keys: DataKeys
  readonly #random: RandomBytes

  constructor(store: Store, keys: DataKeys, random: RandomBytes) {
    this.#store = store
    this.#keys = keys
    this.#random = random
  }

  sealCommit(given: Commit, key: DataKey): Commit {
    const {
      transition,
      version,
      lease: { ref },
      partitions = [],
    } = given
    const commit: Commit =
      partitions.length === 0
        ? given
        : {
            ...given,
            partitions: partitions.map((partition) => ({
              ...partition,
              state: this.#sealWith(key, ref, partition.state, partitionPurpose(partition.key)),
            })),
          }
    if (!('state' in transition)) return commit
    const purpose =
      transition.kind === 'continue'
        ? inflightPurpose(transition.cycle, transition.page)
        : committedPurpose(version + 1)
    const state = this.#sealWith(key, ref, transition.state, purpose)
    if (transition.kind === 'set') return { ...commit, transition: { ...transition, state } }
    // A tidemark that is a time is sealed too: for many sources it is the cursor in their state.
    const tidemark = this.#sealWith(key, ref, transition.tidemark, TIDEMARK_PURPOSE)
    const scope = this.#sealWith(key, ref, transition.scope, SCOPE_PURPOSE)
    if (transition.kind === 'complete') return { ...commit, transition: { ...transition, state, tidemark, scope } }
    // Most states are guessable, so even a digest would reveal them.
    return {
      ...commit,
      transition: {
        ...transition,
        state,
        tidemark,
        scope,
        guardState: this.#sealWith(key, ref, transition.guardState, GUARD_PURPOSE),
      },
    }
  }

  async seal(ref: SyncRef, text: string, purpose: SealPurpose, at: number): Promise<string> {
    return sealText(await this.#keys.getOrCreateCurrent(at), this.#store.tenant, ref, text, purpose, this.#random)
  }

  #sealWith(key: DataKey, ref: SyncRef, text: string | null, purpose: SealPurpose): string | null {
    return text === null ? null : sealText(key, this.#store.tenant, ref, text, purpose, this.#random)
  }

  /** `forRepair`: a state that cannot be opened is omitted, because it is about to be replaced. */
  async openCheckpoint(ref: SyncRef, checkpoint: Checkpoint, forRepair = false): Promise<Checkpoint> {
    try {
      return await this.#openCheckpointFields(ref, checkpoint)
    } catch (error) {
      if (!forRepair || !isSyncError(error) || error.code !== 'STATE_UNREADABLE') throw error
      return { ...checkpoint, committed: null, inflight: null, scope: null, tidemark: null }
    }
  }

  async #openCheckpointFields(ref: SyncRef, checkpoint: Checkpoint): Promise<Checkpoint> {
    const { version, committed, inflight } = checkpoint
    return {
      ...checkpoint,
      committed: await this.open(ref, committed, [committedPurpose(version)]),
      inflight: inflight === null ? null : await this.#openInflight(ref, inflight, version),
      scope: await this.open(ref, checkpoint.scope, [SCOPE_PURPOSE]),
      tidemark: await this.#openTidemark(ref, checkpoint.tidemark),
    }
  }

  /** Only the tidemark of a status row is sealed. */
  async openSyncStatus(row: SyncStatusRow): Promise<SyncStatusRow> {
    const { checkpoint } = row
    const tidemark = await this.#openTidemark(row, checkpoint.tidemark)
    return tidemark === checkpoint.tidemark ? row : { ...row, checkpoint: { ...checkpoint, tidemark } }
  }

  async openBeginResult({ ref }: Lease, started: BeginResult): Promise<BeginResult> {
    // Before its first page a cycle uses the committed state, sealed for the committed version.
    const version =
      started.inflight.page === 0 && started.inflight.state !== null
        ? (await this.#store.readCheckpoint(ref)).version
        : 0
    return { ...started, inflight: await this.#openInflight(ref, started.inflight, version) }
  }

  async openOutcome(ref: SyncRef, outcome: CommitOutcome): Promise<CommitOutcome> {
    return outcome.kind === 'conflict'
      ? { ...outcome, checkpoint: await this.openCheckpoint(ref, outcome.checkpoint) }
      : outcome
  }

  openPartitions(ref: SyncRef, rows: readonly PartitionRow[]): Promise<PartitionRow[]> {
    return Promise.all(
      rows.map(async (row) => ({
        ...row,
        state: required(await this.open(ref, row.state, [partitionPurpose(row.key)]), 'state of the partition'),
      })),
    )
  }

  async openColumnKey({ id, secret }: ColumnKey): Promise<ColumnKey> {
    return { id, secret: required(await this.open(TENANT_REF, secret, [columnKeyPurpose(id)]), 'column key') }
  }

  sealCredentials(name: string, text: string, version: number, at: number): Promise<string> {
    return this.seal(toConnectionRef(name), text, connectionPurpose(version), at)
  }

  async openCredentials({ connection: { name, credentialsVersion }, credentials }: ConnectionWithCredentials) {
    const purposes = [connectionPurpose(credentialsVersion)]
    return required(await this.open(toConnectionRef(name), credentials, purposes), 'credentials of the connection')
  }

  sealConnectSecrets(id: string, text: string, version: number, at: number): Promise<string> {
    return this.seal(toConnectionRef(id), text, connectPurpose(version), at)
  }

  async openConnectSecrets(id: string, { version, secrets }: { version: number; secrets: string }): Promise<string> {
    return required(
      await this.open(toConnectionRef(id), secrets, [connectPurpose(version)]),
      'secrets of the connect session',
    )
  }

  async openWebhook(webhook: Webhook): Promise<Webhook> {
    return {
      ...webhook,
      secrets: required(
        await this.open(toWebhookRef(webhook.id), webhook.secrets, [WEBHOOK_SECRETS_PURPOSE]),
        'secrets of the webhook',
      ),
    }
  }

  async #openInflight(ref: SyncRef, inflight: Inflight, version: number): Promise<Inflight> {
    const { cycle, page, state, scope, tidemark, guardState } = inflight
    const purposes = page === 0 ? [committedPurpose(version)] : [inflightPurpose(cycle, page)]
    return {
      ...inflight,
      state: await this.open(ref, state, purposes),
      scope: await this.open(ref, scope, [SCOPE_PURPOSE]),
      tidemark: await this.#openTidemark(ref, tidemark),
      guardState: await this.open(ref, guardState, [GUARD_PURPOSE]),
    }
  }

  /** Older versions did not seal times; those stay plain until they change. */
  async #openTidemark(ref: SyncRef, tidemark: string | null): Promise<string | null> {
    return tidemark === null || canonicalizeInstant(tidemark) !== null
      ? tidemark
      : this.open(ref, tidemark, [TIDEMARK_PURPOSE])
  }

  async open(ref: SyncRef, text: StateText, purposes: readonly SealPurpose[]): Promise<StateText> {
    if (text === null) return null
    const parts = parseSealedText(text)
    const fail = (what: string): SyncError =>
      new SyncError(
        'STATE_UNREADABLE',
        `The stored ${ref.worker === '' ? `secret ${ref.sync}` : `state of ${ref.sync} (worker ${ref.worker})`} ${what}. Nothing was changed.`,
      )
    if (parts === null) throw fail('is not encrypted: it was not written by Tidemark')
    if (parts.format !== SEALED_FORMAT)
      throw fail(`is encrypted in format ${parts.format}, which this version of Tidemark does not support`)
    if (!purposes.includes(parts.purpose)) throw fail('belongs to another version or page: it was rolled back or moved')
    const key = await this.#keys.find(parts.keyId)
    if (key === undefined) throw fail(`is encrypted with data key ${parts.keyId}, which is not in the store`)
    const bytes = unsealText(key, this.#store.tenant, ref, parts)
    if (bytes === null) throw fail('was changed, or belongs to another sync')
    return bytes.toString()
  }
}
