import {
  SyncError,
  type CycleRecord,
  type Difference,
  type DifferenceKind,
  type ErrorCode,
  type Landing,
  type Store,
  type Verification,
  type VerificationClaim,
  type VerificationGap,
  type VerificationMethod,
  type VerificationReport,
} from '../contract/index.ts'
import { classifyError } from '../engine/classify-error.ts'
import { repairRows } from '../engine/repair-rows.ts'
import type { SourceRuntime } from '../runner/call-source.ts'
import { exceedsDeleteLimit } from '../stores/kit/plan-landing.ts'
import { attributeDifference } from './attribute-difference.ts'
import { compareDatabase, type ComparedSource, type VerificationScope } from './compare-database.ts'
import { CopyReader } from './copy-reader.ts'
import { isDue, readCoverage } from './coverage.ts'
import { BudgetError, RequestBudget } from './request-budget.ts'
import { matchRow, settleDifferences, type SettledDifference } from './settle-differences.ts'
import { SourceReader } from './source-reader.ts'
import type { VerificationPlan, VerifiedSource } from './verification-plan.ts'

export interface VerifyOptions {
  readonly store: Store
  readonly runtime: SourceRuntime
  readonly holder: string
  readonly isHolderGone?: (holder: string) => boolean
  readonly actor: string
  /** The run was not requested by a person. */
  readonly automatic?: boolean
  readonly scope: VerificationScope
  /** Fields whose differences do not count. */
  readonly ignore?: readonly string[]
  /** The most requests to send; null for no limit. */
  readonly budget: number | null
  /** Land the source's versions of the rows that differ. */
  readonly repair: boolean
  /** Allow deletions beyond the delete limit of the sync. */
  readonly allowDeletes?: boolean
  readonly signal: AbortSignal
  readonly onProgress?: (progress: VerifyProgress) => void
}

export type VerifyProgress =
  | { readonly kind: 'compared'; readonly rows: number }
  | { readonly kind: 'settling'; readonly rows: number; readonly lagMs: number }
  | { readonly kind: 'repairing'; readonly rows: number }

export interface VerifyResult {
  readonly verification: Verification & { readonly report: VerificationReport }
  /** The fewest requests that find the differing blocks, for the method `digests`. */
  readonly requestsMin: number | null
}

const CLAIM_TTL_MS = 60_000

/** Differences that are kept with the report. */
const FOUND_MAX = 1_000

/**
 * Compares a database with its source, repairs the rows that differ if asked to, and records the result. Reads the copy
 * without a lock, and may run beside syncs.
 */
export async function verifyDatabase(plan: VerificationPlan, options: VerifyOptions): Promise<VerifyResult> {
  const { store, runtime, holder, actor } = options
  const { clock } = runtime.ports
  const database = plan.database.name
  assertVerifiable(plan, options.scope)
  const startedAt = clock.now()
  const claim = await claimVerification(database, options)
  const known = await readKnownDifferences(store, database)
  const stopping = new AbortController()
  const signal = AbortSignal.any([options.signal, stopping.signal])
  const renewing = renewPeriodically(claim, { store, clock, signal, stop: (error) => stopping.abort(error) })
  const run = new VerificationRun(plan, { ...options, signal }, claim, known)
  try {
    await run.compareAndRepair()
  } catch (thrown) {
    const error = classifyError(signal.aborted && isLost(stopping) ? stopping.signal.reason : thrown)
    run.error = { code: error.code, message: error.message }
  }
  stopping.abort(new Error('the verification is over'))
  await renewing
  const report = run.report(clock.now())
  if (!(await store.endVerification(claim, report)))
    throw new SyncError(
      'LEASE_LOST',
      `Another verification of ${database} has begun since. This one (${holder}) was not recorded.`,
    )
  return {
    verification: { id: claim.id, database, actor, startedAt, heldBy: null, report },
    requestsMin: run.requestsMin,
  }
}

function assertVerifiable({ database, sources }: VerificationPlan, scope: VerificationScope): void {
  for (const { listing, lookup, range, checks, syncs } of sources) {
    const canFind = lookup !== null || checks.find !== undefined
    const can =
      scope.kind === 'sample' ? canFind : scope.kind === 'since' ? range !== null : listing !== null || canFind
    if (can) continue
    const what =
      scope.kind === 'sample'
        ? 'look up single records'
        : scope.kind === 'since'
          ? 'read a range of times'
          : 'list its records or look up single ones'
    throw new SyncError(
      'VERIFY_UNSUPPORTED',
      `${database.name}: the source of ${syncs.map(({ sync }) => sync).join(' and ')} cannot ${what}.`,
    )
  }
}

