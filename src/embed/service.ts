import type { DeclaredDestination } from '../worker/destination-options.ts'
import { jsonSchemaOf } from '../worker/schema.ts'
import type { WorkerLike } from '../worker/worker.ts'
import { SyncError, type Ports, type Store } from '../contract/index.ts'
import { isHolderGone, serviceHolderName } from '../platform/lease-holder.ts'
import { listDeclaredSyncs } from '../runner/declared-sync.ts'
import { compactLogPeriodically } from '../runner/compact-log.ts'
import { serveRestate, type RestateOptions, type RestateService } from '../runner/restate/serve-restate.ts'
import type { ConnectionFacts } from '../runner/due.ts'
import type { RunnerEvent } from '../runner/runner-options.ts'
import { Runner } from '../runner/runner.ts'
import type { TenantSourceRuntime } from '../runner/tenant-runtime.ts'
import { ConnectionWatcher } from '../runner/watch-connections.ts'
import { watchTenants } from '../runner/watch-tenants.ts'
import type { Metrics } from '../server/metrics.ts'
import { DestinationRunner, type TenantDestinationEvent } from '../destinations/loop/destination-runner.ts'
import { VerificationRunner } from '../verify/verification-runner.ts'
import { createSender } from '../webhooks/send.ts'
import { TenantDeliverers } from '../webhooks/tenant-deliverers.ts'
import { ConnectionChanges, type ConnectionChange } from '../connections/connection-changes.ts'
import { TenantInboundWebhooks } from '../webhooks/tenant-inbound-webhooks.ts'
import { serveApi, type ApiOptions, type ServedApi } from './serve-api.ts'

export interface ServiceOptions {
  readonly workers: readonly WorkerLike[]
  readonly store: Store
  readonly sourceRuntime: TenantSourceRuntime
  readonly concurrency: number
  /** Tenants to run in addition to the store's own; `all` for every current and future tenant of the store. */
  readonly tenants?: readonly string[] | 'all'
  /** Null disables the API. */
  readonly api: Pick<ApiOptions, 'address' | 'corsOrigins' | 'connect' | 'keysOnly' | 'select'> | null
  /** The minimum pause between two cycles of a continuous sync. */
  readonly pauseMs?: number
  readonly keepLogMs?: number | undefined
  /** Null when this process schedules the syncs itself. */
  readonly restate?: Pick<RestateOptions, 'ingress' | 'host' | 'port' | 'identityKeys'> | null
  readonly onEvent: (event: RunnerEvent) => void
  readonly onDestinationEvent?: (event: TenantDestinationEvent) => void
  /** A connection of a tenant that runs here was added, removed or changed. */
  readonly onConnection?: (event: ConnectionChange) => void
}

/** Runs workers in one process: schedules, the API, inbound and outbound webhooks. */
export interface Service {
  readonly api: ServedApi | null
  /** The tenants whose syncs run. */
  readonly tenants: ReadonlySet<string>
  /** The address that Restate calls, once started; null without Restate. */
  restateUrl(): string | null
  /** Whether no sync and no destination runs or is due. */
  isIdle(): boolean
  start(): Promise<void>
  stop(graceMs: number): Promise<void>
}

/** Starts to listen immediately, so that the address is known. `start` starts everything else. */
export async function openService(options: ServiceOptions): Promise<Service> {
  return options.store.isReplica === true ? openReplicaService(options) : openPrimaryService(options)
}

/** Serves the feed of a read-only store. No syncs run, and no webhooks are delivered or received. */
async function openReplicaService({
  workers,
  store,
  sourceRuntime,
  api,
  keepLogMs,
  restate = null,
  tenants: others = [],
}: ServiceOptions): Promise<Service> {
  if (api === null || restate !== null || keepLogMs !== undefined) {
    throw new SyncError(
      'STORE_READONLY',
      'The store is a read-only replica, which can only serve the feed. Leave out --no-api, --keep-log and --runner restate.',
    )
  }
  const metrics = await openMetrics()
  const tenants = new Set([store.tenant, ...(others === 'all' ? [] : others)])
  const served = await serveApi({
    ...declarationsOf(workers),
    store,
    ports: withMetrics(sourceRuntime.ports, metrics),
    sourceRuntime,
    metrics,
    isServedTenant: (tenant) => tenants.has(tenant),
    ...api,
  })
  return {
    api: served,
    tenants,
    restateUrl: () => null,
    isIdle: () => true,
    start: async () => {},
    stop: () => served.server.close(),
  }
}

