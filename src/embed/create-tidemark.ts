import { hostname } from 'node:os'
import type { RequestListener } from 'node:http'
import { SyncError, type JsonObject, type Store, type SyncRef, type SyncSignal } from '../contract/index.ts'
import { runDestination, type DestinationPlan } from '../destinations/loop/run-destination.ts'
import { runCycle } from '../engine/cycle.ts'
import type { CycleResult } from '../engine/cycle-options.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { holderName, isHolderGone } from '../platform/lease-holder.ts'
import { readStatus, type SyncStatus } from '../runner/status.ts'
import { listDeclaredSyncs } from '../runner/declared-sync.ts'
import { runWithBackfill } from '../runner/run-with-backfill.ts'
import type { TenantSourceRuntime } from '../runner/tenant-runtime.ts'
import { locateStore } from '../stores/drivers.ts'
import { openStore } from '../stores/open-store.ts'
import { confinedSelectOf, runSelect } from '../stores/run-select.ts'
import { listChangedMembers } from '../values/changed-members.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { parseJson } from '../values/json.ts'
import { describeValue } from '../config/names.ts'
import { compileSchema, type StandardSchema } from '../worker/schema.ts'
import type { DatabaseHandle, RowOf, WorkerLike } from '../worker/worker.ts'
import { createConnectFlow, type ConnectFlow } from '../connections/connect/connect-flow.ts'
import { createConnectionRuntime } from '../connections/manage-connections.ts'
import { ApiKeys } from './api-keys.ts'
import { Connections } from './connections.ts'
import { createRuntime } from './create-runtime.ts'
import { DatabaseReader } from './database-reader.ts'
import { Destinations, type DestinationRunResult } from './destinations.ts'
import { TidemarkEventEmitter, type TidemarkEvents, type Unsubscribe } from './events.ts'
import { createFetchHandler, type FetchHandler } from './fetch-handler.ts'
import { createNodeListener } from './node-listener.ts'
import { checkOptions, type TenantOption, type TidemarkOptions } from './options.ts'
import { openService, type Service } from './service.ts'

/** One version of a row, as `why` returns it. */
export interface RowVersion extends SyncRef {
  readonly sequence: number
  readonly action: 'created' | 'updated' | 'deleted'
  readonly committedAt: Date
  readonly upstreamAt: string | null
  readonly cycle: number
  readonly page: number
  /** The fields that this version changed. */
  readonly changed: readonly string[]
  readonly record: JsonObject | null
}

/** Rows of a SQL query, as objects. */
export interface QueryResult<Row = Readonly<Record<string, unknown>>> {
  readonly columns: readonly string[]
  readonly rows: readonly Row[]
  /** More rows exist than the limit. */
  readonly truncated: boolean
}

/** Options of `query`. */
export interface QueryOptions extends TenantOption {
  /** The most rows that are returned. Default: 1,000. */
  readonly limit?: number
  /** Reads the tables as they were at this time. */
  readonly asOf?: Date
}

/** The result of a `tick`. */
export interface TickResult {
  readonly cycles: readonly CycleResult[]
  /** False if the time was over before everything that was due had run; the next tick continues. */
  readonly isComplete: boolean
}

const TICK_BUDGET_MS = 50_000
const TICK_POLL_MS = 25
const GRACE_MS = 10_000
const QUERY_ROWS_MAX = 1_000

/**
 * Creates a Tidemark instance inside a program. Nothing is opened before the first use.
 *
 * @example
 * ```ts
 * import { createTidemark } from 'tidemark/embed'
 * import { Worker } from 'tidemark'
 *
 * const worker = new Worker({ name: 'shop' })
 * const customers = worker.database('customers')
 * worker.sync('customers', {
 *   database: customers,
 *   mode: 'replace',
 *   execute: async () => ({ changes: [{ type: 'upsert', key: 'ada', record: { name: 'Ada' } }], hasMore: false }),
 * })
 *
 * const tidemark = createTidemark({ store: 'sqlite:data/copy.db', workers: [worker] })
 * await tidemark.run('customers')
 * for await (const { key, record } of tidemark.database(customers).rows()) console.log(key, record)
 * await tidemark.stop()
 * ```
 */
