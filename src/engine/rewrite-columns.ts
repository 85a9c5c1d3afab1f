import {
  SyncError,
  type Change,
  type ColumnType,
  type JsonObject,
  type Lease,
  type LogEntry,
  type Store,
  type StoredColumnRules,
  type TableShape,
} from '../contract/index.ts'
import type { RandomBytes } from '../registry/seal.ts'
import { parseFingerprint } from '../transforms/column-rules.ts'
import { planConversion, undoRenames, type Conversion } from '../transforms/plan-conversion.ts'
import { parseJson } from '../values/json.ts'
import { required } from '../values/required.ts'
import { CycleCounters } from './cycle-counters.ts'
import { PagePreparer, type PreparedPage } from './page-preparer.ts'
import { PageTransformer } from './page-transformer.ts'
import { RetryingStore } from './retrying-store.ts'
import {
  buildCommitColumnRules,
  buildCommitOwners,
  buildCommitSchemaModes,
  type DatabasePlan,
  type SyncPlan,
} from './sync-plan.ts'
import { waitForLease, type LeaseWait } from './wait-for-lease.ts'

export interface RewriteOptions extends LeaseWait {
  readonly store: Store
  readonly actor: string
  readonly database: string
  /** Syncs of the worker whose rows of the database are rewritten by runs of their own. */
  readonly others?: ReadonlySet<string>
  /** Count, and write nothing. */
  readonly dryRun: boolean
  readonly random: RandomBytes
  readonly onProgress?: (rows: number) => void
}

export interface RewriteResult {
  /** Rows of the sync. */
  readonly rows: number
  /** Rows that change by the rules. */
  readonly changed: number
  /** Rows that the rules, the schema or the columns do not accept. They keep their stored form. */
  readonly refused: number
  /** Rows that only the source can give: the number by reason. */
  readonly lost: Readonly<Record<string, number>>
  /** All rows follow the rules now, and the store knows it. */
  readonly isApplied: boolean
}

const PAGE_ENTRIES = 200
const OVERLAPS_MAX = 5
const READ_CONCURRENCY = 32

/**
 * Rewrites the stored rows of a sync by the declared column rules, without the source. Each row is converted from the
 * rules by which it was written, and a rewritten row has a later sequence, so a rewriting that was interrupted continues
 * where it stopped. The rows are landed by the ordinary commit; no state moves.
 */
export async function rewriteColumns(plan: SyncPlan, options: RewriteOptions): Promise<RewriteResult> {
  const { store, ports, database, actor, dryRun } = options
  const columns = findDatabase(plan, database).columns ?? null
  const rules = columns?.fingerprint ?? ''
  const change = { worker: plan.worker, sync: plan.sync, database, rules }
  if (dryRun) {
    const stored = (await store.columnRules(plan.worker)).find(
      (one) => one.sync === plan.sync && one.database === database,
    )
    const rewriting = new Rewriting(plan, options, null)
    await rewriting.run(stored?.used ?? [{ sync: '', since: 0, rules: '' }])
    return { ...rewriting.result, isApplied: false }
  }
  const retryingStore = new RetryingStore(store, ports, new CycleCounters())
  const { lease, version } = await waitForLease(plan, retryingStore, options)
  const held = [lease]
  const renew = async (): Promise<void> => {
    const request = { ttlMs: plan.limits.leaseTtlMs, at: ports.clock.now() }
    for (const one of held)
      if (!(await store.renew(one, request)))
        throw new SyncError('LEASE_LOST', `${one.ref.sync}: another runner took over.`)
  }
  try {
    const by = { actor, reason: 'the stored rows were rewritten' }
    const note = async (isApplied: boolean): Promise<StoredColumnRules | null> =>
      store.changeColumnRules({ ...change, isApplied }, { ...by, at: ports.clock.now() })
    // Noted before the first row is written: a later run does not convert rewritten rows again.
    const noted = required(await note(false), 'stored rules')
    const rewriting = new Rewriting(plan, options, { lease, version, retryingStore, renew })
    await rewriting.run(noted.used)
    // The delta may have written rows meanwhile. While its lease is held too, it writes no more.
    if (plan.pair?.role === 'backfill') {
      held.push((await waitForLease({ ...plan, sync: plan.pair.delta }, retryingStore, options)).lease)
      await rewriting.run(required(await note(false), 'stored rules').used)
    }
    const { refused, lost } = rewriting.result
    const isComplete = refused === 0 && Object.keys(lost).length === 0
    await renew()
    const isApplied = isComplete && (await note(true)) !== null
    return { ...rewriting.result, isApplied }
  } finally {
    for (const one of held) await store.release(one).catch(() => {})
  }
}