async function claimVerification(
  database: string,
  { store, runtime, holder, isHolderGone, actor, automatic = false }: VerifyOptions,
): Promise<VerificationClaim> {
  const request = { holder, ttlMs: CLAIM_TTL_MS, at: runtime.ports.clock.now(), actor, automatic }
  const claim = await store.beginVerification(database, request)
  if (claim !== null) return claim
  const [running] = await store.verifications({ database, limit: 1 })
  const heldBy = running?.heldBy ?? null
  const retried =
    heldBy !== null && isHolderGone?.(heldBy) === true
      ? await store.beginVerification(database, { ...request, evictHolder: heldBy })
      : null
  if (retried !== null) return retried
  throw new SyncError('LEASE_HELD', `${database} is being verified by ${heldBy ?? 'another process'}.`)
}

async function renewPeriodically(
  claim: VerificationClaim,
  {
    store,
    clock,
    signal,
    stop,
  }: {
    readonly store: Store
    readonly clock: SourceRuntime['ports']['clock']
    readonly signal: AbortSignal
    readonly stop: (error: SyncError) => void
  },
): Promise<void> {
  try {
    for (;;) {
      await clock.sleep(CLAIM_TTL_MS / 3, signal)
      const renewed = await store.renewVerification(claim, { ttlMs: CLAIM_TTL_MS, at: clock.now() }).catch(() => true)
      if (!renewed) stop(new SyncError('LEASE_LOST', `Another verification of ${claim.database} has begun since.`))
    }
  } catch {
    // The verification is over.
  }
}

function isLost({ signal }: AbortController): boolean {
  return signal.reason instanceof SyncError
}

type KnownDifferences = ReadonlyMap<string, Pick<Difference, 'kind' | 'digest' | 'since'>>

/** A difference that an earlier verification found is as old as its first sight. */
async function readKnownDifferences(store: Store, database: string): Promise<KnownDifferences> {
  const [last] = await store.verifications({ database, ended: true, limit: 1 })
  return new Map((last?.report?.found ?? []).filter(({ isRepaired }) => !isRepaired).map((one) => [one.key, one]))
}

/** One verification: its counts grow until it ends. */
class VerificationRun {
  error: { readonly code: ErrorCode; readonly message: string } | null = null
  requestsMin: number | null = null
  readonly #plan: VerificationPlan
  readonly #options: VerifyOptions
  readonly #claim: VerificationClaim
  readonly #known: KnownDifferences
  readonly #budget: RequestBudget
  readonly #copy: CopyReader
  readonly #ignore: readonly string[]
  #method: VerificationMethod
  #rows = 0
  #ignored = 0
  #moved = 0
  #gap: VerificationGap | null = null
  #found: Difference[] = []

