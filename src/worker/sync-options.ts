import { SyncError, type Execute, type Lookup, type Mode } from '../contract/index.ts'
import { DEFAULT_LIMITS, type SyncLimits, type PairPlan, type SweepPlan } from '../engine/sync-plan.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { checkName, describeValue } from '../config/names.ts'
import { parseSchedule, type Schedule, type ScheduleInput } from '../config/schedule.ts'
import type { DatabaseHandle, PacerHandle } from './worker.ts'

/** `State` is the state that `execute` passes from page to page: inferred, or given as `worker.sync<State>(…)`. */
export interface SyncOptions<State = unknown> {
  /** The database of changes without `database`. */
  database: DatabaseHandle | string
  /** Additional databases that a change may name. */
  databases?: readonly (DatabaseHandle | string)[]
  /** `replace` (the default) returns everything in each cycle, and other rows are swept; `incremental` returns changes. */
  mode?: Mode
  /** Default: every 30 minutes. */
  schedule?: ScheduleInput
  /** The rate limit of the source; `context.fetch` waits for it. */
  pacer?: PacerHandle | string | readonly (PacerHandle | string)[]
  /** Returns one page for a state. */
  execute: Execute<State>
  /** Returns one record by its key; null if the listing does not contain it. Confirms deletions before a sweep. */
  lookup?: Lookup
  /** The owner of the rows, if syncs of several workers maintain one database together. */
  owner?: string
  /**
   * The name of the tenant's connection that it reads with. Default: the connection of its source. A tenant without the
   * connection does not have the sync.
   */
  connection?: string
  /** The account and its permissions; see Page.scope. */
  scope?: string
  /** Limits for pages, time, retries and sizes. */
  limits?: Partial<SyncLimits>
  /** The deletions that a replace cycle may make without confirmation. */
  sweep?: SweepOptions
  /** Source timestamps this close together count as equal. */
  upstreamToleranceMs?: number
  /** How long a change may take to appear in the source's listing. Newer rows are not swept. Default: 0. */
  lagMs?: number
  /** How long the source keeps changes and deletions, in ms. Overrides the value of `execute`; see Execute. */
  retentionMs?: number
  /** If several syncs are due, the highest priority runs first. */
  priority?: number
  /**
   * Syncs of this worker that have to complete before each start of this one. Without a `schedule`, it runs whenever
   * they have. A trigger and `tidemark run` do not wait.
   */
  after?: string | SyncReference | readonly (string | SyncReference)[]
}

/** The handle of a declared sync or pair. */
export interface SyncReference {
  readonly kind: 'sync' | 'track'
  readonly name: string
}

/** The delete limit and the lookups of a sweep. */
export interface SweepOptions {
  /** The delete limit: a sweep of a larger share of the rows stops and needs confirmation. 0 to 1; default 0.5. */
  maxDeleteShare?: number
  /** Whether an empty cycle may delete everything. */
  allowEmpty?: boolean
  /** The number of missing rows that a sweep confirms with `lookup`. Default: 200; 0 deletes without confirmation. */
  lookupsMax?: number
}

/** Validated options, with names instead of handles. */
export interface SyncDeclaration {
  readonly name: string
  readonly mode: Mode
  readonly schedule: Schedule
  /** The first is the sync's own database. */
  readonly databases: readonly string[]
  readonly pacers: readonly string[]
  readonly execute: Execute<any>
  readonly lookup: Lookup | null
  readonly owner: string | null
  readonly connection: string | null
  readonly scope: string | null
  readonly limits: Partial<SyncLimits>
  readonly sweep: Partial<SweepPlan>
  readonly upstreamToleranceMs: number
  readonly lagMs: number
  readonly retentionMs: number | null
  readonly priority: number
  readonly pair: PairPlan | null
  /** Names of syncs, which may be declared later. */
  readonly after: readonly string[]
}

/** Resolves a handle or name to a name; throws DATABASE_UNKNOWN or PACER_UNKNOWN. */
export interface HandleResolver {
  resolveDatabase(given: unknown): string
  resolvePacer(given: unknown): string
}

const SYNC_OPTION_NAMES = Object.keys({
  database: 0,
  databases: 0,
  mode: 0,
  schedule: 0,
  pacer: 0,
  execute: 0,
  lookup: 0,
  owner: 0,
  connection: 0,
  scope: 0,
  limits: 0,
  sweep: 0,
  upstreamToleranceMs: 0,
  lagMs: 0,
  retentionMs: 0,
  priority: 0,
  after: 0,
} satisfies Record<keyof SyncOptions, 0>)
const MODES = ['replace', 'incremental'] as const satisfies Mode[]
const OWNER_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_./-]{0,127}$/

