import { SyncError, type Change, type Execute, type JsonObject } from '../../contract/index.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import type { ScheduleInput } from '../../config/schedule.ts'
import type { Schema } from '../schema.ts'
import { Worker, type Manifest, type NotRunDeclaration, type PlanDefaults, type WorkerLike } from '../worker.ts'
import type { NotionCapability, NotionManifest, NotionSchedule, NotionWorker } from './manifest.ts'
import { createRecordReader, createRecordSchema, type NotionPage } from './record.ts'
import { withPacing } from './sdk.ts'

/** A call waits for a pacer once per request, so a slow page with many requests is not a stall. */
const PAGE_DEADLINE_MS = 600_000

/** Adapts a `@notionhq/workers` worker: reads its manifest and calls its `run`. */
export class NotionWorkerAdapter implements WorkerLike {
  readonly #declared = new Worker()
  readonly #syncs: readonly DatabaseSync[]
  readonly #notRun: readonly NotRunDeclaration[]

  constructor(notion: NotionWorker) {
    const { databases, pacers, capabilities, ...rest } = notion.manifest
    this.#syncs = capabilities.filter(isDatabaseSync)
    this.#notRun = listNotRun({ capabilities, ...rest })
    const readers: RecordReaders = new Map(
      databases.map(({ key, config }) => [key, createRecordReader(config.schema.properties)]),
    )
    for (const { key, config } of databases)
      this.#declared.database(key, { schema: createRecordSchema(config.schema.properties) })
    for (const { key, config } of pacers) this.#declared.pacer(key, toWholeNumbers(config))
    for (const { key, config } of this.#syncs) {
      this.#declared.sync(key, {
        database: config.databaseKey,
        // The databases and pacers that a sync uses are known only when it runs.
        databases: databases.map((database) => database.key),
        pacer: pacers.map((pacer) => pacer.key),
        mode: config.mode ?? 'replace',
        schedule: config.schedule === undefined ? '30m' : toScheduleInput(config.schedule),
        limits: { deadlineMs: PAGE_DEADLINE_MS },
        execute: createExecute(notion, key, readers),
      })
    }
  }

  get name(): string | undefined {
    return this.#declared.name
  }

  set name(name: string | undefined) {
    this.#declared.name = name
  }

  get manifest(): Manifest {
    const manifest = this.#declared.manifest
    return {
      ...manifest,
      syncs: manifest.syncs.map((sync) => ({
        ...sync,
        databases: sync.databases.slice(0, 1),
        owner: this.#ownerOf(sync.name),
      })),
      notRun: this.#notRun,
    }
  }

  schemaOf(database: string): Schema | undefined {
    return this.#declared.schemaOf(database)
  }

  plans(defaults: PlanDefaults = {}): SyncPlan[] {
    return this.#declared.plans(defaults).map((plan) => this.#withOwners(plan))
  }

  plan(name: string, defaults: PlanDefaults = {}): SyncPlan {
    return this.#withOwners(this.#declared.plan(name, defaults))
  }

  /** The replace sync of a database, if there is exactly one, owns the rows that deltas write to it. */
  #withOwners(plan: SyncPlan): SyncPlan {
    const owner = this.#ownerOf(plan.sync)
    if (plan.mode === 'replace') return { ...plan, owner }
    return {
      ...plan,
      owner,
      databases: plan.databases.map((database) => {
        const [keeper, second] = this.#syncs.filter(
          ({ config }) => config.databaseKey === database.name && config.mode !== 'incremental',
        )
        return keeper === undefined || second !== undefined
          ? database
          : { ...database, owner: this.#ownerOf(keeper.key) }
      }),
    }
  }

  #ownerOf(sync: string): string {
    return `${this.name ?? 'worker'}/${sync}`
  }
}

type DatabaseSync = NotionCapability & { readonly config: { readonly databaseKey: string } }

function isDatabaseSync(capability: NotionCapability): capability is DatabaseSync {
  return capability._tag === 'sync' && capability.config.databaseKey !== undefined
}

// ── Pages ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface NotionResult {
  readonly changes: readonly NotionChange[]
  readonly hasMore: boolean
  readonly nextUserContext?: unknown
}

interface NotionChange extends NotionPage {
  readonly type: 'upsert' | 'delete'
  readonly key: string
  readonly targetDatabaseKey: string
  readonly upstreamUpdatedAt?: string | null
}

/** Grouped by database. */
type RecordReaders = ReadonlyMap<string, ReturnType<typeof createRecordReader>>

