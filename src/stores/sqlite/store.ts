import { Worker } from 'node:worker_threads'
import { SyncError, type ErrorCode, type FeedQuery, type Store } from '../../contract/index.ts'
import { Connection, findSession, openSession, type ConnectionOptions } from './connection.ts'
import { Ledger } from './ledger.ts'
import { packCommit } from './packing.ts'
import type { Answer, Call, LedgerMethod } from './thread.ts'

export interface SqliteStoreOptions extends ConnectionOptions {
  readonly tenant?: string
  /**
   * Land in a thread of its own: reading the next page and landing this one then share no core, and a slow disk does not
   * hold up the event loop. The default for a file; a store in memory stays where it is.
   */
  readonly thread?: boolean
}

/** Opens, and on first use makes, a store in one SQLite file. */
export async function openSqliteStore({ tenant = 'default', thread, ...options }: SqliteStoreOptions): Promise<Store> {
  if (!(thread ?? options.file !== ':memory:') || !CAN_THREAD) {
    const connection = new Connection(options)
    return bindStore(tenant, inThisThread(connection))
  }
  const calls = new ThreadCalls(options)
  const store = bindStore(tenant, calls)
  // Opens the file, or says why it cannot.
  await store.position().catch(async (error: unknown) => {
    await store.close().catch(() => {})
    throw error
  })
  return store
}

/** A thread can only be started from compiled code. */
const CAN_THREAD = import.meta.url.endsWith('.js')

/** The way to the ledgers, in this thread or another. */
interface LedgerCalls {
  call<M extends LedgerMethod>(tenant: string, method: M, ...args: Parameters<Ledger[M]>): Promise<ReturnType<Ledger[M]>>
  close(): Promise<void>
}

