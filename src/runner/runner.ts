import type { CheckpointSummary } from '../contract/index.ts'
import { classifyError } from '../engine/classify-error.ts'
import { runCycle } from '../engine/cycle.ts'
import type { CycleProgress } from '../engine/cycle-options.ts'
import { DueQueue } from './due-queue.ts'
import { fingerprintCheckpoint, type ConnectionFacts, type SyncFacts } from './due.ts'
import type { Job } from './job.ts'
import { JobSet } from './job-set.ts'
import { createOncePerSlotStore } from './once-per-slot-store.ts'
import type { TenantLoad } from './queue-order.ts'
import { findPairBackfill, type PairBackfill } from './pair-backfill.ts'
import type {
  CycleEvent,
  RunnerCapacity,
  RunnerEvent,
  RunnerOptions,
  RunnerStatus,
  RunningCycle,
} from './runner-options.ts'
import { CONTINUOUS_PAUSE_MS, buildSyncStatus } from './status.ts'
import { guardStrayRejections } from '../platform/stray-rejections.ts'
import { StoreClock } from './store-clock.ts'
import { backoffMs, SyncWatcher, type StoreFailure } from './sync-watcher.ts'

/**
 * Runs every sync when it is due, in one or many processes on one store: the process that acquires the lease runs the
 * cycle.
 *
 *   idle ──start──▶ running ──stop──▶ stopping ──last cycle ended──▶ stopped
 */
export class Runner {
  readonly #options: RunnerOptions
  readonly #concurrency: number
  readonly #pollMs: number
  readonly #jobs: JobSet
  readonly #clock: StoreClock
  readonly #watcher: SyncWatcher
  readonly #queue = new DueQueue<Job>()
  /** Held by other processes, as last polled. */
  readonly #held = new Set<Job>()
  /** Jobs without a connection whose last cycle may still run. */
  readonly #removed = new WeakSet<Job>()
  readonly #running = new Map<Job, ActiveCycle>()
  readonly #lastServed = new Map<string, number>()
  #state: RunnerStatus['state'] = 'idle'
  #loop: Promise<unknown> = Promise.resolve()
  #sleepAbort: AbortController | null = null
  #cycles = 0

