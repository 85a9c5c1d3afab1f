import type { Change, Execute, Page, Store, VerificationReport } from '../../src/contract/index.ts'
import { runCycle } from '../../src/engine/cycle.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import type { VendorStream } from '../../src/testing/simulation/vendors/vendor-stream.ts'
import { parseJson } from '../../src/values/json.ts'
import { planVerification } from '../../src/verify/verification-plan.ts'
import { verifyDatabase } from '../../src/verify/verify-database.ts'
import { Worker } from '../../src/worker/worker.ts'
import { FakeClock } from '../engine/fake-clock.ts'

const DATABASE = 'records'
const log = { debug() {}, info() {}, warn() {}, error() {} }

/**
 * How the copy loses a change, without an error:
 *
 *   dropped    a lagging index hides the record from every cycle
 *   stale      a replica returns the version before the last one
 *   undeleted  the deletion is never reported
 *   empty      a page without rows, status 200
 */
export type Loss = 'dropped' | 'stale' | 'undeleted' | 'empty'

export interface LossWorldResult {
  readonly planted: readonly string[]
  /** A text for every wrong statement of a verification. */
  readonly violations: readonly string[]
  readonly requests: number
  readonly rows: number
}

/** A vendor whose sync loses changes, and an honest verification. A run is a pure function of its seed. */
export async function runLossWorld(stream: VendorStream, seed: number): Promise<LossWorldResult> {
  const world = new LossWorld(stream, seed, await openSqliteStore({ file: ':memory:' }))
  try {
    return await world.run()
  } finally {
    await world.close()
  }
}

class LossWorld {
  readonly #stream: VendorStream
  readonly #store: Store
  readonly #clock = new FakeClock('2026-01-01T00:00:00Z')
  readonly #random: RandomStream
  readonly #simulator: ReturnType<VendorStream['open']>
  readonly #plans: readonly SyncPlan[]
  /** By key, the version that the syncs return instead of the true one; null for none. */
  readonly #losses = new Map<string, { readonly loss: Loss; readonly before: Change | null }>()
  #writes = 0
  #isEmpty = false

  constructor(stream: VendorStream, seed: number, store: Store) {
    this.#stream = stream
    this.#store = store
    this.#random = new RandomStream(seed, 'losses')
    const conditions = { pageSize: this.#random.int(3, 20), lag: { share: 0, maxMs: 0 }, limited: false }
    this.#simulator = stream.open({ clock: this.#clock, random: new RandomStream(seed, 'vendor') }, conditions)
    const worker = new Worker({ name: 'world' })
    const database = worker.database(DATABASE)
    const source = stream.source(conditions)
    const options = { database, schedule: 'manual' as const }
    if ('mode' in source) worker.sync('sync', { ...options, ...source })
    else worker.track('sync', { ...options, source })
    this.#plans = worker.plans()
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  async run(): Promise<LossWorldResult> {
    const violations: string[] = []
    const { type } = this.#stream
    this.#stream.prepare?.(this.#simulator)
    const records = this.#random.int(4, Math.min(25, this.#stream.recordsMax ?? 25))
    for (let n = 0; n < records; n++) await this.#write(() => this.#create())
    await this.#runCycles({ listing: true })
    await this.#settle()
    await this.#expect(violations, 'before any loss', await this.#verify(), new Map())

    const planted = await this.#plantLosses(type)
    await this.#runCycles({ listing: false })
    await this.#settle()
    // A change that no cycle has read yet is not a difference.
    const pending = this.#simulator.records.current(type).find(({ id }) => !planted.has(id))?.id
    if (pending !== undefined && this.#random.chance(0.5)) await this.#write(() => this.#update(pending))
    const first = await this.#verify()
    await this.#settle()
    await this.#runCycles({ listing: false })
    await this.#settle()
    const found = await this.#verify({ repair: true })
    await this.#expect(violations, 'after the losses', found, planted)
    if (found.repaired < planted.size) violations.push(`repaired ${found.repaired} of ${planted.size}`)
    await this.#compareRows(violations)
    await this.#expect(violations, 'after the repair', await this.#verify(), new Map())
    for (const { key, isSettled } of first.found)
      if (isSettled && !planted.has(key)) violations.push(`${key} was settled before a cycle could read it`)
    return { planted: [...planted.keys()], violations, requests: found.requests, rows: found.rows }
  }

  async #plantLosses(type: string): Promise<Map<string, string>> {
    const planted = new Map<string, string>()
    const count = this.#random.int(1, 3)
    for (let n = 0; n < count; n++) {
      const live = this.#simulator.records.current(type).filter(({ id }) => !planted.has(id))
      const loss = this.#random.pick(['dropped', 'stale', 'undeleted', 'empty'] as const)
      if (loss === 'dropped' || loss === 'empty' || live.length === 0) {
        const id = await this.#write(() => this.#create())
        this.#losses.set(id, { loss, before: null })
        planted.set(id, 'missing')
      } else {
        const { id } = this.#random.pick(live)
        const row = await this.#store.row(DATABASE, id)
        if (row === null) continue
        const before: Change = {
          type: 'upsert',
          key: id,
          record: parseJson(row.text) as Extract<Change, { type: 'upsert' }>['record'],
          ...(row.upstreamAt !== null && { upstreamUpdatedAt: row.upstreamAt }),
        }
        await this.#write(() => (loss === 'stale' ? this.#update(id) : this.#remove(id)))
        this.#losses.set(id, { loss, before })
        planted.set(id, loss === 'stale' ? 'stale' : 'extra')
      }
    }
    // A share of the worlds gets an empty page in the next cycle, and with it nothing at all.
    this.#isEmpty = [...this.#losses.values()].some(({ loss }) => loss === 'empty')
    return planted
  }

  /** The pages of the syncs, without the changes that are lost. */
  #lossy(plan: SyncPlan): SyncPlan {
    const { execute, lookup } = plan
    const read: Execute<any> = async (state, context) => {
      const page: Page = await execute(state, context)
      const isEmpty = this.#isEmpty && plan.mode === 'incremental'
      return { ...page, changes: isEmpty ? [] : page.changes.flatMap((change) => this.#falsify(change)) }
    }
    return {
      ...plan,
      execute: Object.assign(read, execute),
      ...(lookup != null && {
        lookup: async (key, context) => {
          const known = this.#losses.get(key)
          return known === undefined ? await lookup(key, context) : known.before
        },
      }),
    }
  }

  #falsify(change: Change): Change[] {
    const known = change.key === null ? undefined : this.#losses.get(change.key)
    if (known === undefined) return [change]
    return known.before === null ? [] : [known.before]
  }

  async #runCycles({ listing }: { readonly listing: boolean }): Promise<void> {
    const plans =
      this.#plans.length === 1 ? this.#plans : this.#plans.filter(({ mode }) => listing || mode === 'incremental')
    for (const plan of plans.toSorted((a) => (a.mode === 'replace' ? -1 : 1))) {
      const lost = [...this.#losses.values()].filter(({ before }) => before !== null)
      const given = this.#lossy(plan)
      // A listing that omits a deleted record would sweep it.
      const execute: Execute<any> = async (state, context) => {
        const page = await given.execute(state, context)
        return plan.mode === 'replace' && !page.hasMore
          ? {
              ...page,
              changes: [
                ...page.changes,
                ...lost.flatMap(({ loss, before }) => (loss === 'undeleted' && before !== null ? [before] : [])),
              ],
            }
          : page
      }
      const result = await this.#clock.drive(
        runCycle(
          { ...given, execute: Object.assign(execute, given.execute) },
          { ...this.#runtime(), store: this.#store, holder: 'world', trigger: 'simulation' },
        ),
      )
      if (result.stopReason !== 'complete')
        throw new Error(`${plan.sync}: ${result.stopReason} ${result.error?.message ?? ''}`)
    }
    this.#isEmpty = false
  }

  #runtime() {
    return {
      ports: { clock: this.#clock, random: this.#random, log },
      fetch: (input: string | URL, init: RequestInit = {}) => {
        const { signal: _, ...rest } = init
        return this.#simulator.handle(new Request(input, rest))
      },
      secrets: { get: () => 'secret' },
    }
  }

  async #verify({ repair = false } = {}): Promise<VerificationReport> {
    const { verification } = await this.#clock.drive(
      verifyDatabase(planVerification(this.#plans, DATABASE), {
        store: this.#store,
        runtime: this.#runtime(),
        holder: 'verifier',
        actor: 'world',
        scope: { kind: 'auto' },
        budget: null,
        repair,
        // Few rows: one deletion may be above the limit.
        allowDeletes: true,
        signal: new AbortController().signal,
      }),
    )
    return verification.report
  }