function bindStore(tenant: string, calls: LedgerCalls): Store {
  return {
    tenant,
    forTenant: (other) => bindStore(other, calls),
    tenants: (...args) => calls.call(tenant, 'tenants', ...args),
    erase: (...args) => calls.call(tenant, 'erase', ...args),
    close: () => calls.close(),
    acquire: (...args) => calls.call(tenant, 'acquire', ...args),
    renew: (...args) => calls.call(tenant, 'renew', ...args),
    release: (...args) => calls.call(tenant, 'release', ...args),
    begin: (...args) => calls.call(tenant, 'begin', ...args),
    commit: (...args) => calls.call(tenant, 'commit', ...args),
    read: (...args) => calls.call(tenant, 'read', ...args),
    standings: (...args) => calls.call(tenant, 'standings', ...args),
    // Whoever writes may be another process, and a file tells nobody. To ask costs nothing while nothing was written.
    listen: () => ({ add: () => {}, close: () => Promise.resolve() }),
    syncs: (...args) => calls.call(tenant, 'syncs', ...args),
    signal: (...args) => calls.call(tenant, 'signal', ...args),
    audit: (...args) => calls.call(tenant, 'audit', ...args),
    trail: (...args) => calls.call(tenant, 'trail', ...args),
    wrappingKeys: (...args) => calls.call(tenant, 'wrappingKeys', ...args),
    dataKeys: (...args) => calls.call(tenant, 'dataKeys', ...args),
    putDataKey: (...args) => calls.call(tenant, 'putDataKey', ...args),
    sealedTexts: (...args) => calls.call(tenant, 'sealedTexts', ...args),
    reseal: (...args) => calls.call(tenant, 'reseal', ...args),
    removeDataKey: (...args) => calls.call(tenant, 'removeDataKey', ...args),
    cycles: (...args) => calls.call(tenant, 'cycles', ...args),
    takeSlots: (...args) => calls.call(tenant, 'takeSlots', ...args),
    pacers: (...args) => calls.call(tenant, 'pacers', ...args),
    notePause: (...args) => calls.call(tenant, 'notePause', ...args),
    pauses: (...args) => calls.call(tenant, 'pauses', ...args),
    position: (...args) => calls.call(tenant, 'position', ...args),
    changes: (...args) => calls.call(tenant, 'changes', ...args),
    rows: (...args) => calls.call(tenant, 'rows', ...args),
    row: (...args) => calls.call(tenant, 'row', ...args),
    history: (...args) => calls.call(tenant, 'history', ...args),
    databases: (...args) => calls.call(tenant, 'databases', ...args),
    databaseNames: (...args) => calls.call(tenant, 'databaseNames', ...args),
    quarantined: (...args) => calls.call(tenant, 'quarantined', ...args),
    feed: (...args) => calls.call(tenant, 'feed', ...args),
    sequenceBefore: (...args) => calls.call(tenant, 'sequenceBefore', ...args),
    compact: (...args) => calls.call(tenant, 'compact', ...args),
    cursorSecrets: (...args) => calls.call(tenant, 'cursorSecrets', ...args),
    apiKey: (...args) => calls.call(tenant, 'apiKey', ...args),
    apiKeys: (...args) => calls.call(tenant, 'apiKeys', ...args),
    addApiKey: (...args) => calls.call(tenant, 'addApiKey', ...args),
    endApiKey: (...args) => calls.call(tenant, 'endApiKey', ...args),
    consumers: (...args) => calls.call(tenant, 'consumers', ...args),
    putConsumer: (...args) => calls.call(tenant, 'putConsumer', ...args),
    removeConsumer: (...args) => calls.call(tenant, 'removeConsumer', ...args),
    countRequests: (...args) => calls.call(tenant, 'countRequests', ...args),
    webhooks: (...args) => calls.call(tenant, 'webhooks', ...args),
    putWebhook: (...args) => calls.call(tenant, 'putWebhook', ...args),
    editWebhook: (...args) => calls.call(tenant, 'editWebhook', ...args),
    rotateWebhook: (...args) => calls.call(tenant, 'rotateWebhook', ...args),
    removeWebhook: (...args) => calls.call(tenant, 'removeWebhook', ...args),
    restartWebhook: (...args) => calls.call(tenant, 'restartWebhook', ...args),
    switchWebhook: (...args) => calls.call(tenant, 'switchWebhook', ...args),
    claimWebhook: (...args) => calls.call(tenant, 'claimWebhook', ...args),
    renewWebhook: (...args) => calls.call(tenant, 'renewWebhook', ...args),
    releaseWebhook: (...args) => calls.call(tenant, 'releaseWebhook', ...args),
    webhookSecrets: (...args) => calls.call(tenant, 'webhookSecrets', ...args),
    noteDeliveries: (...args) => calls.call(tenant, 'noteDeliveries', ...args),
    deliveries: (...args) => calls.call(tenant, 'deliveries', ...args),
    claimInbound: (...args) => calls.call(tenant, 'claimInbound', ...args),
    keptInbound: (...args) => calls.call(tenant, 'keptInbound', ...args),
    settleInbound: (...args) => calls.call(tenant, 'settleInbound', ...args),
  }
}

function inThisThread(connection: Connection): LedgerCalls {
  const ledgers = new Map<string, Ledger>()
  return {
    async call(tenant, method, ...args) {
      let ledger = ledgers.get(tenant)
      if (ledger === undefined) ledgers.set(tenant, (ledger = new Ledger(openSession(connection, tenant))))
      return (ledger[method] as (...args: readonly unknown[]) => never)(...args)
    },
    async close() {
      connection.close()
    },
  }
}

class ThreadCalls implements LedgerCalls {
  readonly #options: ConnectionOptions
  readonly #worker: Worker
  #reader: Reader | null = null
  readonly #pending = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>()
  #nextId = 1
  #closed = false

