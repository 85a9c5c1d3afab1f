import assert from 'node:assert/strict'
import { Worker } from '../../worker/worker.ts'
import { SyncError, type LogEntry, type Store } from '../../contract/index.ts'
import { runCycle } from '../../engine/cycle.ts'
import type { CycleOptions, CycleResult } from '../../engine/cycle-options.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { systemClock } from '../../platform/clock.ts'
import { systemRandom } from '../../platform/random.ts'
import { openSqliteStore } from '../../stores/sqlite/store.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { parseJson } from '../../values/json.ts'
import type { SourceHarness, SourceNeed } from './harness.ts'
import { required } from '../../values/required.ts'

export type SyncKind = 'listing' | 'delta'
export type Fetch = CycleOptions['fetch']

export interface RunOverrides {
  /** Maximum number of pages: the next run resumes the cycle, as after a crash. */
  readonly pagesMax?: number
  /** Wraps the fetch between the source and its system. */
  readonly wrapFetch?: (ask: Fetch) => Fetch
  /** False: the delete limit holds, as it does by default in production. */
  readonly allowDeletes?: boolean
}

const DATABASE = 'records'
const RUNS_MAX = 500
const SILENT_LOG = { debug() {}, info() {}, warn() {}, error() {} }

/** A source, the production engine and an in-memory store. */
export class SourceFixture {
  readonly multiPageCount: number
  readonly #harness: SourceHarness
  readonly #store: Store
  readonly #plans: Partial<Record<SyncKind, SyncPlan>>
  #runs = 0
  #requestCount = 0

  private constructor(harness: SourceHarness, store: Store) {
    this.multiPageCount = harness.multiPageCount ?? 25
    this.#harness = harness
    this.#store = store
    this.#plans = plansOf(harness.source)
  }

  static async open(harness: SourceHarness): Promise<SourceFixture> {
    return new SourceFixture(harness, await openSqliteStore({ file: ':memory:' }))
  }

  async close(): Promise<void> {
    await this.#store.close()
    await this.#harness.close?.()
  }

  /** The capabilities the source lacks, so that their cases are skipped. */
  async findUnmetNeed(needs: readonly SourceNeed[]): Promise<SourceNeed | undefined> {
    const { remove, partitions } = this.#harness
    const has: Record<SourceNeed, boolean> = {
      listing: this.#plans.listing !== undefined,
      delta: this.#plans.delta !== undefined,
      deletes: remove !== undefined,
      reported: remove !== undefined && this.#deltaReportsDeletes,
      fetch: true,
      partitions: partitions !== undefined,
      addedPartitions: partitions?.add !== undefined,
      removedPartitions: partitions?.remove !== undefined,
      tidemark: partitions?.timeOf !== undefined,
    }
    if (needs.includes('fetch')) {
      await this.loadInitially()
      has.fetch = this.#requestCount > 0
    }
    return needs.find((need) => !has[need])
  }

