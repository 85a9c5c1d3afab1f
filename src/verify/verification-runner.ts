import type { Store } from '../contract/index.ts'
import { nextDueTime } from '../config/schedule.ts'
import { classifyError } from '../engine/classify-error.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import type { TenantSourceRuntime } from '../runner/tenant-runtime.ts'
import { toOutcome } from './describe-report.ts'
import type { DeclaredVerification } from '../worker/verification-options.ts'
import { planVerification } from './verification-plan.ts'
import { verifyDatabase } from './verify-database.ts'

/** The verifications of a worker, with the syncs that fill its databases. */
export interface WorkerVerifications {
  readonly plans: () => readonly SyncPlan[]
  readonly verifications: readonly DeclaredVerification[]
}

export interface VerificationRunnerOptions {
  readonly store: Store
  readonly sourceRuntime: TenantSourceRuntime
  readonly holder: string
  readonly isHolderGone: (holder: string) => boolean
  readonly workers: readonly WorkerVerifications[]
  /** Interval at which the store is polled for due verifications; defaults to ten seconds. */
  readonly pollMs?: number
}

/** Runs verifications on their schedules, one at a time. Any number of processes may share a store. */
export class VerificationRunner {
  readonly #options: VerificationRunnerOptions
  readonly #stores = new Map<string, Store>()
  readonly #stopping = new AbortController()
  readonly #since: number
  #loop: Promise<void> = Promise.resolve()

  constructor(options: VerificationRunnerOptions) {
    this.#options = options
    this.#since = options.sourceRuntime.ports.clock.now()
    this.add(options.store.tenant)
  }

  add(tenant: string): void {
    const { store } = this.#options
    if (!this.#stores.has(tenant)) this.#stores.set(tenant, tenant === store.tenant ? store : store.forTenant(tenant))
  }

  start(): void {
    if (this.#options.workers.some(({ verifications }) => verifications.length > 0)) this.#loop = this.#runLoop()
  }

  /** Aborts a running verification: it is recorded as failed. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the verifications are stopping'))
    await this.#loop
  }

  async #runLoop(): Promise<void> {
    const { sourceRuntime, pollMs = 10_000 } = this.#options
    const { clock, log } = sourceRuntime.ports
    while (!this.#stopping.signal.aborted) {
      for (const store of this.#stores.values())
        await this.#runDue(store).catch((error: unknown) =>
          log.warn('verifications could not be read', { tenant: store.tenant, code: classifyError(error).code }),
        )
      await clock.sleep(pollMs, this.#stopping.signal).catch(() => {})
    }
  }

  async #runDue(store: Store): Promise<void> {
    const { clock } = this.#options.sourceRuntime.ports
    for (const worker of this.#options.workers)
      for (const declared of worker.verifications) {
        if (this.#stopping.signal.aborted) return
        const [last] = await store.verifications({ database: declared.database, limit: 1 })
        const lastStartedAt = last?.startedAt ?? null
        const dueAt = nextDueTime(declared.schedule, { now: clock.now(), since: this.#since, lastStartedAt })
        if (dueAt !== null && dueAt <= clock.now()) await this.#run(store, worker, declared)
      }
  }

  async #run(store: Store, { plans }: WorkerVerifications, declared: DeclaredVerification): Promise<void> {
    const { sourceRuntime, holder, isHolderGone } = this.#options
    const { database, repair, budget, sample, isFull, ignore } = declared
    const { log } = sourceRuntime.ports
    const fields = { tenant: store.tenant, database }
    try {
      const { verification } = await verifyDatabase(planVerification(plans(), database), {
        store,
        runtime: { ...sourceRuntime, secrets: sourceRuntime.secretsOf(store.tenant) },
        holder,
        isHolderGone,
        actor: 'schedule',
        automatic: true,
        scope: sample !== null ? { kind: 'sample', rows: sample } : { kind: isFull ? 'full' : 'auto' },
        ignore,
        budget,
        repair,
        signal: this.#stopping.signal,
      })
      const { report } = verification
      const outcome = toOutcome(report)
      const level = outcome === 'equal' || outcome === 'unsettled' ? 'info' : 'warn'
      log[level]('a database was verified', {
        ...fields,
        verification: verification.id,
        outcome,
        ...report.differences,
      })
    } catch (error) {
      const { code } = classifyError(error)
      // Another process verifies it now.
      if (code !== 'LEASE_HELD') log.warn('a database could not be verified', { ...fields, code })
    }
  }
}