export function createTidemark(options: TidemarkOptions): Tidemark {
  checkOptions(options)
  return new Tidemark(options)
}

/** Syncs, destinations, webhooks and the API of some workers on one store, inside a program. */
export class Tidemark {
  /** Serves the API, the console and incoming webhooks. Every route but the console's files needs an API key. */
  readonly handler: FetchHandler
  /** The same for `node:http`, Express and other servers of Node.js. */
  readonly nodeListener: RequestListener
  readonly keys: ApiKeys
  readonly destinations: Destinations
  /** The accounts that tenants connected. */
  readonly connections: Connections
  readonly #options: TidemarkOptions
  readonly #events: TidemarkEventEmitter
  #runtime: Promise<TenantSourceRuntime> | null = null
  #store: Promise<Store> | null = null
  #connectFlow: Promise<ConnectFlow> | null = null
  #service: Promise<Service> | null = null
  #state: 'idle' | 'started' | 'stopped' = 'idle'
  /** Runs that `stop` aborts and waits for. */
  readonly #runs = new Set<Promise<unknown>>()
  readonly #stopping = new AbortController()

  /** Use `createTidemark`, which checks the options. */
  constructor(options: TidemarkOptions) {
    this.#options = options
    const { prefix = '' } = options
    const openServer = async (): Promise<NonNullable<Service['api']>['server']> => {
      const { api } = await this.#openService()
      const { server } = api as NonNullable<Service['api']>
      await server.app.ready()
      return server
    }
    this.handler = createFetchHandler(openServer, prefix)
    this.nodeListener = createNodeListener(openServer, prefix)
    this.keys = new ApiKeys((tenant) => this.#storeOf({ tenant }))
    this.destinations = new Destinations({
      declared: options.workers.flatMap((worker) => worker.destinations?.() ?? []),
      signal: this.#stopping.signal,
      storeOf: (given) => this.#storeOf(given),
      run: (plan, store) => this.#runDestination(plan, store),
    })
    this.connections = new Connections(
      (tenant) => this.#storeOf({ tenant }),
      async () => createConnectionRuntime((await this.#openRuntime()).ports, options.connect?.providers),
      () => this.#openConnectFlow(),
    )
    this.#events = new TidemarkEventEmitter((event, error) => {
      void this.#openRuntime().then(({ ports }) =>
        ports.log.error('an event listener threw', {
          event,
          reason: error instanceof Error ? error.message : String(error),
        }),
      )
    })
  }

