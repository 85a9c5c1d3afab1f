import {
  SyncError,
  type Change,
  type Column,
  type JsonValue,
  type KeyList,
  type KeyRange,
  type Landing,
  type Page,
  type RecordSummaries,
  type Store,
  type SyncContext,
  type TimeRange,
} from '../contract/index.ts'
import { checkPage, parseState, type CheckedPage } from '../engine/check-page.ts'
import { PagePreparer } from '../engine/page-preparer.ts'
import { PageTransformer } from '../engine/page-transformer.ts'
import { RecordShapes } from '../engine/record-shapes.ts'
import { toRangePlan } from '../engine/range-plan.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { callSource, type SourceRuntime } from '../runner/call-source.ts'
import { NO_PARTITIONS, overlayPartitions } from '../values/partition-overlay.ts'
import { required } from '../values/required.ts'
import { BudgetError, type RequestBudget } from './request-budget.ts'
import type { VerifiedSource } from './verification-plan.ts'

/** A record of the source, as a cycle would land it. */
export interface SourceRecord {
  readonly key: string
  /** Null if the record cannot be stored: it exists, and nothing else is known. */
  readonly landing: Extract<Landing, { type: 'upsert' }> | null
}

interface SourcePage {
  readonly records: readonly SourceRecord[]
  readonly columns: Record<string, Column[]>
}

export interface SourceReaderOptions {
  readonly store: Store
  readonly runtime: SourceRuntime
  readonly database: string
  readonly source: VerifiedSource
  readonly budget: RequestBudget
  readonly signal: AbortSignal
}

/** The records of some keys, with their fields for a commit. */
export interface FoundRecords {
  readonly records: ReadonlyMap<string, SourceRecord>
  readonly columns: Record<string, Column[]>
}

/** Keys per request of `checks.find`. */
const FIND_KEYS = 500

/** Ranges per call of `checks.summarize`. */
const SUMMARY_RANGES = 64

/** Reads from the source like a cycle: paced, with retries and column rules, but without a lease and without a commit. */
export class SourceReader {
  readonly #options: SourceReaderOptions
  readonly #preparers = new Map<SyncPlan, { transformer: PageTransformer; preparer: PagePreparer }>()

  constructor(options: SourceReaderOptions) {
    this.#options = options
  }

  /** Every record, page by page, as the first cycle would read it. */
  list(): AsyncGenerator<readonly SourceRecord[]> {
    return this.#listRecords(required(this.#options.source.listing, 'listing'))
  }

  listRange(range: TimeRange): AsyncGenerator<readonly SourceRecord[]> {
    return this.#listRecords(toRangePlan(required(this.#options.source.range, 'range'), range))
  }

  async *#listRecords(plan: SyncPlan): AsyncGenerator<readonly SourceRecord[]> {
    for await (const changes of this.#listPages(plan)) yield (await this.#prepare(plan, changes)).records
  }