function createExecute(notion: NotionWorker, sync: string, readers: RecordReaders): Execute {
  return async (state, { pacer }) => {
    const { changes, hasMore, nextUserContext } = (await withPacing(pacer, () =>
      notion.run(sync, { state }, { concreteOutput: true }),
    ).catch(rethrowFor(sync))) as NotionResult
    return {
      changes: changes.map((change) => toChange(change, readers)),
      hasMore,
      nextState: toSerializable(nextUserContext),
    }
  }
}

function toChange(change: NotionChange, readers: RecordReaders): Change {
  const { type, key, targetDatabaseKey: database, upstreamUpdatedAt } = change
  const at = upstreamUpdatedAt == null ? {} : { upstreamUpdatedAt: normalizeInstant(upstreamUpdatedAt) }
  if (type !== 'upsert') return { type, key, database, ...at }
  // The engine rejects changes to an undeclared database.
  return { type, key, database, ...at, record: readers.get(database)?.(change) ?? (change.properties as JsonObject) }
}

/** The package wraps errors of `execute`, except rate limits. Its other errors concern the returned page. */
function rethrowFor(sync: string): (error: unknown) => never {
  return (error) => {
    const { name, cause } = (error ?? {}) as { name?: unknown; cause?: unknown }
    if (name === 'ExecutionError') throw cause
    if (name === 'RateLimitError') throw error
    throw new SyncError(
      'PAGE_INVALID',
      `${sync}: \`execute\` returned a page whose \`changes\` is not an array of changes.`,
      { cause: error },
    )
  }
}

/** ISO 8601 allows missing seconds, zone and time. The defaults are midnight and UTC, as for a JavaScript date. */
function normalizeInstant(text: string): string {
  if (typeof text !== 'string' || canonicalizeInstant(text) !== null) return text
  const [, day, time = '00:00', seconds = ':00', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/.exec(text) ?? []
  return day === undefined ? text : `${day}T${time}${seconds}${zone}`
}

/** Serializes state like the package's own runtime: undefined fields are dropped, and a Date becomes text. The engine validates the rest. */
function toSerializable(value: unknown, depth = 0): unknown {
  if (value instanceof Date) return value.toJSON()
  if (typeof value !== 'object' || value === null || depth > STATE_DEPTH_MAX) return value
  if (Array.isArray(value)) return value.map((item) => toSerializable(item, depth + 1))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      member === undefined ? [] : [[name, toSerializable(member, depth + 1)]],
    ),
  )
}

/** The engine rejects deeper state anyway. */
const STATE_DEPTH_MAX = 64

// ── Declarations ─────────────────────────────────────────────────────────────────────────────────────────────────

function toScheduleInput(schedule: NotionSchedule): ScheduleInput {
  switch (schedule.type) {
    case 'interval':
      return `${schedule.intervalMs / 60_000}m`
    case 'cron':
      return { cron: schedule.cron, ...(schedule.zone !== undefined && { zone: schedule.zone }) }
    default:
      return schedule.type
  }
}

/** The package accepts fractions, such as 0.5 requests per second; converted to whole numbers, one per 2 seconds. */
function toWholeNumbers(config: NotionManifest['pacers'][number]['config']): {
  allowedRequests: number
  intervalMs: number
} {
  const { allowedRequests, intervalMs } = config
  return Number.isInteger(allowedRequests) && Number.isInteger(intervalMs)
    ? { allowedRequests, intervalMs }
    : { allowedRequests: 1, intervalMs: Math.ceil(intervalMs / allowedRequests) }
}

function listNotRun({
  capabilities,
  credentials = [],
}: Pick<NotionManifest, 'capabilities' | 'credentials'>): NotRunDeclaration[] {
  return [
    ...capabilities
      .filter((capability) => !isDatabaseSync(capability))
      .map((capability) => ({
        kind: capability._tag.replaceAll('_', ' '),
        name: capability.key,
        note: describeCapability(capability),
      })),
    ...credentials.map(({ key }) => ({ kind: 'credential', name: key, note: 'requests are sent without it' })),
  ]
}

function describeCapability({ _tag, key, config }: NotionCapability): string | null {
  if (_tag === 'sync') return 'it does not write to a database'
  // The package reads the token from this variable, so it works here once the variable is set.
  return _tag === 'oauth'
    ? `its token is read from OAUTH_${Buffer.from(config.name ?? key)
        .toString('hex')
        .toUpperCase()}_ACCESS_TOKEN`
    : null
}