  /** Starts the schedules, the destinations and the delivery of webhooks. Resolves after the first look at the store. */
  async start(): Promise<void> {
    if (this.#state === 'started') return
    const service = await this.#openService()
    this.#state = 'started'
    await service.start()
  }

  /**
   * Ends running cycles between two pages, waits up to `graceMs`, and closes the store. The instance cannot be started
   * again.
   */
  async stop({ graceMs = GRACE_MS }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#state = 'stopped'
    this.#stopping.abort(new Error('the program stops Tidemark'))
    await (await this.#service?.catch(() => null))?.stop(graceMs)
    await Promise.allSettled(this.#runs)
    const store = await this.#store?.catch(() => null)
    if (typeof this.#options.store === 'string') await store?.close()
  }

  /** Receives an event of this process by name. Returns a function that removes the listener. */
  on<Name extends keyof TidemarkEvents>(name: Name, listener: (event: TidemarkEvents[Name]) => void): Unsubscribe {
    return this.#events.on(name, listener)
  }

  /**
   * Runs a sync now, in this process, and the backfill of its pair before it if one is needed. Write `worker/sync` if
   * several workers have a sync of that name. A failed cycle is a result; only an unknown name and an unavailable store
   * throw.
   */
  async run(sync: string, options: TenantOption & { readonly signal?: AbortSignal } = {}): Promise<CycleResult[]> {
    const { worker, name } = this.#findSync(sync)
    const tenant = this.#tenantOf(options)
    const store = await this.#storeOf(options)
    const { ports, fetch, secretsOf } = await this.#openRuntime()
    const signal = AbortSignal.any([this.#stopping.signal, ...(options.signal === undefined ? [] : [options.signal])])
    const run = async (plan: SyncPlan): Promise<CycleResult> => {
      const ref = { tenant, worker: plan.worker, sync: plan.sync }
      const result = await runCycle(plan, {
        store,
        ports,
        fetch,
        secrets: secretsOf(tenant),
        holder: `${holderName()}#run${++runCount}`,
        isHolderGone,
        trigger: 'library',
        signal,
        onProgress: (progress) => {
          if (progress.kind === 'begun') this.#events.emit({ ...ref, ...progress, kind: 'started', why: 'trigger' })
          else this.#events.emit({ ...ref, ...progress })
        },
      })
      this.#events.emit({ kind: 'ended', ...ref, result })
      return result
    }
    return this.#track(runWithBackfill(worker, name, store, run))
  }

  /** Requests a run, which any process on the store takes. */
  trigger(sync: string, options: TenantOption = {}): Promise<void> {
    return this.#signal(sync, 'trigger', options)
  }

  /** Pauses a sync in every process, after the current page. */
  pause(sync: string, options: TenantOption = {}): Promise<void> {
    return this.#signal(sync, 'pause', options)
  }

  /** Resumes a sync, and clears its retry backoff. */
  resume(sync: string, options: TenantOption = {}): Promise<void> {
    return this.#signal(sync, 'resume', options)
  }

  /** The status of every declared sync, from the store alone: the same in every process. */
  async status(options: TenantOption = {}): Promise<SyncStatus[]> {
    const store = await this.#storeOf(options)
    const { ports } = await this.#openRuntime()
    const syncs = this.#options.workers.flatMap((worker) => listDeclaredSyncs(worker))
    return readStatus({ store, syncs, now: ports.clock.now() })
  }

  /** The versions of a row that the log still has, with the cycle and the page that wrote each. */
  async why(database: string, key: string, options: TenantOption = {}): Promise<RowVersion[]> {
    const entries = await (await this.#storeOf(options)).history(database, key)
    return entries.map((entry, at) => {
      const { sequence, action, worker, sync, cycle, page, upstreamAt, committedAt, text } = entry
      return {
        sequence,
        action,
        worker,
        sync,
        cycle,
        page,
        upstreamAt,
        committedAt: new Date(committedAt),
        changed: listChangedMembers(entries[at - 1], entry),
        record: text === null ? null : (parseJson(text) as JsonObject),
      }
    })
  }

  /**
   * Runs one SELECT on a read-only connection, on the tables as they are or as of a time. With a `schema`, every row is
   * checked, and has its type. A type argument names the type of the rows without a check.
   */
  query<GivenSchema extends StandardSchema>(
    sql: string,
    options: QueryOptions & { readonly schema: GivenSchema },
  ): Promise<QueryResult<RowOf<GivenSchema>>>
  query<Row = Readonly<Record<string, unknown>>>(sql: string, options?: QueryOptions): Promise<QueryResult<Row>>
  async query(
    sql: string,
    { schema, ...options }: QueryOptions & { readonly schema?: StandardSchema } = {},
  ): Promise<QueryResult<unknown>> {
    const { store, folder = process.cwd() } = this.#options
    if (typeof store !== 'string')
      throw new SyncError('ARGUMENT_INVALID', 'query needs the URL of the store: pass it to createTidemark as `store`.')
    // Creates the store if it does not exist, and migrates it.
    await this.#openStore()
    const { columns, rows, truncated } = await runSelect(locateStore(store, folder), sql, {
      limit: options.limit ?? QUERY_ROWS_MAX,
      tenant: this.#tenantOf(options),
      asOf: options.asOf?.getTime(),
    })
    const objects = rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])))
    if (schema !== undefined) await checkRows(objects as JsonObject[], schema)
    return { columns, truncated, rows: objects }
  }

  /** Reads a database. The type of its rows comes from the schema of the handle, or from the type argument. */
  database<Row>(database: DatabaseHandle<Row>, options?: TenantOption): DatabaseReader<Row>
  database<Row = JsonObject>(database: string, options?: TenantOption): DatabaseReader<Row>
  database<Row>(database: DatabaseHandle<Row> | string, options: TenantOption = {}): DatabaseReader<Row> {
    const name = typeof database === 'string' ? database : database.name
    const declared = this.#options.workers.flatMap(({ manifest }) => manifest.databases.map((known) => known.name))
    if (!declared.includes(name))
      throw new SyncError(
        'DATABASE_UNKNOWN',
        `No worker declares the database ${describeValue(name)}.${didYouMean(name, declared)}`,
      )
    return new DatabaseReader<Row>(name, () => this.#storeOf(options))
  }

  /**
   * Runs everything that is due, for at most `budgetMs`, and returns: for a cron trigger of a host without long-lived
   * processes. A cycle that is interrupted continues after its last committed page on the next tick, in any process.
   */
  async tick({ budgetMs = TICK_BUDGET_MS }: { readonly budgetMs?: number } = {}): Promise<TickResult> {
    if (this.#state !== 'idle')
      throw new SyncError(
        'ARGUMENT_INVALID',
        `tick cannot be used after ${this.#state === 'started' ? 'start' : 'stop'}.`,
      )
    const cycles: CycleResult[] = []
    const { ports } = await this.#openRuntime()
    const endsAt = ports.clock.now() + budgetMs
    const service = await this.#createService(false, cycles)
    let isComplete = false
    const work = async (): Promise<void> => {
      try {
        await service.start()
        while (!(isComplete = service.isIdle()) && ports.clock.now() < endsAt && !this.#stopping.signal.aborted)
          await ports.clock.sleep(TICK_POLL_MS, this.#stopping.signal).catch(() => {})
      } finally {
        await service.stop(GRACE_MS)
      }
    }
    await this.#track(work())
    return { cycles, isComplete }
  }

  #findSync(given: string): { worker: WorkerLike; name: string } {
    const all = this.#options.workers.flatMap((worker) =>
      worker.manifest.syncs.map(({ name }) => ({ worker, name, path: `${worker.name ?? 'worker'}/${name}` })),
    )
    const found = all.filter(({ name, path }) => name === given || path === given)
    const [first] = found
    if (first !== undefined && found.length === 1) return first
    if (first === undefined)
      throw new SyncError(
        'SYNC_UNKNOWN',
        `No worker has the sync ${describeValue(given)}.${didYouMean(
          given,
          all.map(({ name }) => name),
        )}`,
      )
    const paths = found.map(({ path }) => path)
    throw new SyncError(
      'SYNC_UNKNOWN',
      `Several workers have the sync ${describeValue(given)}: write ${paths.join(' or ')}.`,
    )
  }

  async #runDestination(plan: DestinationPlan, store: Store): Promise<DestinationRunResult> {
    const { ports } = await this.#openRuntime()
    const run = runDestination(plan, {
      store,
      ports,
      holder: `${holderName()}#run${++runCount}`,
      isHolderGone,
      signal: this.#stopping.signal,
      newStoreId: () => crypto.randomUUID(),
      onEvent: (event) => this.#events.emitDestination({ tenant: store.tenant, ...event }),
    })
    const { report, changes } = await this.#track(run)
    const result = { destination: plan.name, ran: report !== null, changes, error: report?.error ?? null }
    if (report !== null)
      this.#events.emitDestination({
        kind: 'destination.ended',
        tenant: store.tenant,
        destination: plan.name,
        at: report.endedAt ?? ports.clock.now(),
        changes,
        error: report.error,
      })
    return result
  }

  async #signal(sync: string, kind: SyncSignal['kind'], options: TenantOption): Promise<void> {
    const { worker, name } = this.#findSync(sync)
    const store = await this.#storeOf(options)
    const { ports } = await this.#openRuntime()
    await store.signalSync(
      { worker: worker.name ?? 'worker', sync: name },
      { kind, actor: `program@${hostname()}`, at: ports.clock.now() },
    )
  }

  #track<T>(run: Promise<T>): Promise<T> {
    const settled = run.then(
      () => {},
      () => {},
    )
    this.#runs.add(settled)
    void settled.then(() => this.#runs.delete(settled))
    return run
  }

  #tenantOf({ tenant }: TenantOption): string {
    const { tenants = ['default'] } = this.#options
    const first = tenants === 'all' ? 'default' : (tenants[0] ?? 'default')
    if (tenant === undefined) return first
    if (tenants !== 'all' && !tenants.includes(tenant))
      throw new SyncError('ARGUMENT_INVALID', `This instance does not run for tenant ${describeValue(tenant)}.`)
    return tenant
  }