  async *#listPages(plan: SyncPlan): AsyncGenerator<readonly Change[]> {
    const partitions = new Map<string, JsonValue | null>()
    const startedAt = this.#options.runtime.ports.clock.now()
    let state: string | null = null
    for (let page = 1; ; page++) {
      if (page > plan.limits.pagesMax)
        throw new SyncError('PAGE_INVALID', `${plan.sync}: the listing has more than ${plan.limits.pagesMax} pages.`)
      const checked: CheckedPage = await this.#call(
        plan,
        async (context) => {
          const answer = (await plan.execute(parseState(plan.sync, state) as JsonValue, {
            ...context,
            partitions: overlayPartitions(NO_PARTITIONS, partitions),
            cycle: { id: 0, mode: plan.mode, startedAt, page },
          })) as Page | { error: unknown }
          if (typeof answer === 'object' && answer !== null && !('changes' in answer) && 'error' in answer)
            throw answer.error
          return checkPage(plan.sync, answer, plan.limits.stateBytesMax)
        },
        1,
      )
      if (checked.isLog)
        throw new SyncError(
          'VERIFY_UNSUPPORTED',
          `${plan.sync} reads a log of changes, which does not show the current records. Give the sync a \`lookup\`.`,
        )
      yield checked.changes
      for (const { key, state: value } of checked.partitions)
        partitions.set(key, value === null ? null : (parseState(plan.sync, value) as JsonValue))
      if (!checked.hasMore) return
      if (checked.state === state && checked.partitions.length === 0)
        throw new SyncError('PAGE_INVALID', `${plan.sync}: the listing returns the same state again.`)
      state = checked.state
    }
  }

  /**
   * The current records of these keys; a key that the source does not have is absent. A source that cannot be asked for
   * single records is listed, and the other records are skipped.
   */
  async find(keys: readonly string[]): Promise<FoundRecords> {
    const records = new Map<string, SourceRecord>()
    const shapes = new RecordShapes()
    for await (const page of this.#readKeys(keys)) {
      shapes.merge(page.columns)
      for (const record of page.records) records.set(record.key, record)
    }
    return { records, columns: shapes.columns() }
  }

  async *#readKeys(keys: readonly string[]): AsyncGenerator<SourcePage> {
    const { checks, lookup, syncs, listing } = this.#options.source
    const { find } = checks
    if (find !== undefined) {
      const plan = required(syncs[0], 'sync')
      for (let start = 0; start < keys.length; start += FIND_KEYS) {
        const chunk = keys.slice(start, start + FIND_KEYS)
        yield await this.#prepare(plan, await this.#call(plan, (context) => find(chunk, context), 1))
      }
    } else if (lookup !== null) {
      for (const key of keys) {
        const change = await this.#call(lookup, (context) => required(lookup.lookup, 'lookup')(key, context), 1)
        if (change !== null && change !== undefined) yield await this.#prepare(lookup, [change])
      }
    } else if (listing !== null) {
      const wanted = new Set(keys)
      for await (const changes of this.#listPages(listing))
        yield await this.#prepare(
          listing,
          changes.filter(({ key }) => key !== null && wanted.has(key)),
        )
    }
  }

  /** Null if the source cannot summarize this database. */
  async summarize(ranges: readonly KeyRange[], ignore: readonly string[]): Promise<RecordSummaries | null> {
    const { checks, syncs } = this.#options.source
    const { summarize } = checks
    if (summarize === undefined) return null
    const plan = required(syncs[0], 'sync')
    let summaries: RecordSummaries = { fields: [], ranges: [] }
    for (let start = 0; start === 0 || start < ranges.length;) {
      const chunk = ranges.slice(start, start + Math.min(SUMMARY_RANGES, Math.max(1, this.#options.budget.left)))
      const answer = await this.#call(plan, (context) => summarize(chunk, { ignore }, context), chunk.length)
      if (answer === null) return null
      summaries = { ...answer, ranges: [...summaries.ranges, ...answer.ranges] }
      start += Math.max(1, chunk.length)
    }
    return summaries
  }

  /** The records of a key range, page by page. */
  async *read(range: KeyRange): AsyncGenerator<readonly SourceRecord[]> {
    const plan = required(this.#options.source.syncs[0], 'sync')
    const read = required(this.#options.source.checks.read, 'read')
    for (let after = range.after; ;) {
      const { changes, hasMore } = await this.#call(plan, (context) => read({ ...range, after }, context), 1)
      yield (await this.#prepare(plan, changes)).records
      if (!hasMore) return
      const last = required(changes.at(-1), 'last record of the page').key
      if (last === null || last === after)
        throw new SyncError('PAGE_INVALID', `${plan.sync}: the key range returns the same records again.`)
      after = last
    }
  }

  /** The keys of the database with their times, page by page. */
  async *listKeys(): AsyncGenerator<ReadonlyArray<{ readonly key: string; readonly upstreamUpdatedAt?: string }>> {
    const plan = required(this.#options.source.syncs[0], 'sync')
    const listKeys = required(this.#options.source.checks.listKeys, 'listKeys')
    for (let after: string | null = null; ;) {
      const from: string | null = after
      const page: KeyList = await this.#call(plan, (context) => listKeys({ after: from, upTo: null }, context), 1)
      yield page.keys
      if (!page.hasMore) return
      after = required(page.keys.at(-1), 'last key of the page').key
      if (after === from)
        throw new SyncError('PAGE_INVALID', `${plan.sync}: the list of keys returns the same keys again.`)
    }
  }

  /** Only records of the verified database. A deletion is no record. */
  async #prepare(plan: SyncPlan, changes: readonly Change[]): Promise<SourcePage> {
    const { store, runtime, database } = this.#options
    let known = this.#preparers.get(plan)
    if (known === undefined) {
      known = {
        transformer: PageTransformer.create(plan, store, () => runtime.ports.clock.now()),
        preparer: new PagePreparer(plan.sync, plan.databases, plan.limits),
      }
      this.#preparers.set(plan, known)
    }
    const { landings, quarantined, columns } = await known.preparer.prepare(
      await known.transformer.transformChanges(changes),
    )
    const records = [
      ...landings.flatMap((landing) =>
        landing.database === database && landing.type === 'upsert' ? [{ key: landing.key, landing }] : [],
      ),
      ...quarantined.flatMap(({ database: own, key }) =>
        own === database && key !== null ? [{ key, landing: null }] : [],
      ),
    ]
    return { records, columns }
  }

  /** `units` are the requests of a source without HTTP; else the requests that are sent are counted. */
  async #call<Result>(plan: SyncPlan, call: (context: SyncContext) => Promise<Result>, units: number): Promise<Result> {
    const { runtime, store, budget, signal } = this.#options
    const before = budget.used
    if (units > 0 && budget.left < 1) throw new BudgetError()
    let exceeded: BudgetError | null = null
    const fetch: typeof runtime.fetch = async (input, init) => {
      try {
        budget.spend(1)
      } catch (error) {
        exceeded = error as BudgetError
        throw error
      }
      return runtime.fetch(input, init)
    }
    try {
      const result = await callSource(
        { ...runtime, fetch },
        signal,
        {
          tenant: store.tenant,
          plan,
          pacers: {},
          takeSlots: (request) => store.takeSlots({ worker: plan.worker, ...request }),
          pauses: store,
          onWait: () => {},
        },
        call,
      )
      if (budget.used === before) budget.spend(Math.min(units, budget.left))
      // A source may have handled the refusal as an error of its own.
      if (exceeded === null) return result
    } catch (error) {
      if (exceeded === null) throw error
    }
    throw exceeded
  }
}
