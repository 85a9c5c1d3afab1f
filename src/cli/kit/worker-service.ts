import { jsonSchemaOf, type JsonSchema } from '../../worker/schema.ts'
import type { WorkerLike } from '../../worker/worker.ts'
import { SyncError, type Ports, type Store } from '../../contract/index.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import { listDeclaredSyncs } from '../../runner/declared-sync.ts'
import { compactLogPeriodically } from '../../runner/compact-log.ts'
import { serveRestate, type RestateOptions, type RestateService } from '../../runner/restate/serve-restate.ts'
import type { RunnerEvent } from '../../runner/runner-options.ts'
import { Runner } from '../../runner/runner.ts'
import { watchTenants } from '../../runner/watch-tenants.ts'
import type { Metrics } from '../../server/metrics.ts'
import { createSender } from '../../webhooks/send.ts'
import { TenantDeliverers } from '../../webhooks/tenant-deliverers.ts'
import { TenantInboundWebhooks } from '../../webhooks/tenant-inbound-webhooks.ts'
import type { TenantSourceRuntime } from './create-runtime.ts'
import { serveApi, type ApiOptions, type ServedApi } from './serve-api.ts'
import type { WorkerTarget } from './target.ts'

export interface WorkerServiceOptions {
  readonly target: WorkerTarget
  readonly store: Store
  readonly sourceRuntime: TenantSourceRuntime
  readonly concurrency: number
  /** Whose syncs run, beside the store's own tenant; `all` for every one that the store keeps something for, now or later. */
  readonly tenants?: readonly string[] | 'all'
  /** Null to serve nothing. */
  readonly api: Pick<ApiOptions, 'host' | 'port' | 'corsOrigins' | 'keysOnly'> | null
  /** The least time between two cycles of a continuous sync. */
  readonly pauseMs?: number
  readonly keepLogMs?: number | undefined
  /** Null when this process itself says when a sync runs. */
  readonly restate?: Pick<RestateOptions, 'ingress' | 'host' | 'port' | 'identityKeys'> | null
  readonly onEvent: (event: RunnerEvent) => void
}

/** Everything one process does for a worker: its schedules, its feed over HTTP, its webhooks in and out. */
export interface WorkerService {
  readonly api: ServedApi | null
  /** Whose syncs it runs, so far. */
  readonly tenants: ReadonlySet<string>
  /** Where Restate calls it, once it is started; null when it does not. */
  restateUrl(): string | null
  start(): Promise<void>
  stop(graceMs: number): Promise<void>
}

/** Listens at once, so that its address can be told; the rest begins with `start`. */
export async function openWorkerService(given: WorkerServiceOptions): Promise<WorkerService> {
  return given.store.isReplica === true ? openReplicaService(given) : openPrimaryService(given)
}

/** Of a store that can only be read, what it holds: nothing runs, nothing is delivered, nothing comes in. */
async function openReplicaService({ target, store, sourceRuntime: outside, api, keepLogMs, restate = null, tenants: others = [] }: WorkerServiceOptions): Promise<WorkerService> {
  if (api === null || restate !== null || keepLogMs !== undefined) {
    throw new SyncError('STORE_READONLY', 'The store is a replica: the feed is all that can be served from it, so --no-api, --keep-log and --runner restate have nothing to do here.')
  }
  const metrics = await openMetrics()
  const tenants = new Set([store.tenant, ...(others === 'all' ? [] : others)])
  const served = await serveApi({ store, ports: withMetrics(outside.ports, metrics), sourceRuntime: outside, syncs: listDeclaredSyncs(target.worker), schemas: schemasOf(target.worker), resourceTypes: resourceTypesOf(target.worker), metrics, isServedTenant: (tenant) => tenants.has(tenant), ...api })
  return { api: served, tenants, restateUrl: () => null, start: async () => {}, stop: () => served.close() }
}

