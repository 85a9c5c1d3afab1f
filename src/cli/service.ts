import { jsonSchemaOf, type JsonSchema } from '../config/schema.ts'
import type { WorkerLike } from '../config/worker.ts'
import type { Ports, Store } from '../contract/index.ts'
import { holderName, isDeadHolder } from '../platform/holder.ts'
import { syncsOf } from '../runner/declared-sync.ts'
import { keepLog } from '../runner/keep-log.ts'
import type { Outside } from '../runner/ask-source.ts'
import { serveRestate, type RestateOptions, type ServedRestate } from '../runner/restate/serve.ts'
import type { RunnerEvent } from '../runner/runner-options.ts'
import { Runner } from '../runner/runner.ts'
import type { Metrics } from '../server/metrics.ts'
import { Deliverer } from '../webhooks/deliverer.ts'
import { InboundWebhooks } from '../webhooks/inbound.ts'
import { createSender } from '../webhooks/send.ts'
import { serveApi, type ApiOptions, type ServedApi } from './serve-api.ts'
import type { WorkerTarget } from './target.ts'

export interface ServiceOptions {
  readonly target: WorkerTarget
  readonly store: Store
  readonly outside: Outside
  readonly concurrency: number
  /** Null to serve nothing. */
  readonly api: Pick<ApiOptions, 'host' | 'port' | 'corsOrigins' | 'keysOnly'> | null
  /** The least time between two cycles of a continuous sync. */
  readonly pauseMs?: number
  readonly keepLogMs?: number | undefined
  /** Null when this process itself says when a sync runs. */
  readonly restate?: Pick<RestateOptions, 'ingress' | 'host' | 'port'> | null
  readonly onEvent: (event: RunnerEvent) => void
}

/** Everything one process does for a worker: its schedules, its feed over HTTP, its webhooks in and out. */
export interface Service {
  readonly api: ServedApi | null
  /** Where Restate calls it, once it is started; null when it does not. */
  restateUrl(): string | null
  start(): Promise<void>
  stop(graceMs: number): Promise<void>
}

/** Listens at once, so that its address can be told; the rest begins with `start`. */
export async function openService({ target, store, outside: given, api, keepLogMs, restate = null, ...options }: ServiceOptions): Promise<Service> {
  const metrics = api === null ? null : await openMetrics()
  const outside = { ...given, ports: watched(given.ports, metrics) }
  const { ports } = outside
  const holder = holderName()
  const syncs = syncsOf(target.worker)
  const inbound = new InboundWebhooks({ ...outside, store, holder: `webhook:${holder}`, isDead: isDeadHolder, webhooks: target.worker.webhooks?.() ?? [] })
  const running = { ...outside, ...options, store, syncs, holder, isDead: isDeadHolder }
  const runner = restate === null ? new Runner(running) : new RestateRunner({ ...running, ...restate })
  // Under Restate the places are Restate's.
  const places = runner instanceof Runner ? { places: () => runner.places() } : {}
  const served = api === null || metrics === null ? null : await serveApi({ store, ports, outside, syncs, inbound, schemas: schemasOf(target.worker), metrics, ...places, ...api })
  const send = createSender()
  const deliverer = new Deliverer({ store, ports, send, holder, isDead: isDeadHolder })
  const stopping = new AbortController()
  let keeping: Promise<void> | undefined
  return {
    api: served,
    restateUrl: () => (runner instanceof RestateRunner ? runner.url : null),
    async start() {
      deliverer.start()
      inbound.start()
      await runner.start()
      if (keepLogMs !== undefined) keeping = keepLog(store, ports, keepLogMs, stopping.signal)
    },
    async stop(graceMs) {
      stopping.abort(new Error('the service stops'))
      await Promise.all([runner.stop({ graceMs }), deliverer.stop({ graceMs }).then(() => send.close()), (served?.close() ?? Promise.resolve()).then(() => inbound.stop()), keeping])
    },
  }
}

/** Like the other, it begins when it is started. */
class RestateRunner {
  readonly #options: RestateOptions
  #served: ServedRestate | null = null

  constructor(options: RestateOptions) {
    this.#options = options
  }

  get url(): string | null {
    return this.#served?.url ?? null
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
  const { Metrics } = await import('../server/metrics.ts')
  return new Metrics()
}

/** What is noted is told at /metrics, beside whatever the program has set up. */
function watched(ports: Ports, metrics: Metrics | null): Ports {
  const { meter } = ports
  if (metrics === null) return ports
  return {
    ...ports,
    meter: {
      note(metric, value, labels) {
        meter?.note(metric, value, labels)
        metrics.note(metric, value, labels)
      },
    },
  }
}

function schemasOf(worker: WorkerLike): Record<string, JsonSchema> {
  const known = worker.manifest.databases.map(({ name }): [string, JsonSchema | null] => {
    const schema = worker.schemaOf?.(name)
    return [name, schema === undefined ? null : jsonSchemaOf(schema)]
  })
  return Object.fromEntries(known.filter((entry): entry is [string, JsonSchema] => entry[1] !== null))
}
