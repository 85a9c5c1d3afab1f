import { required } from '../values/required.ts'
import {
  SyncError,
  type DeleteMode,
  type Destination,
  type Execute,
  type JsonObject,
  type SchemaMode,
} from '../contract/index.ts'
import { toRangeName } from '../engine/range-plan.ts'
import { getRetentionMs } from '../engine/source-retention.ts'
import type { DatabasePlan, SyncLimits, PacerPlan, PairPlan, SyncPlan } from '../engine/sync-plan.ts'
import { toBackfillName, DEFAULT_LIMITS, DEFAULT_SWEEP } from '../engine/sync-plan.ts'
import { findColumnRuleFault } from '../transforms/check-column-rules.ts'
import { planColumns, type ColumnPlan, type ColumnRules } from '../transforms/column-rules.ts'
import { declareRuleColumns } from '../transforms/transform-shape.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { checkDatabaseName, checkName, describeValue } from '../config/names.ts'
import {
  checkChildren,
  checkDestination,
  type DeclaredDestination,
  type DestinationHandle,
  type DestinationOptions,
} from './destination-options.ts'
import { resolveOwner } from './owner.ts'
import { checkNoCycle, checkParents } from './sync-order.ts'
import type { Schedule } from '../config/schedule.ts'
import { compileSchema, type Schema } from './schema.ts'
import { declareSync, type SyncDeclaration, type SyncOptions } from './sync-options.ts'
import { tableShapeOf } from './table-shape.ts'
import { resolveAnchor, checkTrackSource, type TrackOptions } from './track-options.ts'
import { checkWebhookOptions, type WebhookOptions } from './webhook-options.ts'
import type { DeclaredWebhook } from '../webhooks/inbound-webhooks.ts'
import { checkVerification, type DeclaredVerification, type VerificationOptions } from './verification-options.ts'

/** Options of `new Worker`. */
export interface WorkerOptions {
  /** The name in the registry. Default: the file name without its extension. */
  name?: string
}

/** Options of `worker.database`. */
export interface DatabaseOptions {
  /**
   * A Standard Schema (zod, valibot, arktype) or a JSON Schema. Records that do not match are quarantined with the reason. Or,
   * without a schema, a value of `schemaChanges`.
   */
  schema?: Schema | SchemaMode
  /** The resource type on the wire: `person` for the database `people`. Default: the singular of the database name. */
  resourceType?: string
  /**
   * The handling of a record that does not fit the columns. `evolve` (the default): a new field gets a column, and a value that
   * its column cannot hold is stored in `_extra`. `freeze`: no column is added, both are stored in `_extra`. `quarantine`: the
   * record is quarantined until `tidemark schema apply` changes the columns.
   */
  schemaChanges?: SchemaMode
  /**
   * The fields that make up the key: their columns are not null and unique together. A record without one of them is
   * quarantined. Default: the key that the source declares.
   */
  key?: readonly string[]
  /**
   * The minimum retention of replaced and deleted versions. By default, and with `false`, they are kept as long as the log,
   * which the feed needs.
   */
  history?: { keepDays: number } | false
  /**
   * The effect of a delete on the row. `hard` (the default): the row is removed from the table. `soft`: the row keeps its last
   * values, and `_deleted_at` is set.
   */
  deletes?: DeleteMode
  /**
   * Rules that change the fields of every record before anything is written: select, drop, rename, cast, hash, mask, encrypt and
   * map. `schema` and `key` describe the records that the rules return. See docs/guides/columns.md.
   */
  columns?: ColumnRules
}

const SCHEMA_MODES: readonly SchemaMode[] = ['evolve', 'freeze', 'quarantine']
const DELETE_MODES: readonly DeleteMode[] = ['hard', 'soft']

/** At most `allowedRequests` in any `intervalMs`, evenly spaced. All syncs that use the pacer share one queue. */
export interface PacerOptions {
  allowedRequests: number
  intervalMs: number
}