interface WriteContext {
  readonly lease: Lease
  readonly version: number
  readonly retryingStore: RetryingStore
  /** Throws if a lease is lost. */
  readonly renew: () => Promise<void>
}

class Rewriting {
  readonly #plan: SyncPlan
  readonly #database: DatabasePlan
  readonly #options: RewriteOptions
  /** Null in a dry run. */
  readonly #context: WriteContext | null
  readonly #preparer: PagePreparer
  readonly #conversions = new Map<string, Conversion>()
  #types: ReadonlyMap<string, ColumnType> = new Map()
  /** The sequence up to which the rows were rewritten. */
  #end = 0
  #rows = 0
  #changed = 0
  #refused = 0
  #lost: Record<string, number> = {}

  constructor(plan: SyncPlan, options: RewriteOptions, context: WriteContext | null) {
    this.#plan = plan
    this.#database = findDatabase(plan, options.database)
    this.#options = options
    this.#context = context
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  get result(): Omit<RewriteResult, 'isApplied'> {
    return { rows: this.#rows, changed: this.#changed, refused: this.#refused, lost: this.#lost }
  }

  /** Rewrites the rows that were written since the last call. */
  async run(used: StoredColumnRules['used']): Promise<void> {
    const { store, database, others = new Set(), onProgress, signal } = this.#options
    const { columns = [] } = (await store.schema(database)) ?? {}
    this.#types = new Map(columns.map(({ member, type }) => [member, type as ColumnType]))
    const end = await store.headSequence()
    for (let after = this.#end; ;) {
      signal.throwIfAborted()
      await this.#context?.renew()
      const entries = await store.changes({ after, limit: PAGE_ENTRIES, databases: [database] })
      const stored = entries.filter(
        ({ sequence, text, worker, ...entry }) =>
          sequence <= end && text !== null && worker === this.#plan.worker && !this.#isRewritten(entry),
      )
      await this.#rewritePage(
        stored.filter(({ sync }) => this.#isOwn(sync) || !others.has(sync)),
        used,
      )
      onProgress?.(this.#rows)
      const last = entries.at(-1)
      if (last === undefined || last.sequence >= end) break
      after = last.sequence
    }
    this.#end = end
  }

  /** By the first call; see the transition `columns`. */
  #isRewritten({ cycle, page }: Pick<LogEntry, 'cycle' | 'page'>): boolean {
    return this.#end > 0 && cycle === 0 && page === -1
  }

  /** The delta of a backfill writes by the same rules. */
  #isOwn(sync: string): boolean {
    const { pair } = this.#plan
    return sync === this.#plan.sync || (pair?.role === 'backfill' && sync === pair.delta)
  }

  async #rewritePage(entries: readonly LogEntry[], used: StoredColumnRules['used']): Promise<void> {
    for (let attempt = 1; attempt <= OVERLAPS_MAX; attempt++) {
      const page = await this.#preparePage(entries, used)
      const written = await this.#write(page)
      if (written === null) continue
      this.#rows += page.rows
      this.#changed += written.updated
      this.#refused += page.refused + written.refused
      for (const reason of page.lost) this.#lost[reason] = (this.#lost[reason] ?? 0) + 1
      return
    }
    throw new SyncError(
      'OVERLAP_UNRESOLVED',
      `${this.#plan.sync}: another sync kept writing the rows that are rewritten. Run the command again.`,
    )
  }