  constructor(options: RunnerOptions) {
    const {
      store,
      ports,
      tenants = [store.tenant],
      concurrency = 4,
      pollMs = 1_000,
      pollBatchMax = 250,
      pauseMs = CONTINUOUS_PAUSE_MS,
    } = options
    this.#options = options
    this.#concurrency = concurrency
    this.#pollMs = pollMs
    this.#jobs = new JobSet({ store, syncs: options.syncs, random: ports.random })
    const jobs = tenants.flatMap((tenant) => this.#jobs.addTenant(tenant))
    this.#clock = new StoreClock(ports.clock)
    this.#watcher = new SyncWatcher(jobs, {
      clock: this.#clock,
      ports,
      pollMs,
      pollBatchMax,
      pauseMs,
      isBusy: (job) => this.#running.has(job),
      onUpdate: (job) => this.#reschedule(job),
      onStoreFailure: (failure) => this.#reportStoreFailure(failure),
      onWake: () => this.#sleepAbort?.abort(new Error('the store has changes')),
    })
  }

  /** Also runs the syncs for another tenant from now on. */
  addTenant(tenant: string): void {
    if (!this.#jobs.has(tenant)) this.#watcher.add(this.#jobs.addTenant(tenant))
  }

  /**
   * Runs the syncs of a tenant that read with one of these connections, and no other that names a connection. A cycle
   * whose connection is gone or inactive stops between two pages. Costs the same however many tenants there are.
   */
  setConnections(tenant: string, connections: readonly ConnectionFacts[]): void {
    const { added, removed, changed } = this.#jobs.setConnections(tenant, connections)
    for (const job of removed) this.#removeJob(job)
    for (const job of changed) {
      if (job.connection?.status !== 'active') this.#stopCycle(job)
      this.#watcher.updateDue(job)
    }
    if (added.length > 0) this.#watcher.add(added)
    this.#sleepAbort?.abort(new Error('connections changed'))
  }

  #removeJob(job: Job): void {
    this.#removed.add(job)
    this.#stopCycle(job)
    this.#held.delete(job)
    this.#queue.remove(job)
    this.#watcher.remove(job)
  }

  #stopCycle(job: Job): void {
    this.#running.get(job)?.stopping.abort(new Error('the connection is not active'))
  }

  /** Resolves after the first poll. An unreachable store is retried. */
  async start(): Promise<void> {
    if (this.#state !== 'idle') return
    this.#state = 'running'
    const guard = guardStrayRejections((message) => {
      this.#options.ports.log.error('unhandled promise rejection in a connector', { reason: message })
      this.#emit({ kind: 'stray', message })
    })
    const first = this.#watcher.poll()
    this.#watcher.subscribe()
    this.#loop = first
      .then(() => this.#runLoop())
      .then(() => Promise.all([...this.#running.values()].map(({ done }) => done)))
      // A failure of the loop itself is an unhandled rejection: without the guard it ends the process, and a
      // supervisor restarts it.
      .finally(async () => {
        guard.remove()
        this.#state = 'stopped'
        await this.#watcher.close()
      })
    await first
  }

  /**
   * Starts no new cycle and aborts running ones, which end between two pages. Resolves when all have ended, or after
   * `graceMs`: a cycle that still runs then is safe to abandon, and other processes take over when its lease expires.
   * May be called again with a shorter `graceMs`.
   */
  async stop({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    if (this.#state === 'running') this.#state = 'stopping'
    if (this.#state === 'idle') this.#state = 'stopped'
    for (const { stopping } of this.#running.values()) stopping.abort(new Error('the runner is stopping'))
    this.#sleepAbort?.abort(new Error('the runner is stopping'))
    const graceOver = new AbortController()
    const timeout = this.#options.ports.clock.sleep(graceMs, graceOver.signal).catch(() => {})
    await Promise.race([this.#loop, timeout])
    graceOver.abort(new Error('all cycles have ended'))
  }

  /** Whether no cycle runs and none is due, as last polled. */
  isIdle(): boolean {
    return this.#running.size === 0 && this.#queue.readyCount(this.#clock.now()) === 0
  }

  capacity(): RunnerCapacity {
    return {
      slots: this.#concurrency,
      running: this.#running.size,
      waiting: this.#queue.readyCount(this.#clock.now()),
    }
  }

  status(): RunnerStatus {
    return {
      state: this.#state,
      running: [...this.#running.values()].map(({ cycle }) => ({ ...cycle })),
      waiting: this.#queue.readyCount(this.#clock.now()),
      syncs: [...this.#jobs.all()].flatMap((job) =>
        job.facts === null
          ? []
          : [
              buildSyncStatus(
                job.tenant,
                job.sync,
                {
                  ...job.facts,
                  backfill: this.#findBackfill(job, job.facts),
                  ...(job.connection !== undefined && { connection: job.connection }),
                },
                job.due,
              ),
            ],
      ),
    }
  }

  #findBackfill(
    { tenant, ref: { worker, sync }, sync: declared }: Job,
    { checkpoint }: SyncFacts,
  ): PairBackfill | null {
    const find = (other: string): CheckpointSummary | undefined =>
      this.#jobs.find(tenant, worker, other)?.facts?.checkpoint
    return findPairBackfill({ sync, checkpoint }, declared, { findCheckpoint: find, now: this.#clock.now() })
  }

  async #runLoop(): Promise<void> {
    while (this.#state === 'running') {
      this.#startDue()
      await this.#waitForWork()
      if (this.#state !== 'running' || this.#watcher.nextPollMs() > 0) continue
      await this.#watcher.poll()
      // A holder may have exited since the last poll.
      for (const job of this.#held) this.#reschedule(job)
    }
  }

  #startDue(): void {
    while (this.#running.size < this.#concurrency) {
      const job = this.#queue.takeNext(this.#clock.now(), this.#tenantLoad())
      if (job === null) return
      this.#startCycle(job)
    }
  }

  #reschedule(job: Job): void {
    if (this.#removed.has(job)) return
    const isRunning = this.#running.has(job)
    const isHeld = !isRunning && job.heldUntil(this.#isDead) > this.#clock.now()
    this.#held[isHeld ? 'add' : 'delete'](job)
    this.#queue.schedule(job, isRunning ? Infinity : job.readyAt(this.#isDead))
  }

  /** Counts the whole fleet: cycles that run elsewhere use up the tenant's share. */
  #tenantLoad(): TenantLoad {
    const running = new Map<string, number>()
    for (const jobs of [this.#running.keys(), this.#held])
      for (const { tenant } of jobs) running.set(tenant, (running.get(tenant) ?? 0) + 1)
    return {
      runningCycles: (tenant) => running.get(tenant) ?? 0,
      lastServed: (tenant) => this.#lastServed.get(tenant) ?? 0,
    }
  }

  /**
   * Waits until the next poll, the next due sync or the end of a cycle; at least 1 ms, so that other work of the
   * process can run.
   */
  async #waitForWork(): Promise<void> {
    let ms = this.#watcher.nextPollMs()
    if (this.#running.size < this.#concurrency) {
      const now = this.#clock.now()
      ms = Math.min(ms, this.#queue.nextAt(now) - now)
    }
    this.#sleepAbort = new AbortController()
    await this.#clock.sleep(Math.max(1, Math.ceil(ms)), this.#sleepAbort.signal).catch(() => {})
    this.#sleepAbort = null
  }

  // ── one cycle ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #startCycle(job: Job): void {
    const why = job.dueReason
    const cycle = {
      ...job.ref,
      why,
      holder: `${this.#options.holder}#${++this.#cycles}`,
      startedAt: this.#clock.now(),
      page: null,
    }
    const running: ActiveCycle = { cycle, stopping: new AbortController(), done: Promise.resolve() }
    this.#running.set(job, running)
    this.#held.delete(job)
    this.#lastServed.set(job.tenant, this.#cycles)
    running.done = this.#runCycle(job, running).finally(() => {
      this.#running.delete(job)
      this.#reschedule(job)
      this.#sleepAbort?.abort(new Error('a slot is free'))
    })
  }

  /** Never rejects: a failing sync must not affect the others. */
  async #runCycle(job: Job, running: ActiveCycle): Promise<void> {
    const { fetch, secrets } = this.#options
    const ports = { ...this.#options.ports, clock: this.#clock }
    let slotTaken = false
    try {
      const result = await runCycle(job.sync.plan, {
        store: createOncePerSlotStore(
          job.store,
          job.ref,
          fingerprintCheckpoint(job.checkpoint),
          () => (slotTaken = true),
        ),
        ports,
        fetch,
        secrets: typeof secrets === 'function' ? secrets(job.tenant) : secrets,
        holder: running.cycle.holder,
        trigger: running.cycle.why === 'trigger' ? 'trigger' : 'schedule',
        signal: running.stopping.signal,
        isHolderGone: this.#isDead,
        onProgress: (progress) => this.#reportProgress(job, running, progress),
      })
      job.backoffStep = 0
      if (result.stopReason !== 'held') {
        // Paused between the poll and the lease: no cycle began, so none ended.
        if (result.stopReason !== 'paused' || result.cycle !== null) this.#emit({ kind: 'ended', ...job.ref, result })
        return await this.#watcher.refresh(job)
      }
      // By the store's clock the lease may last longer than by ours.
      job.notBefore = ports.clock.now() + this.#pollMs
      await this.#watcher.refresh(job)
      const { heldBy, heldUntil } = job.checkpoint
      if (!slotTaken) this.#emit({ kind: 'held', ...job.ref, by: heldBy, until: heldUntil })
    } catch (thrown) {
      const { code, message } = classifyError(thrown)
      const waitMs = backoffMs(this.#pollMs, job.backoffStep++)
      job.notBefore = ports.clock.now() + waitMs
      this.#reportStoreFailure({ ...job.ref, code, message, waitMs })
    }
  }

  #reportProgress(job: Job, running: ActiveCycle, progress: CycleProgress): void {
    if (progress.kind !== 'waiting') running.cycle = { ...running.cycle, page: progress.page }
    if (progress.kind !== 'begun') return this.#emit({ ...job.ref, ...progress })
    const { cycle, resumed, page } = progress
    this.#emit({ kind: 'started', ...job.ref, why: running.cycle.why, cycle, resumed, page })
  }

  #reportStoreFailure(failure: StoreFailure & Partial<CycleEvent>): void {
    const { message, ...fields } = failure
    this.#options.ports.log.warn('the store is unreachable', { ...fields, reason: message })
    this.#emit({ kind: 'store', ...failure })
  }

  /** A lease with our name that none of our cycles uses is left over from a failed release. */
  readonly #isDead = (holder: string): boolean => {
    const { holder: own, isDead } = this.#options
    if (!holder.startsWith(`${own}#`)) return isDead?.(holder) === true
    return ![...this.#running.values()].some(({ cycle }) => cycle.holder === holder)
  }

  /** A throwing listener is logged; it must not fail the cycle. */
  #emit(event: RunnerEvent): void {
    try {
      this.#options.onEvent?.(event)
    } catch (thrown) {
      this.#options.ports.log.error('an event listener threw', {
        event: event.kind,
        reason: classifyError(thrown).message,
      })
    }
  }
}

interface ActiveCycle {
  cycle: RunningCycle
  readonly stopping: AbortController
  done: Promise<void>
}
