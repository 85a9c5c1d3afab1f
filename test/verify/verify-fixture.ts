import type { Change, Execute, Lookup, SourceChecks, VerificationReport } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { compareKeys } from '../../src/values/partition-overlay.ts'
import type { VerificationScope } from '../../src/verify/compare-database.ts'
import { readFields, toDigestText, DigestSum } from '../../src/verify/record-digest.ts'
import { planVerification } from '../../src/verify/verification-plan.ts'
import { verifyDatabase, type VerifyOptions, type VerifyResult } from '../../src/verify/verify-database.ts'
import { DATABASE, EngineFixture, HALF, planOf, SECOND, WORKER } from '../engine/engine-fixture.ts'

export interface SourceRow {
  readonly v: number
  readonly at?: number
  readonly seen?: number
}

/** A source whose rows the test changes, with everything that a verification can ask. */
export class VerifiedShop {
  readonly rows = new Map<string, SourceRow>()
  /** Every request, by its kind. */
  readonly requests: string[] = []
  pageSize = 3
  /** Called before a page of the listing is read; its result replaces the rows of this page. */
  lie: ((state: number) => Map<string, SourceRow> | null) | null = null
  /** Called before every request. */
  onRequest: (kind: string) => void | Promise<void> = () => {}

  set(key: string, row: SourceRow): this {
    this.rows.set(key, row)
    return this
  }

  toChange = (key: string, { v, at, seen }: SourceRow): Change => ({
    type: 'upsert',
    key,
    record: { v, ...(seen !== undefined && { seen }) },
    ...(at !== undefined && { upstreamUpdatedAt: new Date(at).toISOString() }),
  })

  readonly execute: Execute<number> = async (state = 0) => {
    await this.#note('list')
    const rows = this.lie?.(state) ?? this.rows
    const sorted = [...rows].toSorted(([a], [b]) => compareKeys(a, b))
    const changes = sorted.slice(state, state + this.pageSize).map(([key, row]) => this.toChange(key, row))
    const end = state + this.pageSize
    return end < sorted.length ? { changes, hasMore: true, nextState: end } : { changes, hasMore: false }
  }

  readonly lookup: Lookup = async (key) => {
    await this.#note('lookup')
    const row = this.rows.get(key)
    return row === undefined ? null : this.toChange(key, row)
  }

  readonly checks: SourceChecks = {
    summarize: async (ranges, { ignore }) => {
      for (const _ of ranges) await this.#note('summary')
      const fields = ['v', 'seen'].filter((name) => !ignore.includes(name))
      return {
        fields,
        ranges: ranges.map((range) => {
          const sum = new DigestSum()
          for (const [, row] of this.#within(range))
            sum.add(toDigestText(readFields(fields, { ...row, ...(row.seen === undefined && { seen: null }) })))
          return { count: sum.count, digest: sum.digest }
        }),
      }
    },
    read: async (range) => {
      await this.#note('read')
      const found = this.#within(range)
      return {
        changes: found.slice(0, this.pageSize).map(([key, row]) => this.toChange(key, row)),
        hasMore: found.length > this.pageSize,
      }
    },
    find: async (keys) => {
      await this.#note('find')
      return keys.flatMap((key) => {
        const row = this.rows.get(key)
        return row === undefined ? [] : [this.toChange(key, row)]
      })
    },
  }

  #within({ after, upTo }: { after: string | null; upTo: string | null }): Array<[string, SourceRow]> {
    return [...this.rows]
      .filter(
        ([key]) => (after === null || compareKeys(key, after) > 0) && (upTo === null || compareKeys(key, upTo) <= 0),
      )
      .toSorted(([a], [b]) => compareKeys(a, b))
  }

  async #note(kind: string): Promise<void> {
    this.requests.push(kind)
    await this.onRequest(kind)
  }
}

export interface VerifyFixtureOptions {
  readonly checks?: boolean
  readonly lookup?: boolean
  readonly plan?: Partial<SyncPlan>
}

/** A copy of a shop, made by a listing. */
export class VerifyFixture {
  readonly shop = new VerifiedShop()
  readonly scene: EngineFixture
  readonly plan: SyncPlan

  private constructor(scene: EngineFixture, { checks = false, lookup = true, plan = {} }: VerifyFixtureOptions) {
    this.scene = scene
    const execute: Execute<any> = Object.assign(
      (...args: Parameters<Execute<number>>) => this.shop.execute(...args),
      checks && { checks: this.shop.checks },
    )
    this.plan = planOf({ mode: 'replace', execute, lookup: lookup ? this.shop.lookup : null, ...plan })
  }

  static async open(options: VerifyFixtureOptions = {}): Promise<VerifyFixture> {
    return new VerifyFixture(await EngineFixture.open(), options)
  }

  /** Fills the shop with this many rows, and copies them. */
  async fill(count: number): Promise<this> {
    const at = this.scene.clock.now() - 1_000 * SECOND
    for (let n = 0; n < count; n++) this.shop.set(`k${String(n).padStart(5, '0')}`, { v: n, at: at + n })
    await this.sync()
    return this
  }

  /** A cycle, with time before and after it. */
  async sync(): Promise<void> {
    await this.scene.clock.advance(10 * SECOND)
    await this.scene.run(this.plan)
    await this.scene.clock.advance(10 * SECOND)
    this.shop.requests.length = 0
  }

  options(given: Partial<VerifyOptions> = {}): VerifyOptions {
    return {
      store: this.scene.store,
      runtime: {
        ports: { ...this.scene.ports, random: HALF },
        fetch: () => Promise.reject(new Error('no network here')),
        secrets: { get: (name) => name },
      },
      holder: 'verifier',
      actor: 'ana',
      scope: { kind: 'auto' } satisfies VerificationScope,
      budget: null,
      repair: false,
      signal: new AbortController().signal,
      ...given,
    }
  }

  start(given: Partial<VerifyOptions> = {}): Promise<VerifyResult> {
    return verifyDatabase(planVerification([this.plan], DATABASE), this.options(given))
  }

  verify(given: Partial<VerifyOptions> = {}): Promise<VerifyResult> {
    return this.scene.clock.drive(this.start(given))
  }

  async report(given: Partial<VerifyOptions> = {}): Promise<VerificationReport> {
    return (await this.verify(given)).verification.report
  }
}

export { DATABASE, SECOND, WORKER }