  // ── the system ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async create(count: number): Promise<readonly string[]> {
    return this.#harness.create(count)
  }

  async change(keys: readonly string[]): Promise<void> {
    await this.#harness.change(keys)
  }

  async remove(keys: readonly string[]): Promise<void> {
    await this.#harness.remove?.(keys)
  }

  /** Only where `follow` must report it. */
  async removeIfDeltaReportsDeletes(keys: readonly string[]): Promise<void> {
    if (this.#plans.delta === undefined || this.#deltaReportsDeletes) await this.remove(keys)
  }

  async addPartition(): Promise<void> {
    await this.#harness.partitions?.add?.()
  }

  async removePartition(): Promise<void> {
    await this.#harness.partitions?.remove?.()
  }

  async settle(): Promise<void> {
    await this.#harness.settle?.()
  }

  async truth(): Promise<Readonly<Record<string, unknown>>> {
    return toPlainJson(await this.#harness.rows())
  }

  // ── the source ─────────────────────────────────────────────────────────────────────────────────────────────────────

  get syncKinds(): SyncKind[] {
    return (['listing', 'delta'] as const).filter((half) => this.#plans[half] !== undefined)
  }

  /** One run without retries: any error ends it. */
  async run(
    half: SyncKind,
    { pagesMax = 10_000, wrapFetch: line = (ask) => ask, allowDeletes = true }: RunOverrides = {},
  ): Promise<CycleResult> {
    const { clock = systemClock, secrets = {}, fetch = globalThis.fetch } = this.#harness
    const plan = required(this.#plans[half], 'plans[half]')
    const ask = line(fetch as Fetch)
    return runCycle(
      { ...plan, limits: { ...plan.limits, retriesMax: 0, pagesMax } },
      {
        store: this.#store,
        ports: { clock, random: systemRandom, log: SILENT_LOG },
        holder: `run ${++this.#runs}`,
        isHolderGone: () => true,
        trigger: 'trial',
        allowDeletes,
        secrets: {
          get(name) {
            if (Object.hasOwn(secrets, name)) return required(secrets[name], 'secrets[name]')
            throw new SyncError('SECRET_MISSING', `The harness gives no secret ${name}.`)
          },
        },
        fetch: (input, init) => {
          this.#requestCount++
          return ask(input, init)
        },
      },
    )
  }

  /** One whole cycle; an unfinished one is completed first, because it need not include later writes. */
  async complete(half: SyncKind): Promise<void> {
    const { stopReason, error, resumed } = await this.run(half)
    if (stopReason === 'complete' && resumed) return this.complete(half)
    assert.equal(
      stopReason,
      'complete',
      `The ${half} did not complete: ${error?.code ?? stopReason}${error === null ? '' : `, ${error.message}`}`,
    )
  }

  get requestCount(): number {
    return this.#requestCount
  }

  /** The requests that the action sends. */
  async countRequests(act: () => Promise<void>): Promise<number> {
    const before = this.#requestCount
    await act()
    return this.#requestCount - before
  }

  /** Runs repeatedly until the cycle is complete. */
  async completeInRuns(
    half: SyncKind,
    choices: (run: number) => RunOverrides,
    between: (run: number) => Promise<void> = async () => {},
  ): Promise<void> {
    for (let run = 1; run <= RUNS_MAX; run++) {
      if ((await this.run(half, choices(run))).stopReason === 'complete') return
      await between(run)
    }
    assert.fail(`The ${half} did not complete in ${RUNS_MAX} interrupted runs: it does not resume from its state.`)
  }

  /** Brings a new copy up to date. */
  async loadInitially(): Promise<void> {
    await this.settle()
    if (this.#plans.listing === undefined) await this.catchUp()
    else await this.complete('listing')
  }

  /** Keeps a copy up to date; without a listing where there is a delta, because it would hide missed changes. */
  async catchUp(): Promise<void> {
    await this.settle()
    if (this.#plans.delta === undefined) return this.complete('listing')
    for (let cycle = 0; cycle < this.cyclesPerRound; cycle++) await this.complete('delta')
  }

  get #deltaReportsDeletes(): boolean {
    return this.#harness.deltaReportsDeletes ?? true
  }

  get cyclesPerRound(): number {
    return this.#harness.cyclesPerRound ?? 1
  }

  // ── committed rows ─────────────────────────────────────────────────────────────────────────────────────────────────

  async rows(): Promise<Record<string, unknown>> {
    const rows = await this.#store.rows({ database: DATABASE, limit: 1_000_000 })
    return Object.fromEntries(rows.map(({ key, text }) => [key, toPlainJson(parseJson(text))]))
  }

  log(): Promise<LogEntry[]> {
    return this.#store.changes({ after: 0, limit: 1_000_000 })
  }

  /** Invariant 12, for the records that are in the system now. */
  async assertTidemark(half: SyncKind, when: string): Promise<void> {
    const { worker, sync } = required(this.#plans[half], 'plans[half]')
    const { tidemark } = await this.#store.readCheckpoint({ worker, sync })
    if (tidemark === null) return
    const [rows, truth] = [await this.rows(), await this.truth()]
    const timeOf = required(this.#harness.partitions?.timeOf, 'timeOf')
    for (const [key, record] of Object.entries(truth)) {
      const time = timeOf(record)
      if (required(canonicalizeInstant(time), 'time') > tidemark) continue
      assert.deepEqual(rows[key], record, `${when}, the tidemark is ${tidemark}, but ${key} of ${time} is not there.`)
    }
  }

  async assertRowsMatchSource(when: string): Promise<void> {
    const [rows, truth] = [await this.rows(), await this.truth()]
    assert.deepEqual(
      Object.keys(truth).filter((key) => !Object.hasOwn(rows, key)),
      [],
      `${when}, these are missing.`,
    )
    assert.deepEqual(
      Object.keys(rows).filter((key) => !Object.hasOwn(truth, key)),
      [],
      `${when}, these still exist.`,
    )
    for (const [key, row] of Object.entries(rows))
      assert.deepEqual(row, truth[key], `${when}, ${key} differs from the record in the system.`)
  }
}

function plansOf(source: SourceHarness['source']): Partial<Record<SyncKind, SyncPlan>> {
  const worker = new Worker({ name: 'trial' })
  const database = worker.database(DATABASE)
  if ('execute' in source) {
    worker.sync('sync', { database, ...source })
    return { [source.mode === 'replace' ? 'listing' : 'delta']: worker.plan('sync') }
  }
  const { backfill, delta } = worker.track('sync', { database, source })
  return { listing: worker.plan(backfill), delta: worker.plan(delta) }
}

/** As JSON represents it: numbers outside the double range become text, undefined fields are dropped. */
function toPlainJson<T>(value: T): T {
  return JSON.parse(
    JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? String(member) : member)),
  ) as T
}
