import { Worker } from 'node:worker_threads'
import { SyncError, type Commit, type ErrorCode, type FeedQuery, type Store } from '../../contract/index.ts'
import { Connection, findSession, openSession, type ConnectionOptions, type TenantSession } from './connection.ts'
import { callStoreMethod, STORE_METHODS, type StoreMethod, type StoreMethods } from './store-methods.ts'
import { UnpackedRows } from './packed-rows.ts'
import { packCommit } from './packed-commit.ts'
import type { ThreadReply, ThreadCall } from './thread.ts'
import { required } from '../../values/required.ts'

/** Options of `openSqliteStore`: the file, and where its statements run. */
export interface SqliteStoreOptions extends ConnectionOptions {
  readonly tenant?: string
  /**
   * Runs the store in its own thread: reading the next page and landing this one then use two cores, and a slow disk
   * does not block the event loop. The default for a file; an in-memory store never uses a thread.
   */
  readonly thread?: boolean
}

/** Opens a store in one SQLite file, and creates it on first use. */
export async function openSqliteStore({ tenant = 'default', thread, ...options }: SqliteStoreOptions): Promise<Store> {
  if (!(thread ?? options.file !== ':memory:') || !CAN_THREAD) {
    const connection = new Connection(options)
    return bindStore(tenant, createLocalCaller(connection))
  }
  const calls = new ThreadCaller(options)
  const store = bindStore(tenant, calls)
  // Opens the file, or fails with the reason.
  await store.headSequence().catch(async (error: unknown) => {
    await store.close().catch(() => {})
    throw error
  })
  return store
}

/** A thread can only be started from compiled code. */
const CAN_THREAD = import.meta.url.endsWith('.js')

/** Calls store methods, in this thread or another. */
interface StoreCaller {
  call(tenant: string, method: StoreMethod, args: readonly unknown[]): Promise<unknown>
  close(): Promise<void>
}

function bindStore(tenant: string, calls: StoreCaller): Store {
  const { rowValues: readPackedRows, ...methods } = Object.fromEntries(
    STORE_METHODS.map((method) => [method, (...args: readonly unknown[]) => calls.call(tenant, method, args)]),
  ) as unknown as StoreMethods
  return {
    ...methods,
    rowValues: async (query) => {
      const packed = await readPackedRows(query)
      return packed === null ? null : new UnpackedRows(packed)
    },
    tenant,
    supportsSoftDeletes: true,
    supportsScopedSweeps: true,
    forTenant: (other) => bindStore(other, calls),
    close: () => calls.close(),
    // A writer may be another process, and a file sends no notifications. Polling is cheap while nothing was written.
    subscribe: () => ({ addTenant: () => {}, close: () => Promise.resolve() }),
  }
}

function createLocalCaller(connection: Connection): StoreCaller {
  const sessions = new Map<string, TenantSession>()
  return {
    async call(tenant, method, args) {
      let session = sessions.get(tenant)
      if (session === undefined) sessions.set(tenant, (session = openSession(connection, tenant)))
      return callStoreMethod(session, method, args)
    },
    async close() {
      connection.close()
    },
  }
}

class ThreadCaller implements StoreCaller {
  readonly #options: ConnectionOptions
  readonly #thread: StoreThread
  /** Searches may read a whole table, which must not delay commits: they have a thread and a connection of their own. */
  #searchThread: StoreThread | null = null
  #reader: LocalReader | null = null
  #closed = false

  constructor(options: ConnectionOptions) {
    const { onMigration, ...cloneable } = options
    this.#options = cloneable
    this.#thread = new StoreThread(cloneable, onMigration)
  }