async function openPrimaryService({
  workers,
  store,
  sourceRuntime: baseRuntime,
  api,
  keepLogMs,
  restate = null,
  tenants: others = [],
  onConnection,
  ...options
}: ServiceOptions): Promise<Service> {
  const metrics = api === null ? null : await openMetrics()
  const sourceRuntime = { ...baseRuntime, ports: withMetrics(baseRuntime.ports, metrics) }
  const { ports } = sourceRuntime
  const holder = serviceHolderName()
  const declared = declarationsOf(workers)
  const { syncs, resourceTypes } = declared
  const inbound = new TenantInboundWebhooks({
    ...sourceRuntime,
    store,
    holder: `webhook:${holder}`,
    isDead: isHolderGone,
    webhooks: workers.flatMap((worker) => worker.webhooks?.() ?? []),
  })
  const tenants = new Set([store.tenant, ...(others === 'all' ? [] : others)])
  for (const tenant of tenants) inbound.add(tenant)
  const running = {
    ...sourceRuntime,
    ...options,
    secrets: sourceRuntime.secretsOf,
    store,
    tenants: [...tenants],
    syncs,
    holder,
    isDead: isHolderGone,
  }
  const runner = restate === null ? new Runner(running) : new RestateRunner({ ...running, ...restate })
  // Under Restate, Restate limits the concurrency.
  const capacity = runner instanceof Runner ? { runnerCapacity: () => runner.capacity() } : {}
  const served =
    api === null || metrics === null
      ? null
      : await serveApi({
          ...declared,
          store,
          ports,
          sourceRuntime,
          inbound,
          metrics,
          isServedTenant: (tenant) => tenants.has(tenant),
          ...capacity,
          ...api,
        })
  const send = createSender()
  const deliverer = new TenantDeliverers({
    store,
    ports,
    send,
    holder,
    isDead: isHolderGone,
    resourceTypes,
  })
  const destinations = new DestinationRunner({
    store,
    ports,
    holder,
    isHolderGone,
    newStoreId: () => crypto.randomUUID(),
    destinations: declared.destinations,
    ...(options.onDestinationEvent !== undefined && { onEvent: options.onDestinationEvent }),
  })
  const changes = new ConnectionChanges()
  const verifications = new VerificationRunner({
    store,
    sourceRuntime,
    holder: `verify:${holder}`,
    isHolderGone,
    workers: workers.map((worker) => ({
      plans: () => worker.plans(),
      verifications: worker.verifications?.() ?? [],
    })),
  })
  const stopping = new AbortController()
  const background: Array<Promise<void>> = []
  /** Starts webhook delivery and log compaction for a tenant. */
  const startTenantServices = (tenant: string): void => {
    deliverer.add(tenant)
    destinations.add(tenant)
    verifications.add(tenant)
    if (keepLogMs !== undefined)
      background.push(
        compactLogPeriodically(
          tenant === store.tenant ? store : store.forTenant(tenant),
          ports,
          keepLogMs,
          stopping.signal,
        ),
      )
  }
  const watcher = syncs.some(({ plan }) => plan.connection != null)
    ? new ConnectionWatcher({
        store,
        ports,
        onChange: (tenant, connections) => {
          if (others === 'all' && connections.length > 0) addTenant(tenant)
          if (!tenants.has(tenant)) return
          runner.setConnections(tenant, connections)
          for (const event of changes.update(tenant, connections)) onConnection?.(event)
        },
      })
    : null
  const addTenant = (tenant: string): void => {
    if (tenants.has(tenant)) return
    tenants.add(tenant)
    inbound.add(tenant)
    runner.addTenant(tenant)
    startTenantServices(tenant)
  }
  return {
    api: served,
    tenants,
    restateUrl: () => (runner instanceof RestateRunner ? runner.url : null),
    isIdle: () => runner.isIdle() && destinations.isIdle(),
    async start() {
      deliverer.start()
      inbound.start()
      await runner.start()
      await watcher?.poll()
      changes.completeFirstRound()
      if (watcher !== null) background.push(watcher.run(stopping.signal))
      for (const tenant of tenants) startTenantServices(tenant)
      destinations.start()
      verifications.start()
      if (others === 'all') background.push(watchTenants(store, ports, addTenant, stopping.signal))
    },
    async stop(graceMs) {
      stopping.abort(new Error('the service is stopping'))
      await Promise.all([
        runner.stop({ graceMs }),
        deliverer.stop({ graceMs }).then(() => send.close()),
        destinations.stop(),
        verifications.stop(),
        (served?.server.close() ?? Promise.resolve()).then(() => inbound.stop()),
        ...background,
      ])
    },
  }
}

/** Has the interface of `Runner`: serving begins with `start`. */
class RestateRunner {
  readonly #options: RestateOptions
  #served: RestateService | null = null

  constructor(options: RestateOptions) {
    this.#options = options
  }

  get url(): string | null {
    return this.#served?.url ?? null
  }

  addTenant(tenant: string): void {
    this.#served?.addTenant(tenant)
  }

  setConnections(tenant: string, connections: readonly ConnectionFacts[]): void {
    this.#served?.setConnections(tenant, connections)
  }

  /** Restate decides what is due. */
  isIdle(): boolean {
    return true
  }

  async start(): Promise<void> {
    this.#served = await serveRestate(this.#options)
  }

  async stop(options: { graceMs: number }): Promise<void> {
    await this.#served?.close(options)
  }
}

/** Imported here, like the server, so that other commands start without it. */
async function openMetrics(): Promise<Metrics> {
  const { Metrics } = await import('../server/metrics.ts')
  return new Metrics()
}

/** Records measurements for /metrics in addition to the configured meter. */
function withMetrics(ports: Ports, metrics: Metrics | null): Ports {
  const { meter } = ports
  if (metrics === null) return ports
  return {
    ...ports,
    meter: {
      record(metric, value, labels) {
        meter?.record(metric, value, labels)
        metrics.record(metric, value, labels)
      },
    },
  }
}

/** The declarations of all workers, as the API shows them. */
function declarationsOf(
  workers: readonly WorkerLike[],
): Pick<ApiOptions, 'syncs' | 'schemas' | 'resourceTypes'> & { destinations: DeclaredDestination[] } {
  const databases = workers.flatMap((worker) => worker.manifest.databases.map((database) => ({ worker, ...database })))
  return {
    syncs: workers.flatMap((worker) => listDeclaredSyncs(worker)),
    destinations: workers.flatMap((worker) => worker.destinations?.() ?? []),
    schemas: Object.fromEntries(
      databases.flatMap(({ worker, name }) => {
        const declared = worker.schemaOf?.(name)
        const schema = declared === undefined ? null : jsonSchemaOf(declared)
        return schema === null ? [] : [[name, schema]]
      }),
    ),
    resourceTypes: Object.fromEntries(
      databases.flatMap(({ name, resourceType }) => (resourceType === undefined ? [] : [[name, resourceType]])),
    ),
  }
}