  async #expect(
    violations: string[],
    when: string,
    report: VerificationReport,
    planted: ReadonlyMap<string, string>,
  ): Promise<void> {
    if (report.error !== null) violations.push(`${when}: ${report.error.code} ${report.error.message}`)
    const found = new Map(report.found.map((one) => [one.key, one]))
    for (const [key, kind] of planted) {
      const one = found.get(key)
      if (one?.kind !== kind || !one.isSettled)
        violations.push(
          `${when}: ${key} should be ${kind} and settled, and is ${one === undefined ? 'not found' : `${one.kind}, ${one.isSettled ? 'settled' : 'unsettled'}`}`,
        )
    }
    for (const { key, kind } of report.found)
      if (!planted.has(key)) violations.push(`${when}: ${key} is reported as ${kind}`)
  }

  /** The copy has exactly the records of the vendor, in their current versions. */
  async #compareRows(violations: string[]): Promise<void> {
    const rows = new Map((await this.#store.rows({ database: DATABASE, limit: 1_000 })).map((row) => [row.key, row]))
    const live = this.#simulator.records.current(this.#stream.type)
    for (const { id } of live) if (!rows.has(id)) violations.push(`${id} is not in the repaired copy`)
    if (rows.size !== live.length) violations.push(`the repaired copy has ${rows.size} rows, the vendor ${live.length}`)
  }

  async #settle(): Promise<void> {
    await this.#clock.advance(this.#stream.lagMaxMs + 30_000)
  }

  async #write<T>(write: () => T): Promise<T> {
    await this.#clock.advance(this.#random.int(10, 3_000))
    return write()
  }

  #fields() {
    return this.#stream.fields(++this.#writes, this.#random)
  }

  #create(): string {
    return this.#simulator.create(this.#stream.type, {
      ...this.#stream.parentFields?.(this.#simulator, this.#random),
      ...this.#fields(),
    })
  }

  #update(id: string): void {
    this.#simulator.update(this.#stream.type, id, this.#fields())
  }

  #remove(id: string): void {
    this.#simulator.remove(this.#stream.type, id)
  }
}