  constructor(options: ConnectionOptions) {
    const { onMigration, ...cloneable } = options
    this.#options = cloneable
    this.#worker = new Worker(new URL('./thread.js', import.meta.url), {
      workerData: cloneable,
      // A page lives for one commit. By default its remains pile up to 48 MB before they are swept, and no faster for it.
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    })
    this.#worker.unref()
    this.#worker.on('message', (answer: Answer) => {
      if ('migration' in answer) onMigration?.(answer.migration)
      else this.#settle(answer)
    })
    this.#worker.on('error', (error) => this.#fail(error.message))
    this.#worker.on('exit', () => this.#fail('the thread ended'))
  }

  call<M extends LedgerMethod>(tenant: string, method: M, ...args: Parameters<Ledger[M]>): Promise<ReturnType<Ledger[M]>> {
    if (isQuick(method, args[0])) {
      const answer = this.#readHere(tenant, (ledger) => (ledger[method] as (...args: readonly unknown[]) => ReturnType<Ledger[M]>)(...args))
      if (answer !== null) return Promise.resolve(answer.value)
    }
    const sent = method === 'commit' ? [packCommit(args[0] as Parameters<Ledger['commit']>[0])] : args
    return this.#post(tenant, method, sent)
  }

  /** Null when only the thread can tell: the tenant is new, or the file is busy. */
  #readHere<T>(tenant: string, body: (ledger: Ledger) => T): { value: T } | null {
    if (this.#closed) return null
    try {
      this.#reader ??= new Reader(this.#options)
      const ledger = this.#reader.ledgerOf(tenant)
      return ledger === null ? null : { value: body(ledger) }
    } catch {
      return null
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#reader?.close()
    try {
      await this.#post('', 'close', [])
    } finally {
      this.#closed = true
      await this.#worker.terminate()
    }
  }

  #post(tenant: string, method: Call['method'], args: readonly unknown[]): Promise<never> {
    if (this.#closed) return Promise.reject(new SyncError('STORE_UNAVAILABLE', 'The store was closed.'))
    const id = this.#nextId++
    return new Promise<never>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      // The thread keeps the process alive only while somebody waits for it.
      this.#worker.ref()
      this.#worker.postMessage({ id, tenant, method, args } satisfies Call)
    })
  }

  #settle(answer: Exclude<Answer, { migration: unknown }>): void {
    const waiting = this.#pending.get(answer.id)!
    this.#pending.delete(answer.id)
    if (this.#pending.size === 0) this.#worker.unref()
    if ('error' in answer) waiting.reject(new SyncError(answer.error.code as ErrorCode, answer.error.message))
    else waiting.resolve(answer.value as never)
  }

  #fail(reason: string): void {
    this.#closed = true
    for (const { reject } of this.#pending.values()) reject(new SyncError('STORE_FAILED', `The thread of the SQLite store is gone: ${reason}.`))
    this.#pending.clear()
  }
}

/**
 * A page of the feed takes less time to read than to ask another thread for; so short reads of the served side happen here,
 * on a connection of their own, beside the writer and without waiting for it. What may have to look through much does not.
 */
function isQuick(method: LedgerMethod, query: unknown): boolean {
  if (method === 'feed') return (query as FeedQuery).databases === undefined && (query as FeedQuery).live !== true
  return method === 'databaseNames' || method === 'apiKey' || method === 'row'
}

class Reader {
  readonly #connection: Connection
  readonly #ledgers = new Map<string, Ledger>()

  constructor(options: ConnectionOptions) {
    // Readers do not wait for writers; where they would have to, the thread is asked.
    this.#connection = new Connection({ ...options, busyTimeoutMs: 0 })
  }

  ledgerOf(tenant: string): Ledger | null {
    const known = this.#ledgers.get(tenant)
    if (known !== undefined) return known
    const session = findSession(this.#connection, tenant)
    if (session === null) return null
    const ledger = new Ledger(session)
    this.#ledgers.set(tenant, ledger)
    return ledger
  }

  close(): void {
    this.#connection.close()
  }
}
