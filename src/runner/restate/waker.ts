import type { Ports } from '../../contract/index.ts'
import { classifyError } from '../../engine/classify-error.ts'
import { DueQueue } from '../due-queue.ts'
import type { Job } from '../job.ts'
import type { StoreClock } from '../store-clock.ts'
import { backoffMs, SyncWatcher, type StoreFailure } from '../sync-watcher.ts'

export interface WakerOptions {
  readonly clock: StoreClock
  readonly ports: Ports
  readonly pollMs: number
  readonly pauseMs: number
  readonly isDead: (holder: string) => boolean
  /** Sends the due time to the object of the job. */
  readonly wake: (job: Job, at: number) => Promise<void>
  readonly onStoreFailure: (failure: StoreFailure) => void
}

/**
 * Wakes objects when other processes change the registry. An object computes its next run after each cycle and sets
 * its own timer, so it is woken only if it became due earlier than it knows, or if it is overdue.
 */
export class Waker {
  readonly #options: WakerOptions
  readonly #watcher: SyncWatcher
  readonly #queue = new DueQueue<Job>()
  readonly #known = new Map<Job, KnownDue>()
  readonly #lastServed = new Map<string, number>()
  #isStopping = false
  #sending = 0
  #turn = 0
  #sleepAbort: AbortController | null = null
  #loop: Promise<unknown> = Promise.resolve()

  constructor(jobs: readonly Job[], options: WakerOptions) {
    const { clock, ports, pollMs, pauseMs, onStoreFailure } = options
    this.#options = options
    this.#watcher = new SyncWatcher(jobs, {
      clock,
      ports,
      pollMs,
      pauseMs,
      pollBatchMax: POLL_BATCH_MAX,
      isBusy: () => false,
      onUpdate: (job) => this.#update(job),
      onStoreFailure,
      onWake: () => this.#interruptSleep(),
    })
  }

  add(jobs: readonly Job[]): void {
    this.#watcher.add(jobs)
  }

  remove(job: Job): void {
    this.#queue.remove(job)
    this.#known.delete(job)
    this.#watcher.remove(job)
  }

  updateDue(job: Job): void {
    this.#watcher.updateDue(job)
  }

  /** Resolves after the first poll. */
  async start(): Promise<void> {
    const first = this.#watcher.poll()
    this.#watcher.subscribe()
    this.#loop = first.then(() => this.#runLoop())
    await first
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    this.#interruptSleep()
    await this.#loop
    await this.#watcher.close()
  }

  async #runLoop(): Promise<void> {
    while (!this.#isStopping) {
      this.#wakeDue()
      await this.#waitForWork()
      if (!this.#isStopping && this.#watcher.nextPollMs() === 0) await this.#watcher.poll()
    }
  }

  #wakeDue(): void {
    while (this.#sending < SENDS_AT_ONCE) {
      // Tenants alternate, so that a small one does not wait for all syncs of a large one.
      const job = this.#queue.takeNext(this.#options.clock.now(), {
        runningCycles: () => 0,
        lastServed: (tenant) => this.#lastServed.get(tenant) ?? 0,
      })
      if (job === null) return
      this.#sending++
      this.#lastServed.set(job.tenant, ++this.#turn)
      void this.#wake(job).finally(() => {
        this.#sending--
        this.#interruptSleep()
      })
    }
  }

  async #waitForWork(): Promise<void> {
    const { clock } = this.#options
    const now = clock.now()
    const nextMs = this.#sending < SENDS_AT_ONCE ? this.#queue.nextAt(now) - now : Infinity
    this.#sleepAbort = new AbortController()
    await clock
      .sleep(Math.max(1, Math.ceil(Math.min(this.#watcher.nextPollMs(), nextMs))), this.#sleepAbort.signal)
      .catch(() => {})
    this.#sleepAbort = null
  }

  #interruptSleep(): void {
    this.#sleepAbort?.abort(new Error('the store has changes'))
  }

  #update(job: Job): void {
    const { clock, isDead } = this.#options
    const known = this.#known.get(job)
    const seen = {
      at: job.due?.kind === 'at' ? job.due.at : Infinity,
      fingerprint: job.fingerprint,
    }
    if (seen.fingerprint === known?.fingerprint) return
    this.#known.set(job, seen)
    job.backoffStep = 0
    const now = clock.now()
    const heldUntil = job.heldUntil(isDead)
    const isSooner = seen.at <= now || seen.at < (known?.at ?? Infinity)
    this.#queue.schedule(job, isSooner && heldUntil <= now ? now : Math.max(seen.at, heldUntil, now) + OVERDUE_GRACE_MS)
  }

  /** Repeats while the job stays overdue: the last call may have reached a process with an older worker file. */
  async #wake(job: Job): Promise<void> {
    const { clock, ports, pollMs, wake } = this.#options
    const known = this.#known.get(job)
    if (known === undefined) return
    let retryMs: number
    try {
      await wake(job, known.at)
      retryMs = Math.max(0, known.at - clock.now()) + backoffMs(OVERDUE_GRACE_MS, job.backoffStep++)
    } catch (thrown) {
      const { code, message } = classifyError(thrown)
      // Restate knows a worker only after its registration.
      const level = code === 'RESTATE_REFUSED' && job.backoffStep < 2 ? 'debug' : 'warn'
      retryMs = backoffMs(pollMs, job.backoffStep++)
      ports.log[level]('Restate could not be notified', { ...job.ref, code, waitMs: retryMs, reason: message })
    }
    if (this.#known.get(job) === known) this.#queue.schedule(job, clock.now() + retryMs)
  }
}

interface KnownDue {
  /** Infinity for never. */
  readonly at: number
  readonly fingerprint: string
}

/** Time after the due time at which a job counts as overdue. */
const OVERDUE_GRACE_MS = 10_000
const SENDS_AT_ONCE = 16
const POLL_BATCH_MAX = 250