/** A declared database. Pass it to `sync`, `track` and `webhook`. `Row` is the type of its records, for readers. */
export interface DatabaseHandle<Row = any> {
  readonly kind: 'database'
  readonly name: string
  /** Exists only for the compiler. */
  readonly '~row'?: Row
}

/** The records that a schema accepts; any JSON object without a Standard Schema. */
export type RowOf<GivenSchema> = GivenSchema extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly input: infer Row }
    ? Row
    : JsonObject
  : JsonObject

/** A declared pacer. Pass it to `sync` and `track`. */
export interface PacerHandle {
  readonly kind: 'pacer'
  readonly name: string
}

/** A declared sync. */
export interface SyncHandle {
  readonly kind: 'sync'
  readonly name: string
}

export interface TrackHandle {
  readonly kind: 'track'
  readonly name: string
  readonly backfill: string
  readonly delta: string
}

/** A declared webhook. */
export interface WebhookHandle {
  readonly kind: 'webhook'
  readonly name: string
}

export interface PlanDefaults {
  /** The default for syncs that do not set it. */
  limits?: Partial<SyncLimits>
}

/** The declarations of a worker as plain JSON. */
export interface Manifest {
  readonly name: string | null
  readonly databases: readonly {
    readonly name: string
    readonly schema: 'standard' | 'json' | null
    readonly resourceType?: string
    readonly historyDays?: number
    readonly deletes?: DeleteMode
  }[]
  readonly pacers: readonly PacerPlan[]
  readonly syncs: readonly ManifestSync[]
  /** Absent if there are none. */
  readonly webhooks?: readonly { readonly name: string; readonly databases: readonly string[] }[]
  /** Declarations that Tidemark does not run; absent if there are none. */
  readonly notRun?: readonly NotRunDeclaration[]
}

export interface NotRunDeclaration {
  readonly kind: string
  readonly name: string
  readonly note: string | null
}

/** A sync as `worker.manifest` lists it. */
export interface ManifestSync {
  readonly name: string
  readonly mode: SyncPlan['mode']
  readonly schedule: Schedule
  readonly priority: number
  readonly databases: readonly string[]
  readonly pacers: readonly string[]
  readonly owner: string
  /** The role in a pair; null outside one. */
  readonly pair: 'backfill' | 'delta' | null
  /** How long the source keeps the changes that the sync, or the delta of its pair, reads; absent for no limit. */
  readonly retentionMs?: number
  /** The syncs that have to complete before each start; absent for none. */
  readonly after?: readonly string[]
  /** The connection that it reads with; absent for none. */
  readonly connection?: string
}

/** The interface of a worker. Structural, because two copies of this package may be loaded. */
export type WorkerLike = Pick<Worker, 'name' | 'manifest' | 'plan' | 'plans'> &
  Partial<Pick<Worker, 'schemaOf' | 'webhooks' | 'destinations' | 'verifications'>>

interface DeclaredDatabase {
  readonly handle: DatabaseHandle
  readonly plan: DatabasePlan
  readonly schemaKind: 'standard' | 'json' | null
  readonly declaredSchema: Schema | undefined
  readonly resourceType: string | undefined
}

interface DeclaredPacer {
  readonly handle: PacerHandle
  readonly options: Readonly<PacerOptions>
}

/**
 * Declares the databases, pacers and syncs of one file. Declarations have no side effects. A worker file exports it as its
 * default.
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { stripe } from 'tidemark/sources/stripe'
 *
 * const worker = new Worker({ name: 'billing' })
 * const customers = worker.database('customers')
 *
 * worker.track('customers', { database: customers, source: stripe({ apiKey: 'STRIPE_KEY' }).customers, schedule: '1m' })
 *
 * export default worker
 * ```
 */