export function declareSync(
  name: string,
  options: SyncOptions<any>,
  resolve: HandleResolver,
  pair: PairPlan | null = null,
): SyncDeclaration {
  const check = new OptionChecker(name)
  check.checkKnown('option', options, SYNC_OPTION_NAMES)
  const after = checkAfter(check, options.after)
  // A child without a schedule follows its parents.
  const defaultSchedule = after.length > 0 ? 'continuous' : '30m'
  const {
    mode = 'replace',
    schedule = defaultSchedule,
    pacer = [],
    databases = [],
    owner = null,
    scope = null,
  } = options
  const { upstreamToleranceMs = 0, retentionMs = null, priority = 0 } = options
  if (!MODES.includes(mode))
    check.fail(
      `mode is ${describeValue(mode)}, but it must be one of ${MODES.join(', ')}`,
      didYouMean(String(mode), MODES),
    )
  if (typeof options.execute !== 'function') check.fail(`execute is ${describeValue(options.execute)}, not a function`)
  const { lagMs = options.execute.lagMs ?? 0, lookup = options.execute.lookup } = options
  const { connection = options.execute.connection ?? null } = options
  if (connection !== null) checkName('connection', connection)
  if (lookup !== undefined && typeof lookup !== 'function')
    check.fail(`lookup is ${describeValue(lookup)}, not a function`)
  if (options.database === undefined) check.fail('it names no database')
  if (!Array.isArray(databases)) check.fail(`databases is ${describeValue(databases)}, not an array`)
  if (owner !== null && !(typeof owner === 'string' && OWNER_PATTERN.test(owner)))
    check.fail(`owner is ${describeValue(owner)}`)
  if (scope !== null && typeof scope !== 'string') check.fail(`scope is ${describeValue(scope)}, not a string`)
  check.checkNumber('upstreamToleranceMs', upstreamToleranceMs, 0, Number.MAX_SAFE_INTEGER)
  check.checkNumber('lagMs', lagMs, 0, Number.MAX_SAFE_INTEGER)
  if (retentionMs !== null) check.checkNumber('retentionMs', retentionMs, 1, Number.MAX_SAFE_INTEGER)
  check.checkNumber('priority', priority, -1_000_000, 1_000_000)
  return {
    name,
    mode,
    schedule: parseSchedule(schedule, `Sync "${name}"`),
    databases: [...new Set([options.database, ...databases].map((given) => resolve.resolveDatabase(given)))],
    pacers: [...new Set([pacer].flat().map((given) => resolve.resolvePacer(given)))],
    execute: options.execute,
    lookup: lookup ?? null,
    owner,
    connection,
    scope,
    limits: checkLimits(check, options.limits ?? {}),
    sweep: checkSweep(check, options.sweep ?? {}),
    upstreamToleranceMs,
    lagMs,
    retentionMs,
    priority,
    pair,
    after,
  }
}

function checkAfter(check: OptionChecker, given: SyncOptions['after'] = []): string[] {
  const names = [given]
    .flat()
    .map((entry: unknown): unknown =>
      typeof entry === 'object' && entry !== null && 'name' in entry ? entry.name : entry,
    )
  const wrong = names.find((name) => typeof name !== 'string')
  if (wrong !== undefined) check.fail(`after names ${describeValue(wrong)}, not a sync`)
  return [...new Set(names.map(String))]
}

function checkLimits(check: OptionChecker, limits: Partial<SyncLimits>): Partial<SyncLimits> {
  const names = Object.keys(DEFAULT_LIMITS) as (keyof SyncLimits)[]
  check.checkKnown('limit', limits, names)
  const set = names.filter((name) => limits[name] !== undefined)
  // Zero means "no limit" for minutes and "no retry" for retries and waits; for other limits it would stop every cycle.
  for (const name of set)
    check.checkNumber(
      `limits.${name}`,
      limits[name],
      ['minutesMax', 'retriesMax', 'waitMaxMs'].includes(name) ? 0 : 1,
      Number.MAX_SAFE_INTEGER,
    )
  return Object.fromEntries(set.map((name) => [name, limits[name]]))
}

function checkSweep(check: OptionChecker, sweep: SweepOptions): SyncDeclaration['sweep'] {
  check.checkKnown('sweep option', sweep, ['maxDeleteShare', 'allowEmpty', 'lookupsMax'])
  const { maxDeleteShare, allowEmpty, lookupsMax } = sweep
  if (lookupsMax !== undefined) check.checkNumber('sweep.lookupsMax', lookupsMax, 0, Number.MAX_SAFE_INTEGER)
  if (maxDeleteShare !== undefined) check.checkNumber('sweep.maxDeleteShare', maxDeleteShare, 0, 1)
  if (allowEmpty !== undefined && typeof allowEmpty !== 'boolean')
    check.fail(`sweep.allowEmpty is ${describeValue(allowEmpty)}, not a boolean`)
  return {
    ...(maxDeleteShare === undefined ? {} : { maxShare: maxDeleteShare }),
    ...(allowEmpty === undefined ? {} : { allowEmpty }),
    ...(lookupsMax === undefined ? {} : { lookupsMax }),
  }
}

/** Validates options and names the sync in its errors. */
class OptionChecker {
  readonly #sync: string

  constructor(sync: string) {
    this.#sync = sync
  }

  fail(what: string, hint = ''): never {
    throw new SyncError('SYNC_INVALID', `Sync "${this.#sync}": ${what}.${hint}`)
  }

  checkKnown(kind: string, given: unknown, known: readonly string[]): void {
    if (typeof given !== 'object' || given === null) this.fail(`the ${kind}s are ${describeValue(given)}`)
    const unknown = Object.keys(given).find((key) => !known.includes(key))
    if (unknown !== undefined) this.fail(`unknown ${kind} ${describeValue(unknown)}`, didYouMean(unknown, known))
  }

  checkNumber(what: string, value: unknown, min: number, max: number): void {
    if (typeof value === 'number' && value >= min && value <= max) return
    this.fail(
      `${what} is ${describeValue(value)}, but it must be a number ${max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`}`,
    )
  }
}