  async #storeOf(options: TenantOption): Promise<Store> {
    const tenant = this.#tenantOf(options)
    const store = await this.#openStore()
    return tenant === store.tenant ? store : store.forTenant(tenant)
  }

  /** A failure to open is not kept: the next use tries again. */
  #openStore(): Promise<Store> {
    if (this.#state === 'stopped') throw new SyncError('ARGUMENT_INVALID', 'This Tidemark instance was stopped.')
    const { store, folder, environment } = this.#options
    this.#store ??= this.#retryLater(
      typeof store === 'string'
        ? openStore(store, {
            tenant: this.#tenantOf({}),
            ...(folder !== undefined && { folder }),
            ...(environment !== undefined && { environment }),
          })
        : Promise.resolve(store.forTenant(this.#tenantOf({}))),
      () => (this.#store = null),
    )
    return this.#store
  }

  #openRuntime(): Promise<TenantSourceRuntime> {
    return (this.#runtime ??= createRuntime(this.#options))
  }

  #openService(): Promise<Service> {
    if (this.#state === 'stopped') throw new SyncError('ARGUMENT_INVALID', 'This Tidemark instance was stopped.')
    return (this.#service ??= this.#retryLater(this.#createService(true, null), () => (this.#service = null)))
  }

  async #createService(isServed: boolean, cycles: CycleResult[] | null): Promise<Service> {
    const { workers, tenants = ['default'], concurrency = 4, keepLogDays, corsOrigins } = this.#options
    const store = await this.#openStore()
    const runtime = await this.#openRuntime()
    const connect = await this.#openConnectFlow()
    return openService({
      workers,
      store,
      sourceRuntime: { ...runtime, secrets: runtime.secretsOf(store.tenant) },
      concurrency,
      tenants: tenants === 'all' ? 'all' : tenants.filter((tenant) => tenant !== store.tenant),
      api: isServed
        ? {
            address: null,
            ...(corsOrigins !== undefined && { corsOrigins }),
            ...(connect !== null && { connect }),
            select:
              typeof this.#options.store === 'string'
                ? confinedSelectOf(locateStore(this.#options.store, this.#options.folder ?? process.cwd()))
                : undefined,
          }
        : null,
      keepLogMs: keepLogDays === undefined ? undefined : keepLogDays * 86_400_000,
      onEvent: (event) => {
        if (event.kind === 'ended') cycles?.push(event.result)
        this.#events.emit(event)
      },
      onDestinationEvent: (event) => this.#events.emitDestination(event),
      onConnection: (event) => this.#events.emitConnection(event),
    })
  }

  /** Null without the option `connect`. */
  async #openConnectFlow(): Promise<ConnectFlow | null> {
    const { connect } = this.#options
    if (connect === undefined) return null
    this.#connectFlow ??= this.#retryLater(
      Promise.all([this.#openStore(), this.#openRuntime()]).then(([store, { ports }]) =>
        createConnectFlow({ connect, store, ports, onConnected: (event) => this.#events.emitConnected(event) }),
      ),
      () => (this.#connectFlow = null),
    )
    return this.#connectFlow
  }

  #retryLater<T>(opening: Promise<T>, reset: () => void): Promise<T> {
    opening.catch(reset)
    return opening
  }
}

async function checkRows(rows: readonly JsonObject[], schema: StandardSchema): Promise<void> {
  const { validate } = compileSchema('of the query', schema)
  for (const [at, row] of rows.entries()) {
    const problem = await validate(row)
    if (problem !== null) throw new SyncError('SCHEMA_MISMATCH', `Row ${at + 1} of the query: ${problem}`)
  }
}

/** Counts the runs of this process, so that each has its own holder name. */
let runCount = 0