  constructor(plan: VerificationPlan, options: VerifyOptions, claim: VerificationClaim, known: KnownDifferences) {
    this.#plan = plan
    this.#options = options
    this.#claim = claim
    this.#known = known
    this.#budget = new RequestBudget(options.budget)
    this.#copy = new CopyReader(options.store, plan.database.name)
    this.#ignore = [
      ...new Set([...(options.ignore ?? []), ...plan.sources.flatMap(({ checks }) => checks.ignore ?? [])]),
    ]
    this.#method = options.scope.kind === 'since' ? 'range' : options.scope.kind === 'sample' ? 'sample' : 'listing'
  }

  async compareAndRepair(): Promise<void> {
    const { store, runtime, scope, signal, onProgress } = this.#options
    const { clock, random } = runtime.ports
    const { database } = this.#plan
    const sources = this.#plan.sources.map((source): ComparedSource => ({ source, reader: this.#openReader(source) }))
    const comparison = await compareDatabase({
      copy: this.#copy,
      sources,
      scope,
      ignore: this.#ignore,
      hasColumnRules: database.columns !== undefined,
      now: () => clock.now(),
      random,
      onProgress: (rows) => {
        signal.throwIfAborted()
        onProgress?.({ kind: 'compared', rows })
      },
    })
    this.#method = comparison.method
    this.#rows = comparison.rows
    this.#ignored = comparison.ignored
    this.#gap = comparison.gap
    this.requestsMin = comparison.requestsMin
    for (const [{ source, reader }, candidates] of comparison.candidates) {
      onProgress?.({ kind: 'settling', rows: candidates.length, lagMs: source.lagMs })
      try {
        const settled = await settleDifferences(candidates, {
          source,
          reader,
          copy: this.#copy,
          readCoverage: () => readCoverage(store, source),
          ignore: this.#ignore,
          clock,
          signal,
        })
        this.#moved += settled.moved
        this.#ignored += settled.ignored
        if (settled.unsteady > 0) this.#gap ??= 'moved'
        await this.#addDifferences(source, settled.differences)
        if (this.#options.repair) await this.#repair(source, settled.differences)
      } catch (error) {
        // A row that the budget did not allow to look at twice is not known to differ.
        if (!(error instanceof BudgetError)) throw error
        this.#gap = 'budget'
      }
    }
  }

  #openReader(source: VerifiedSource): SourceReader {
    const { store, runtime, signal } = this.#options
    return new SourceReader({
      store,
      runtime,
      database: this.#plan.database.name,
      source,
      budget: this.#budget,
      signal,
    })
  }

  async #addDifferences(source: VerifiedSource, differences: readonly SettledDifference[]): Promise<void> {
    const { store } = this.#options
    const { worker, sync } = source.writer
    const cycles: readonly CycleRecord[] =
      differences.length === 0 ? [] : await store.cycles({ worker, sync }, { limit: 1_000 })
    for (const difference of differences) {
      const { key, record, row, seenAt, coverage } = difference
      const kind: DifferenceKind = record === null ? 'extra' : row === null ? 'missing' : 'stale'
      const digest = record?.landing?.hash ?? null
      const known = this.#known.get(key)
      const since = known?.kind === kind && known.digest === digest ? Math.min(known.since, seenAt) : seenAt
      const isSettled = isDue({ record, row, since }, coverage, source.lagMs)
      const newest =
        kind === 'missing' && this.#found.length < FOUND_MAX
          ? (await store.history(this.#plan.database.name, key)).at(-1)
          : undefined
      this.#found.push({
        key,
        kind,
        isSettled,
        since,
        digest,
        upstreamAt: record?.landing?.upstreamAt ?? null,
        copyUpstreamAt: row?.upstreamAt ?? null,
        isRepaired: false,
        cause: attributeDifference(difference, { kind, isDue: isSettled, newest, cycles }),
      })
    }
  }

  async #repair(source: VerifiedSource, differences: readonly SettledDifference[]): Promise<void> {
    const { store, runtime, holder, isHolderGone, actor, signal, onProgress, allowDeletes = false } = this.#options
    const { name: database } = this.#plan.database
    const deletes = differences.filter(({ record }) => record === null)
    const rows = (await store.databases()).find(({ name }) => name === database)?.rows ?? 0
    const isBlocked = !allowDeletes && exceedsDeleteLimit(source.writer.sweep, rows, deletes.length)
    const repairable = isBlocked ? differences.filter(({ record }) => record !== null) : differences
    const keys = repairable.map(({ key }) => key)
    if (keys.length > 0) {
      onProgress?.({ kind: 'repairing', rows: keys.length })
      const reader = this.#openReader(source)
      await repairRows(source.writer, keys, {
        store,
        ports: runtime.ports,
        holder,
        isHolderGone,
        actor,
        database,
        verification: this.#claim.id,
        signal,
        readLandings: async (chunk) => {
          const { records, columns } = await reader.find(chunk)
          const current = await this.#copy.find(chunk)
          const landings = chunk.flatMap((key): Landing[] => {
            const record = records.get(key) ?? null
            const row = current.get(key) ?? null
            if (matchRow(record, row, this.#ignore) !== 'different') return []
            if (record === null) return isBlocked ? [] : [{ type: 'delete', database, key, upstreamAt: null }]
            return record.landing === null ? [] : [record.landing]
          })
          return { landings, columns }
        },
      })
      await this.#markRepaired(repairable)
    }
    if (isBlocked)
      throw new SyncError(
        'MASS_DELETE',
        `${database}: the source has no record for ${deletes.length} of ${rows} rows, which is above the delete limit. They were not deleted.`,
      )
  }

  /** A row counts as repaired once it has changed since it was compared. */
  async #markRepaired(differences: readonly SettledDifference[]): Promise<void> {
    const before = new Map(differences.map(({ key, row }) => [key, row?.sequence]))
    const rows = await this.#copy.find([...before.keys()])
    this.#found = this.#found.map((one) =>
      before.has(one.key) ? { ...one, isRepaired: rows.get(one.key)?.sequence !== before.get(one.key) } : one,
    )
  }

  report(endedAt: number): VerificationReport {
    const settled = this.#found.filter(({ isSettled }) => isSettled)
    const count = (kind: DifferenceKind): number => settled.filter((one) => one.kind === kind).length
    return {
      syncs: this.#plan.sources.flatMap(({ syncs }) => syncs.map(({ worker, sync }) => `${worker}/${sync}`)),
      method: this.#method,
      sinceTime: this.#options.scope.kind === 'since' ? this.#options.scope.time : null,
      endedAt,
      rows: this.#rows,
      requests: this.#budget.used,
      differences: { missing: count('missing'), stale: count('stale'), extra: count('extra') },
      unsettled: this.#found.length - settled.length,
      ignored: this.#ignored,
      moved: this.#moved,
      repaired: this.#found.filter(({ isRepaired }) => isRepaired).length,
      incomplete: this.#gap,
      error: this.error,
      found: [...settled, ...this.#found.filter(({ isSettled }) => !isSettled)].slice(0, FOUND_MAX),
    }
  }
}
