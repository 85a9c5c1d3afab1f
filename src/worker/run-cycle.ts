import { required } from '../values/required.ts'
import {
  SyncError,
  type Clock,
  type Log,
  type Random,
  type Secrets,
  type Store,
  type TimeRange,
} from '../contract/index.ts'
import { runCycle as runEngineCycle } from '../engine/cycle.ts'
import type { CycleOptions, CycleResult } from '../engine/cycle-options.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { systemClock } from '../platform/clock.ts'
import { systemFetch, type Fetch } from '../platform/fetch.ts'
import { holderName, isHolderGone } from '../platform/lease-holder.ts'
import { createLog, parseLogLevel } from '../platform/log.ts'
import { openTelemetry, type Telemetry } from '../platform/open-telemetry.ts'
import { systemRandom } from '../platform/random.ts'
import { createSecrets } from '../platform/secrets.ts'
import { openStore } from '../stores/open-store.ts'
import { planPartitions } from './plan-partitions.ts'
import { planRange } from './plan-range.ts'
import type { Schema } from './schema.ts'
import type { SyncOptions } from './sync-options.ts'
import { isWorker, Worker, type PacerOptions, type WorkerLike } from './worker.ts'

/** The environment of a cycle. The defaults are this machine's clock, network and environment. */
export interface RunOptions {
  /** An open store, which stays open; or a URL, opened for this cycle only. */
  store: Store | string
  tenant?: string
  signal?: AbortSignal
  /** Abandon an unfinished cycle. */
  fresh?: boolean
  /** Reads only the records of a range of the source's times again. States stay as they are, and nothing is deleted. */
  range?: TimeRange
  /**
   * Reads only the partitions with these keys again, from their start. States stay as they are. Only rows of these
   * partitions are deleted.
   */
  partitions?: readonly string[]
  /** Allows a sweep that exceeds the delete limit or follows a changed scope. */
  allowDeletes?: boolean
  onProgress?: CycleOptions['onProgress']
  clock?: Clock
  random?: Random
  log?: Log
  fetch?: Fetch
  secrets?: Secrets | Readonly<Record<string, string | undefined>>
  holder?: string
  trigger?: string
  /** Send a traceparent header to vendors; see the guide on observability. */
  sendTraceparent?: boolean
}

/** A sync without a worker; its databases and pacer are declared inline. */
export interface InlineSync<State = unknown> extends Omit<
  SyncOptions<State>,
  'database' | 'databases' | 'pacer' | 'schedule' | 'priority'
> {
  name: string
  database: string | InlineDatabase
  databases?: readonly (string | InlineDatabase)[]
  pacer?: PacerOptions
}

/** A database of `runCycle`, with an optional schema. */
export interface InlineDatabase {
  name: string
  schema?: Schema
}

/** Options of `runCycle` without a worker file. */
export interface InlineRunOptions<State = unknown> extends RunOptions {
  /** The name of the worker in the registry. Default: `worker`. */
  worker?: string
  sync: InlineSync<State>
}

/**
 * Runs one cycle inside your own program. A failed cycle is a result; only invalid input and an unavailable store throw.
 *
 * @example
 * ```ts
 * import { runCycle } from 'tidemark'
 *
 * const { stopReason, counts } = await runCycle({
 *   store: 'sqlite:data/copy.db',
 *   sync: {
 *     name: 'people',
 *     database: 'people',
 *     mode: 'replace',
 *     execute: async () => ({ changes: [{ type: 'upsert', key: 'ada', record: { name: 'Ada' } }], hasMore: false }),
 *   },
 * })
 * ```
 */
export function runCycle<State>(options: InlineRunOptions<State>): Promise<CycleResult>
export function runCycle(worker: WorkerLike, sync: string, options: RunOptions): Promise<CycleResult>
export async function runCycle<State>(
  first: InlineRunOptions<State> | WorkerLike,
  sync?: string,
  options?: RunOptions,
): Promise<CycleResult> {
  if (isWorker(first)) return runPlan(planSync(first, sync!, options!), options!)
  return runPlan(planSync(createInlineWorker(first.worker, first.sync), first.sync.name, first), first)
}