export class Worker {
  name: string | undefined
  readonly #databases = new Map<string, DeclaredDatabase>()
  readonly #pacers = new Map<string, DeclaredPacer>()
  readonly #syncs = new Map<string, SyncDeclaration>()
  readonly #webhooks = new Map<
    string,
    Pick<WebhookOptions, 'verify' | 'wants' | 'later' | 'execute'> & { readonly lands: boolean }
  >()
  readonly #destinations = new Map<string, Omit<DeclaredDestination, 'databases'> & { databases: string[] | null }>()
  readonly #verifications = new Map<string, DeclaredVerification>()
  /** Keyed by lower case, because SQL names are case-insensitive. */
  readonly #names = new Map<string, Map<string, string>>()

  constructor(options: WorkerOptions = {}) {
    checkOptionNames('WORKER_INVALID', 'Worker', options, ['name'])
    if (options.name !== undefined) checkName('worker', options.name)
    this.name = options.name
  }

  /** Declares a database: one table in the store, with its history and feed. */
  database<const GivenSchema extends Schema | SchemaMode = SchemaMode>(
    name: string,
    options: DatabaseOptions & { schema?: GivenSchema } = {},
  ): DatabaseHandle<RowOf<GivenSchema>> {
    checkDatabaseName(name)
    this.#checkNameFree('database', name)
    checkOptionNames('SCHEMA_INVALID', `Database "${name}"`, options, [
      'schema',
      'resourceType',
      'schemaChanges',
      'key',
      'history',
      'deletes',
      'columns',
    ])
    if (options.resourceType !== undefined) checkName('resource type', options.resourceType)
    if (options.key !== undefined) checkKey(name, options.key)
    const { schema, schemaChanges } = resolveSchemaOptions(name, options)
    const compiled = schema === undefined ? null : compileSchema(name, schema)
    const handle = Object.freeze({ kind: 'database', name } as const)
    const validate = options.key === undefined ? compiled?.validate : requireKey(options.key, compiled?.validate)
    const columns = planDatabaseColumns(name, options)
    const declaredShape = tableShapeOf(schema, options.key)
    const shape = columns === null ? declaredShape : declareRuleColumns(columns, declaredShape)
    const historyDays = parseHistoryDays(name, options.history)
    const deletes = parseDeleteMode(name, options.deletes)
    const plan: DatabasePlan = {
      name,
      ...(historyDays !== null && { historyDays }),
      ...(deletes === 'soft' && { deletes }),
      ...(validate !== undefined && { validate }),
      ...(shape !== undefined && { shape }),
      ...(columns !== null && { columns }),
      ...(schemaChanges !== undefined && { schemaChanges }),
    }
    this.#databases.set(name, {
      handle,
      plan,
      schemaKind: compiled?.kind ?? null,
      declaredSchema: schema,
      resourceType: options.resourceType,
    })
    this.#reserveName('database', name)
    return handle
  }

  /** Declares a rate limit that syncs share in all processes. */
  pacer(name: string, options: PacerOptions): PacerHandle {
    this.#checkNameFree('pacer', name)
    checkOptionNames('PACER_INVALID', `Pacer "${name}"`, options, ['allowedRequests', 'intervalMs'])
    const { allowedRequests, intervalMs } = options
    for (const [option, value] of Object.entries({ allowedRequests, intervalMs })) {
      if (!Number.isSafeInteger(value) || value < 1) {
        throw new SyncError('PACER_INVALID', `Pacer "${name}": ${option} is ${describeValue(value)}.`)
      }
    }
    const handle = Object.freeze({ kind: 'pacer', name } as const)
    this.#pacers.set(name, { handle, options: { allowedRequests, intervalMs } })
    this.#reserveName('pacer', name)
    return handle
  }

  /** Declares a sync: a source, the database that it writes, and its schedule. */
  sync<State>(name: string, options: SyncOptions<State>): SyncHandle {
    return this.#declareSync(name, options, null)
  }

  /**
   * Declares a pair for a source that reports changes: `<name>-backfill` reads everything on request or on its own
   * schedule, and `<name>` follows changes. Both own one table together and may run concurrently.
   */
  track<BackfillState, DeltaState>(name: string, options: TrackOptions<BackfillState, DeltaState>): TrackHandle {
    const { source, schedule, backfillSchedule = 'manual', ...given } = options
    const defaultSchedule = [given.after ?? []].flat().length > 0 ? 'continuous' : '5m'
    checkTrackSource(name, source)
    const { lookup, lagMs } = source
    const shared = { ...(lagMs !== undefined && { lagMs }), ...given, ...(lookup !== undefined && { lookup }) }
    const backfill = toBackfillName(name)
    this.#checkNameFree('sync', name)
    this.#declareSync(
      backfill,
      { ...shared, mode: 'replace', schedule: backfillSchedule, execute: source.backfill },
      { role: 'backfill', delta: name, anchor: resolveAnchor(source) },
    )
    try {
      this.#declareSync(
        name,
        { ...shared, mode: 'incremental', schedule: schedule ?? defaultSchedule, execute: source.delta },
        { role: 'delta', backfill },
      )
    } catch (error) {
      // A failed declaration must not reserve the name of either sync.
      this.#syncs.delete(backfill)
      this.#names.get(backfill.toLowerCase())?.delete('sync')
      throw error
    }
    return Object.freeze({ kind: 'track', name, backfill, delta: name } as const)
  }

  /** Receives messages of a vendor at `POST /webhooks/<worker>/<name>`. Their changes land under a sync of the same name. */
  webhook(name: string, options: WebhookOptions): WebhookHandle {
    this.#checkNameFree('webhook', name)
    checkWebhookOptions(name, options)
    const { database, databases = [], verify, wants, later, execute } = options
    const withRules = [database, ...databases]
      .map((given) => (typeof given === 'object' ? given.name : given))
      .find((given) => given !== undefined && this.#databases.get(given)?.plan.columns !== undefined)
    if (later === true && withRules !== undefined)
      throw new SyncError(
        'COLUMNS_INVALID',
        `Webhook "${name}": \`later\` stores messages before the column rules of "${withRules}" are applied. Remove it.`,
      )
    if (database !== undefined) {
      // The sync reads nothing itself; its pages come from the messages.
      const wait: Execute = async (state) => ({ changes: [], hasMore: false, nextState: state ?? {} })
      this.#declareSync(name, { database, databases, mode: 'incremental', schedule: 'manual', execute: wait }, null)
    }
    this.#webhooks.set(name, {
      verify,
      execute,
      ...(wants !== undefined && { wants }),
      ...(later !== undefined && { later }),
      lands: database !== undefined,
    })
    this.#reserveName('webhook', name)
    return Object.freeze({ kind: 'webhook', name } as const)
  }

  /** The declared webhooks with their defaults applied, for a server. */
  webhooks(defaults: PlanDefaults = {}): DeclaredWebhook[] {
    const syncs = [...this.#syncs.keys()].filter((name) => this.#webhooks.get(name)?.lands !== true)
    return [...this.#webhooks].map(([name, { lands, ...act }]) => ({
      worker: this.#registryName,
      name,
      ...act,
      plan: lands ? this.plan(name, defaults) : null,
      syncs,
    }))
  }

  /**
   * Declares a destination: another system that receives databases of the store, exactly once. See
   * docs/guides/destinations.md.
   */
  destination(name: string, destination: Destination, options: DestinationOptions = {}): DestinationHandle {
    this.#checkNameFree('destination', name)
    const checked = checkDestination(name, destination, options)
    const databases =
      options.databases?.map((given) => this.#resolve('database', this.#databases, given, name, 'Destination')) ?? null
    const children = checkChildren(name, destination, options, databases ?? [...this.#databases.keys()])
    this.#destinations.set(name, { name, destination, databases, children, ...checked })
    this.#reserveName('destination', name)
    return Object.freeze({ kind: 'destination', name } as const)
  }

  /** Compares a database with its source on a schedule. See docs/guides/verify.md. */
  verify(database: DatabaseHandle | string, options: VerificationOptions = {}): void {
    const name = this.#resolve('database', this.#databases, database, 'verify', 'Worker')
    this.#verifications.set(name, checkVerification(name, options))
  }

  /** The declared verifications, for a runner. */
  verifications(): DeclaredVerification[] {
    return [...this.#verifications.values()]
  }

  /** The declared destinations, for a runner. Without a selection, they receive every database of the worker. */
  destinations(): DeclaredDestination[] {
    return [...this.#destinations.values()].map((declared) => ({
      ...declared,
      databases: declared.databases ?? [...this.#databases.keys()],
    }))
  }

  /** All declarations as data. */
  get manifest(): Manifest {
    checkParents([...this.#syncs.values()])
    return {
      name: this.name ?? null,
      databases: [...this.#databases.values()].map(({ handle, plan, schemaKind: schema, resourceType }) => ({
        name: handle.name,
        schema,
        ...(resourceType !== undefined && { resourceType }),
        ...(typeof plan.historyDays === 'number' && { historyDays: plan.historyDays }),
        ...(plan.deletes !== undefined && { deletes: plan.deletes }),
      })),
      pacers: [...this.#pacers.keys()].map((name) => this.#pacerPlan(name)),
      syncs: [...this.#syncs.values()].map((sync) => ({
        name: sync.name,
        mode: sync.mode,
        schedule: sync.schedule,
        priority: sync.priority,
        databases: sync.databases,
        pacers: sync.pacers,
        owner: this.#ownerOf(sync),
        pair: sync.pair?.role ?? null,
        ...this.#retention(sync),
        ...(sync.connection !== null && { connection: sync.connection }),
        ...(sync.after.length > 0 && { after: sync.after }),
      })),
      ...(this.#webhooks.size > 0 && {
        webhooks: [...this.#webhooks].map(([name, { lands }]) => ({
          name,
          databases: lands ? required(this.#syncs.get(name), `sync ${name}`).databases : [],
        })),
      }),
    }
  }

  /** The declared schema of a database. */
  schemaOf(database: string): Schema | undefined {
    return this.#databases.get(database)?.declaredSchema
  }

  /** The declared syncs with their defaults applied, for a runner. */
  plans(defaults: PlanDefaults = {}): SyncPlan[] {
    return [...this.#syncs.values()].map((sync) => this.#plan(sync, defaults))
  }

  /** One of `plans`, by name. */
  plan(name: string, defaults: PlanDefaults = {}): SyncPlan {
    const sync = this.#syncs.get(name)
    if (sync !== undefined) return this.#plan(sync, defaults)
    const hint = didYouMean(name, this.#syncs.keys())
    throw new SyncError('SYNC_UNKNOWN', `Worker "${this.#registryName}" has no sync ${describeValue(name)}.${hint}`)
  }

  #declareSync(name: string, options: SyncOptions<any>, pair: PairPlan | null): SyncHandle {
    this.#checkNameFree('sync', name)
    const declaration = declareSync(
      name,
      options,
      {
        resolveDatabase: (given) => this.#resolve('database', this.#databases, given, name),
        resolvePacer: (given) => this.#resolve('pacer', this.#pacers, given, name),
      },
      pair,
    )
    checkNoCycle([...this.#syncs.values(), declaration], name)
    this.#syncs.set(name, declaration)
    this.#reserveName('sync', name)
    return Object.freeze({ kind: 'sync', name } as const)
  }

  #retention({ name, pair }: SyncDeclaration): Pick<ManifestSync, 'retentionMs'> {
    const retentionMs = getRetentionMs(this.plan(pair?.role === 'backfill' ? pair.delta : name))
    return retentionMs === null ? {} : { retentionMs }
  }

  /** Created on request, because owners depend on syncs that are declared later. */
  #plan(sync: SyncDeclaration, defaults: PlanDefaults): SyncPlan {
    return {
      worker: this.#registryName,
      sync: sync.name,
      mode: sync.mode,
      databases: sync.databases.map((name) => required(this.#databases.get(name), `database ${name}`).plan),
      owner: this.#ownerOf(sync),
      execute: sync.execute,
      lookup: sync.lookup,
      pacers: sync.pacers.map((name) => this.#pacerPlan(name)),
      limits: { ...DEFAULT_LIMITS, ...defaults.limits, ...sync.limits },
      sweep: { ...DEFAULT_SWEEP, ...sync.sweep },
      ...(sync.connection !== null && { connection: sync.connection }),
      scope: sync.scope,
      upstreamToleranceMs: sync.upstreamToleranceMs,
      lagMs: sync.lagMs,
      retentionMs: sync.retentionMs,
      ...(sync.pair === null ? {} : { pair: sync.pair }),
      ...(sync.mode === 'incremental' && { listings: this.#listingNames(sync) }),
    }
  }

  /** See SyncPlan.listings. A range read is a listing too. */
  #listingNames({ databases }: SyncDeclaration): string[] {
    const neighbours = [...this.#syncs.values()].filter((other) =>
      other.databases.some((name) => databases.includes(name)),
    )
    const ranges = neighbours
      .filter(({ execute }) => execute.range !== undefined || execute.selectPartitions !== undefined)
      .map(({ name, pair }) => toRangeName(pair?.role === 'backfill' ? pair.delta : name))
    return [...neighbours.filter(({ mode }) => mode === 'replace').map(({ name }) => name), ...new Set(ranges)]
  }

  get #registryName(): string {
    return this.name ?? 'worker'
  }

  #ownerOf(sync: SyncDeclaration): string {
    return resolveOwner(this.#registryName, sync, [...this.#syncs.values()])
  }

  #pacerPlan(name: string): PacerPlan {
    return { name, ...required(this.#pacers.get(name), `pacer ${name}`).options }
  }

  #resolve<Kind extends 'database' | 'pacer'>(
    kind: Kind,
    declared: ReadonlyMap<string, { readonly handle: { readonly kind: Kind; readonly name: string } }>,
    given: unknown,
    sync: string,
    user = 'Sync',
  ): string {
    const code = kind === 'database' ? 'DATABASE_UNKNOWN' : 'PACER_UNKNOWN'
    const name = typeof given === 'object' && given !== null && 'name' in given ? given.name : given
    const found = typeof name === 'string' ? declared.get(name) : undefined
    if (typeof name !== 'string' || found === undefined) {
      const hint = typeof name === 'string' ? didYouMean(name, declared.keys()) : ''
      throw new SyncError(
        code,
        `${user} "${sync}" uses ${kind} ${describeValue(name)}, which this worker has not declared.${hint}`,
      )
    }
    if (typeof given === 'object' && given !== found.handle) {
      throw new SyncError(code, `${user} "${sync}" uses ${kind} "${name}" of another worker.`)
    }
    return name
  }

  #checkNameFree(kind: string, name: unknown): asserts name is string {
    checkName(kind, name)
    for (const [other, holder] of this.#names.get(name.toLowerCase()) ?? []) {
      // A sync may share the name of its database, because no command accepts both.
      if (kind !== other && kind !== 'pacer' && other !== 'pacer') continue
      throw new SyncError('NAME_TAKEN', `The name "${name}" for a ${kind} is already used by the ${holder}.`)
    }
  }

  /** Called last, so that a failed declaration reserves nothing. */
  #reserveName(kind: string, name: string): void {
    const kinds = this.#names.get(name.toLowerCase()) ?? new Map<string, string>()
    this.#names.set(name.toLowerCase(), kinds.set(kind, `${kind} "${name}"`))
  }
}

/** `schema` may be a mode if there is no schema to declare. */
function resolveSchemaOptions(
  name: string,
  { schema, schemaChanges }: DatabaseOptions,
): { schema?: Schema; schemaChanges?: SchemaMode } {
  const named =
    typeof schema === 'string' ? { option: 'schema', mode: schema } : { option: 'schemaChanges', mode: schemaChanges }
  if (named.mode !== undefined && !SCHEMA_MODES.includes(named.mode)) {
    throw new SyncError(
      'SCHEMA_INVALID',
      `Database "${name}": ${named.option} is ${describeValue(named.mode)}, but it must be one of ${SCHEMA_MODES.join(', ')}.`,
    )
  }
  if (typeof schema === 'string' && schemaChanges !== undefined && schemaChanges !== schema) {
    throw new SyncError(
      'SCHEMA_INVALID',
      `Database "${name}": schema is ${describeValue(schema)} and schemaChanges is ${describeValue(schemaChanges)}. Set only one of them.`,
    )
  }
  return {
    ...(schema !== undefined && typeof schema !== 'string' && { schema }),
    ...(named.mode !== undefined && { schemaChanges: named.mode }),
  }
}

function checkKey(database: string, key: unknown): void {
  const isKey =
    Array.isArray(key) &&
    key.length > 0 &&
    new Set(key).size === key.length &&
    key.every((name) => typeof name === 'string' && name !== '')
  if (!isKey)
    throw new SyncError(
      'SCHEMA_INVALID',
      `Database "${database}": \`key\` is ${describeValue(key)}, but it must list the fields that make up the key.`,
    )
}

function planDatabaseColumns(database: string, { columns, key }: DatabaseOptions): ColumnPlan | null {
  if (columns === undefined) return null
  const fault = findColumnRuleFault(columns, key)
  if (fault === null) return planColumns(columns)
  const rule = fault.rule === '' ? 'columns' : `columns.${fault.rule}`
  throw new SyncError(
    'COLUMNS_INVALID',
    `Database "${database}": ${rule}: ${fault.message}${endSentence(fault.message)}`,
  )
}

function endSentence(text: string): string {
  return /[.?]$/.test(text) ? '' : '.'
}

/** Key columns are not null, so a record without its key is rejected. */
function requireKey(key: readonly string[], validate: DatabasePlan['validate']): NonNullable<DatabasePlan['validate']> {
  return (record) => {
    const missing = key.find(
      (name) => !Object.hasOwn(record, name) || record[name] === null || record[name] === undefined,
    )
    if (missing !== undefined) return `${missing}: it is part of the key, but the record has no value for it`
    return validate?.(record) ?? null
  }
}

function parseHistoryDays(database: string, history: DatabaseOptions['history']): number | null {
  if (history === undefined || history === false) return null
  checkOptionNames('SCHEMA_INVALID', `history of database "${database}"`, history, ['keepDays'])
  if (!Number.isSafeInteger(history.keepDays) || history.keepDays < 1) {
    throw new SyncError(
      'SCHEMA_INVALID',
      `Database "${database}": history.keepDays is ${describeValue(history.keepDays)}, but it must be a whole number of at least 1.`,
    )
  }
  return history.keepDays
}

function parseDeleteMode(database: string, deletes: DatabaseOptions['deletes'] = 'hard'): DeleteMode {
  if (DELETE_MODES.includes(deletes)) return deletes
  throw new SyncError(
    'SCHEMA_INVALID',
    `Database "${database}": \`deletes\` is ${describeValue(deletes)}, but it must be 'hard' or 'soft'.`,
  )
}

export function isWorker(value: unknown): value is WorkerLike {
  if (typeof value !== 'object' || value === null) return false
  const worker = value as Partial<WorkerLike>
  return (
    typeof worker.plan === 'function' && typeof worker.plans === 'function' && Array.isArray(worker.manifest?.syncs)
  )
}

function checkOptionNames(
  code: 'WORKER_INVALID' | 'SCHEMA_INVALID' | 'PACER_INVALID',
  subject: string,
  options: unknown,
  known: string[],
): void {
  if (typeof options !== 'object' || options === null)
    throw new SyncError(code, `${subject}: the options are ${describeValue(options)}.`)
  const unknown = Object.keys(options).find((option) => !known.includes(option))
  if (unknown !== undefined) {
    throw new SyncError(code, `${subject} has no option ${describeValue(unknown)}.${didYouMean(unknown, known)}`)
  }
}