  async #preparePage(entries: readonly LogEntry[], used: StoredColumnRules['used']): Promise<RewrittenPage> {
    const readAtSequence = await this.#options.store.headSequence()
    const rows = await this.#findCurrent(entries)
    const changes: Change[] = []
    const lost: string[] = []
    // Which rules such a row follows is recorded for its own sync, if at all.
    for (const { sync } of rows.filter((row) => !this.#isOwn(row.sync))) lost.push(`it was written by ${sync}`)
    const own = rows.filter((row) => this.#isOwn(row.sync))
    for (const [rules, group] of groupByRules(own, used)) {
      const conversion = this.#findConversion(rules)
      if (conversion.kind === 'lost') for (const reason of conversion.reasons) lost.push(...group.map(() => reason))
      if (conversion.kind === 'convert') changes.push(...(await this.#convert(group, conversion)))
    }
    const prepared = await this.#preparer.prepare(changes, [this.#typeRenamed()])
    const texts = new Map(rows.map(({ key, text }) => [key, text]))
    return {
      readAtSequence,
      rows: rows.length,
      lost,
      refused: changes.length - prepared.landings.length,
      changed: prepared.landings.filter((one) => one.type === 'upsert' && texts.get(one.key) !== one.text).length,
      prepared,
    }
  }

  /** The entries that are the current versions of their rows. */
  async #findCurrent(entries: readonly LogEntry[]): Promise<LogEntry[]> {
    const { store } = this.#options
    const current: LogEntry[] = []
    for (let start = 0; start < entries.length; start += READ_CONCURRENCY)
      await Promise.all(
        entries.slice(start, start + READ_CONCURRENCY).map(async (entry) => {
          if ((await store.row(entry.database, entry.key))?.sequence === entry.sequence) current.push(entry)
        }),
      )
    return current
  }

  #findConversion(rules: string | null): Conversion {
    const id = rules ?? 'unknown'
    let conversion = this.#conversions.get(id)
    if (conversion === undefined) {
      const known = rules === null ? null : parseFingerprint(rules)
      conversion =
        known === null
          ? { kind: 'lost', reasons: ['it is not recorded by which rules the row was written'] }
          : planConversion(known, this.#database.columns ?? null)
      this.#conversions.set(id, conversion)
    }
    return conversion
  }

  #convert(
    rows: readonly LogEntry[],
    { plan, undo }: Extract<Conversion, { kind: 'convert' }>,
  ): Promise<readonly Change[]> {
    const { store, ports, random, dryRun } = this.#options
    const converting = { ...this.#plan, databases: [{ ...this.#database, columns: plan }] }
    const transformer = dryRun
      ? PageTransformer.createPreview(converting, store, random)
      : PageTransformer.create(converting, store, () => ports.clock.now())
    return transformer.transformChanges(
      rows.map(({ key, text, cursor, upstreamAt }) => ({
        type: 'upsert',
        database: this.#database.name,
        key,
        record: undoRenames(parseJson(text ?? '{}') as JsonObject, undo),
        ...(cursor !== null && { cursor }),
        ...(upstreamAt !== null && { upstreamUpdatedAt: upstreamAt }),
      })),
    )
  }

  /** A renamed field keeps the type of its column. */
  #typeRenamed(): TableShape {
    const columns = (this.#database.columns?.rename ?? []).flatMap(([from, name]) => {
      const type = this.#types.get(from)
      return type === undefined || this.#types.has(name) ? [] : [{ name, type }]
    })
    return { database: this.#database.name, columns }
  }

  /** Null if another sync has written one of the rows since they were read. */
  async #write({
    prepared,
    changed,
    readAtSequence,
  }: RewrittenPage): Promise<{ updated: number; refused: number } | null> {
    const { ports, actor, database } = this.#options
    const { landings, columns, shapes } = prepared
    if (landings.length === 0) return { updated: 0, refused: 0 }
    if (this.#context === null) return { updated: changed, refused: 0 }
    const { lease, version, retryingStore } = this.#context
    const outcome = await retryingStore.commit({
      lease,
      version,
      at: ports.clock.now(),
      owner: this.#plan.owner,
      landings,
      quarantined: [],
      columns,
      shapes,
      readAtSequence,
      upstreamToleranceMs: this.#plan.upstreamToleranceMs,
      owners: buildCommitOwners(this.#plan),
      ...buildCommitSchemaModes(this.#plan),
      ...buildCommitColumnRules(this.#plan),
      listing: {
        settledSequence: readAtSequence,
        lookupAnswers: { database, confirmed: landings.map(({ key }) => key), refuted: [] },
      },
      transition: { kind: 'columns', actor, reason: `rows of ${database} rewritten by its column rules` },
    })
    if (outcome.kind === 'overlap') return null
    if (outcome.kind !== 'landed')
      throw new SyncError('INTERNAL', `A rewriting had the unexpected outcome ${outcome.kind}.`)
    this.#preparer.recordLanded(prepared)
    return { updated: outcome.counts.updated, refused: outcome.refused?.length ?? 0 }
  }
}

interface RewrittenPage {
  readonly readAtSequence: number
  readonly rows: number
  readonly refused: number
  readonly changed: number
  /** The reasons, once per row. */
  readonly lost: readonly string[]
  readonly prepared: PreparedPage
}

/** The rows by the rules that wrote them; null if that is not known. */
function groupByRules(rows: readonly LogEntry[], used: StoredColumnRules['used']): Map<string | null, LogEntry[]> {
  const groups = new Map<string | null, LogEntry[]>()
  for (const row of rows) {
    const rules =
      used.findLast(({ sync, since }) => since < row.sequence && (sync === row.sync || sync === ''))?.rules ?? null
    const group = groups.get(rules)
    if (group === undefined) groups.set(rules, [row])
    else group.push(row)
  }
  return groups
}

function findDatabase({ sync, databases }: SyncPlan, name: string): DatabasePlan {
  return required(
    databases.find((database) => database.name === name),
    `database ${name} of ${sync}`,
  )
}