  call(tenant: string, method: StoreMethod, args: readonly unknown[]): Promise<unknown> {
    if (this.#closed) return Promise.reject(new SyncError('STORE_UNAVAILABLE', 'The store was closed.'))
    if (isShortRead(method, args[0])) {
      const answer = this.#readLocally(tenant, (session) => callStoreMethod(session, method, args))
      if (answer !== null) return Promise.resolve(answer.value)
    }
    if (method === 'searchRows' || method === 'columnStatistics') {
      if (this.#searchThread?.isClosed !== false) this.#searchThread = new StoreThread(this.#options)
      return this.#searchThread.post(tenant, method, args)
    }
    return this.#thread.post(tenant, method, method === 'commit' ? [packCommit(args[0] as Commit)] : args)
  }

  /** Returns null when only the thread can answer: the tenant is new, or the file is busy. */
  #readLocally<T>(tenant: string, body: (session: TenantSession) => T): { value: T } | null {
    try {
      this.#reader ??= new LocalReader(this.#options)
      const session = this.#reader.sessionOf(tenant)
      return session === null ? null : { value: body(session) }
    } catch {
      return null
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#reader?.close()
    await this.#searchThread?.close()
    await this.#thread.close()
  }
}

/** A thread that owns a connection to the file, and answers calls in order. */
class StoreThread {
  readonly #worker: Worker
  readonly #pending = new Map<number, { resolve(value: never): void; reject(error: unknown): void }>()
  #nextId = 1
  #closed = false

  constructor(options: ConnectionOptions, onMigration?: ConnectionOptions['onMigration']) {
    this.#worker = new Worker(new URL('./thread.js', import.meta.url), {
      workerData: options,
      // A page is short-lived. By default up to 48 MB of garbage accumulate before a collection, which is no faster.
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    })
    this.#worker.unref()
    this.#worker.on('message', (answer: ThreadReply) => {
      if ('migration' in answer) onMigration?.(answer.migration)
      else this.#settle(answer)
    })
    this.#worker.on('error', (error) => this.#fail(error.message))
    this.#worker.on('exit', () => this.#fail('it exited'))
  }

  get isClosed(): boolean {
    return this.#closed
  }

  async close(): Promise<void> {
    if (this.#closed) return
    try {
      await this.post('', 'close', [])
    } finally {
      this.#closed = true
      await this.#worker.terminate()
    }
  }

  post(tenant: string, method: ThreadCall['method'], args: readonly unknown[]): Promise<never> {
    if (this.#closed) return Promise.reject(new SyncError('STORE_UNAVAILABLE', 'The store was closed.'))
    const id = this.#nextId++
    return new Promise<never>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      // The thread keeps the process running only while a call is pending.
      this.#worker.ref()
      this.#worker.postMessage({ id, tenant, method, args } satisfies ThreadCall)
    })
  }

  #settle(answer: Exclude<ThreadReply, { migration: unknown }>): void {
    const call = required(this.#pending.get(answer.id), 'The pending call')
    this.#pending.delete(answer.id)
    if (this.#pending.size === 0) this.#worker.unref()
    if ('error' in answer) call.reject(new SyncError(answer.error.code as ErrorCode, answer.error.message))
    else call.resolve(answer.value as never)
  }

  #fail(reason: string): void {
    this.#closed = true
    for (const { reject } of this.#pending.values())
      reject(new SyncError('STORE_FAILED', `The thread of the SQLite store has ended: ${reason}.`))
    this.#pending.clear()
  }
}

/**
 * Reading a page of the feed takes less time than a call to another thread, so short reads of the API run here, on a
 * separate connection, concurrently with the writer. Reads that may scan many rows do not.
 */
function isShortRead(method: StoreMethod, query: unknown): boolean {
  if (method === 'feed') return (query as FeedQuery).databases === undefined && (query as FeedQuery).liveOnly !== true
  return method === 'databaseNames' || method === 'apiKey' || method === 'row'
}

class LocalReader {
  readonly #connection: Connection
  readonly #sessions = new Map<string, TenantSession>()

  constructor(options: ConnectionOptions) {
    // Readers do not wait for writers; where they would have to, the thread answers.
    this.#connection = new Connection({ ...options, busyTimeoutMs: 0 })
  }

  sessionOf(tenant: string): TenantSession | null {
    const known = this.#sessions.get(tenant)
    if (known !== undefined) return known
    const session = findSession(this.#connection, tenant)
    if (session !== null) this.#sessions.set(tenant, session)
    return session
  }

  close(): void {
    this.#connection.close()
  }
}