function planSync(worker: WorkerLike, sync: string, { range, partitions }: RunOptions): SyncPlan {
  if (range !== undefined && partitions !== undefined)
    throw new SyncError('ARGUMENT_INVALID', `${sync}: \`range\` and \`partitions\` exclude each other. Leave out one.`)
  if (partitions !== undefined) return planPartitions(worker, sync, partitions)
  return range === undefined ? worker.plan(sync) : planRange(worker, sync, range)
}

async function runPlan(plan: SyncPlan, options: RunOptions): Promise<CycleResult> {
  const { tenant, sendTraceparent = false } = options
  const telemetry = await openTelemetry({ sendTraceparent })
  if (typeof options.store !== 'string') {
    const store =
      tenant === undefined || tenant === options.store.tenant ? options.store : options.store.forTenant(tenant)
    return runEngineCycle(plan, await withConnections(plan, createCycleOptions(store, options, telemetry)))
  }
  const store = await openStore(options.store, tenant === undefined ? {} : { tenant })
  try {
    return await runEngineCycle(plan, await withConnections(plan, createCycleOptions(store, options, telemetry)))
  } finally {
    await store.close()
  }
}

function createInlineWorker<State>(name: string | undefined, sync: InlineSync<State>): Worker {
  const { name: syncName, database, databases = [], pacer, ...options } = sync
  const worker = new Worker(name === undefined ? {} : { name })
  const [own, ...others] = [database, ...databases].map((given) => {
    if (typeof given === 'string') return worker.database(given)
    return worker.database(given.name, given.schema === undefined ? {} : { schema: given.schema })
  })
  // Derived from the name of the sync, because names are unique within a worker.
  const pacing = pacer === undefined ? {} : { pacer: worker.pacer(`${syncName.slice(0, 57)}-pacer`, pacer) }
  worker.sync(syncName, {
    ...options,
    database: required(own, 'the database of the sync'),
    databases: others,
    ...pacing,
  })
  return worker
}

function createCycleOptions(store: Store, options: RunOptions, telemetry: Telemetry | null): CycleOptions {
  const { signal, fresh, allowDeletes, onProgress } = options
  const {
    clock = systemClock,
    random = systemRandom,
    fetch = systemFetch,
    holder = `${holderName()}#${++cycleCount}`,
    trigger = 'library',
  } = options
  const log =
    options.log ??
    createLog({
      level: parseLogLevel(process.env['TIDEMARK_LOG'] || 'warn'),
      now: () => clock.now(),
      ...(telemetry !== null && { context: telemetry.logFields }),
    })
  return {
    store,
    ports: { clock, random, log, tracer: telemetry?.tracer, meter: telemetry?.meter },
    fetch,
    secrets: isSecrets(options.secrets) ? options.secrets : createSecrets(options.secrets ?? process.env),
    holder,
    isHolderGone: isHolderGone,
    trigger,
    ...(signal === undefined ? {} : { signal }),
    ...(fresh === undefined ? {} : { fresh }),
    ...(allowDeletes === undefined ? {} : { allowDeletes }),
    ...(onProgress === undefined ? {} : { onProgress }),
  }
}

/** Imported only for a sync that names a connection: the descriptions of all providers are part of it. */
async function withConnections(plan: SyncPlan, options: CycleOptions): Promise<CycleOptions> {
  if (plan.connection == null) return options
  const [{ SourceConnections }, { createClientFinder }] = await Promise.all([
    import('../connections/source-connections.ts'),
    import('../connections/find-client.ts'),
  ])
  const { ports, fetch, secrets } = options
  const connections = new SourceConnections({
    ports,
    fetch,
    findClient: createClientFinder({ secretsOf: () => secrets }),
  })
  return { ...options, ports: { ...ports, connections } }
}

/** Counts the cycles of this process, so that each has its own holder name. */
let cycleCount = 0

function isSecrets(secrets: RunOptions['secrets']): secrets is Secrets {
  return typeof secrets?.get === 'function'
}