async function openPrimaryService({ target, store, sourceRuntime: given, api, keepLogMs, restate = null, tenants: others = [], ...options }: WorkerServiceOptions): Promise<WorkerService> {
  const metrics = api === null ? null : await openMetrics()
  const outside = { ...given, ports: withMetrics(given.ports, metrics) }
  const { ports } = outside
  const holder = holderName()
  const syncs = listDeclaredSyncs(target.worker)
  const inbound = new TenantInboundWebhooks({ ...outside, store, holder: `webhook:${holder}`, isDead: isHolderGone, webhooks: target.worker.webhooks?.() ?? [] })
  const tenants = new Set([store.tenant, ...(others === 'all' ? [] : others)])
  for (const tenant of tenants) inbound.add(tenant)
  const running = { ...outside, ...options, secrets: outside.secretsOf, store, tenants: [...tenants], syncs, holder, isDead: isHolderGone }
  const runner = restate === null ? new Runner(running) : new RestateRunner({ ...running, ...restate })
  // Under Restate, Restate limits the concurrency.
  const capacity = runner instanceof Runner ? { runnerCapacity: () => runner.capacity() } : {}
  const served = api === null || metrics === null ? null : await serveApi({ store, ports, sourceRuntime: outside, syncs, inbound, schemas: schemasOf(target.worker), resourceTypes: resourceTypesOf(target.worker), metrics, isServedTenant: (tenant) => tenants.has(tenant), ...capacity, ...api })
  const send = createSender()
  const deliverer = new TenantDeliverers({ store, ports, send, holder, isDead: isHolderGone, resourceTypes: resourceTypesOf(target.worker) })
  const stopping = new AbortController()
  const beside: Array<Promise<void>> = []
  /** All that goes on for a tenant beside its cycles. */
  const attend = (tenant: string): void => {
    deliverer.add(tenant)
    if (keepLogMs !== undefined) beside.push(compactLogPeriodically(tenant === store.tenant ? store : store.forTenant(tenant), ports, keepLogMs, stopping.signal))
  }
  const welcome = (tenant: string): void => {
    if (tenants.has(tenant)) return
    tenants.add(tenant)
    inbound.add(tenant)
    runner.addTenant(tenant)
    attend(tenant)
  }
  return {
    api: served,
    tenants,
    restateUrl: () => (runner instanceof RestateRunner ? runner.url : null),
    async start() {
      deliverer.start()
      inbound.start()
      await runner.start()
      for (const tenant of tenants) attend(tenant)
      if (others === 'all') beside.push(watchTenants(store, ports, welcome, stopping.signal))
    },
    async stop(graceMs) {
      stopping.abort(new Error('the service stops'))
      await Promise.all([runner.stop({ graceMs }), deliverer.stop({ graceMs }).then(() => send.close()), (served?.close() ?? Promise.resolve()).then(() => inbound.stop()), ...beside])
    },
  }
}

/** Like the other, it begins when it is started. */
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

  async start(): Promise<void> {
    this.#served = await serveRestate(this.#options)
  }

  async stop(options: { graceMs: number }): Promise<void> {
    await this.#served?.close(options)
  }
}

/** Loaded only here, as the server is. */
async function openMetrics(): Promise<Metrics> {
  const { Metrics } = await import('../../server/metrics.ts')
  return new Metrics()
}

/** What is noted is told at /metrics, beside whatever the program has set up. */
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

function resourceTypesOf({ manifest }: WorkerLike): Record<string, string> {
  return Object.fromEntries(manifest.databases.flatMap(({ name, resourceType }) => (resourceType === undefined ? [] : [[name, resourceType]])))
}

function schemasOf(worker: WorkerLike): Record<string, JsonSchema> {
  const known = worker.manifest.databases.map(({ name }): [string, JsonSchema | null] => {
    const schema = worker.schemaOf?.(name)
    return [name, schema === undefined ? null : jsonSchemaOf(schema)]
  })
  return Object.fromEntries(known.filter((entry): entry is [string, JsonSchema] => entry[1] !== null))
}
