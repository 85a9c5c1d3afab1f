import { SyncError, type Log, type Store } from '../contract/index.ts'
import { checkName, describeValue } from '../config/names.ts'
import type { Environment } from '../config/settings.ts'
import { LOG_LEVELS, type LogLevel } from '../platform/log.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { isWorker, type WorkerLike } from '../worker/worker.ts'

/** The tenant that a method works on. Default: the first of the instance. */
export interface TenantOption {
  readonly tenant?: string | undefined
}

/** Options of `createTidemark`. */
export interface TidemarkOptions {
  /** The URL of the store, which is opened on first use and closed by `stop`; or an open store, which stays open. */
  store: string | Store
  /** The workers whose syncs, destinations and webhooks run. */
  workers: readonly WorkerLike[]
  /**
   * The tenants to run for. The first is the default of every method. `all` means every current and future tenant of the
   * store, and `default` is then the default. Default: `['default']`.
   */
  tenants?: readonly string[] | 'all'
  /** Returns a secret of a tenant. Default: the environment, where `TOKEN__acme` takes precedence over `TOKEN`. */
  secrets?: (name: string, tenant: string) => string | undefined
  /** A log, or the level of the JSON lines on standard error. Default: `warn`. */
  log?: Log | LogLevel
  /** Syncs that run in parallel in this process. Default: 4. */
  concurrency?: number
  /** Deletes replaced versions and runs that are older. Default: they are kept. */
  keepLogDays?: number
  /** The path under which the host program mounts `handler`, such as `/tidemark`. Default: none. */
  prefix?: string
  /** Origins whose pages may send requests with a key; `*` for all. Default: none. */
  corsOrigins?: readonly string[]
  /** The base folder of a relative file path in `store`. Default: the current folder. */
  folder?: string
  /** The source of TIDEMARK_KEY, TIDEMARK_KEY_FILE and secrets. Default: the environment of the process. */
  environment?: Environment
}

const OPTION_NAMES = Object.keys({
  store: 0,
  workers: 0,
  tenants: 0,
  secrets: 0,
  log: 0,
  concurrency: 0,
  keepLogDays: 0,
  prefix: 0,
  corsOrigins: 0,
  folder: 0,
  environment: 0,
} satisfies Record<keyof TidemarkOptions, 0>)

/** Throws before anything is opened. */
export function checkOptions(options: TidemarkOptions): void {
  const { store, workers, tenants = ['default'], log, concurrency, keepLogDays, prefix } = options
  const unknown = Object.keys(options).find((name) => !OPTION_NAMES.includes(name))
  if (unknown !== undefined) fail(`has no option ${describeValue(unknown)}.${didYouMean(unknown, OPTION_NAMES)}`)
  if (typeof store !== 'string' && typeof store?.commit !== 'function')
    fail(`store is ${describeValue(store)}, but it must be a URL or an open store.`)
  if (!Array.isArray(workers) || workers.length === 0 || !workers.every(isWorker))
    fail('workers must be a list of at least one Worker.')
  const names = workers.map(({ name = 'worker' }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) fail(`two workers are named ${describeValue(twice)}; pass \`new Worker({ name })\`.`)
  if (tenants !== 'all') {
    if (!Array.isArray(tenants) || tenants.length === 0) fail('tenants must name at least one tenant, or be `all`.')
    for (const tenant of tenants) checkName('tenant', tenant)
  }
  if (typeof log === 'string' && !LOG_LEVELS.includes(log)) fail(`log is ${describeValue(log)}.`)
  for (const [name, value] of Object.entries({ concurrency, keepLogDays }))
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0))
      fail(`${name} is ${describeValue(value)}, but it must be a positive integer.`)
  if (prefix !== undefined && prefix !== '' && !isPath(prefix))
    fail(`prefix is ${describeValue(prefix)}, but it must be a path such as /tidemark, without a slash at the end.`)
}

function isPath(prefix: string): boolean {
  const [first, ...parts] = String(prefix).split('/')
  return first === '' && parts.length > 0 && parts.every((part) => /^[A-Za-z0-9_.~-]+$/.test(part))
}

function fail(what: string): never {
  throw new SyncError('ARGUMENT_INVALID', `createTidemark: ${what}`)
}
