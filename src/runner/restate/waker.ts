import type { Ports } from '../../contract/index.ts'
import { classifyError } from '../../engine/classify-error.ts'
import { DueQueue } from '../due-queue.ts'
import { fingerprintCheckpoint } from '../due.ts'
import type { Job } from '../job.ts'
import type { StoreClock } from '../store-clock.ts'
import { backoffMs, SyncWatcher, type StoreFailure } from '../sync-watcher.ts'

export interface WakerOptions {
  readonly clock: StoreClock
  readonly ports: Ports
  readonly pollMs: number
  readonly pauseMs: number
  readonly isDead: (holder: string) => boolean
  /** Tells the object of the job that it is due at that time. */
  readonly wake: (job: Job, at: number) => Promise<void>
  readonly onStoreFailure: (trouble: StoreFailure) => void
}

/**
 * Tells the objects what others wrote to the registry. An object looks after each of its cycles when the next one is, and
 * sets its own timer; so it is told only when something became due sooner than it can know, and when it is overdue all
 * the same.
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
    const { clock, ports, pollMs, pauseMs, onStoreFailure: onTrouble } = options
    this.#options = options
    this.#watcher = new SyncWatcher(jobs, { clock, ports, pollMs, pauseMs, pollBatchMax: POLL_BATCH_MAX, isBusy: () => false, onUpdate: (job) => this.#update(job), onStoreFailure: onTrouble, onWake: () => this.#interruptSleep() })
  }

  add(jobs: readonly Job[]): void {
    this.#watcher.add(jobs)
  }

  /** Resolves when it has looked around once. */
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
      // Tenants by turns: a small one must not be told after all that a large one has.
      const job = this.#queue.takeNext(this.#options.clock.now(), { runningCycles: () => 0, lastServed: (tenant) => this.#lastServed.get(tenant) ?? 0 })
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
    await clock.sleep(Math.max(1, Math.ceil(Math.min(this.#watcher.nextPollMs(), nextMs))), this.#sleepAbort.signal).catch(() => {})
    this.#sleepAbort = null
  }

  #interruptSleep(): void {
    this.#sleepAbort?.abort(new Error('there is news'))
  }

  #update(job: Job): void {
    const { clock, isDead } = this.#options
    const known = this.#known.get(job)
    const seen = { at: job.due?.kind === 'at' ? job.due.at : Infinity, fingerprint: fingerprintCheckpoint(job.facts!.checkpoint) }
    if (seen.fingerprint === known?.fingerprint) return
    this.#known.set(job, seen)
    job.backoffStep = 0
    const now = clock.now()
    const heldUntil = job.heldUntil(isDead)
    const isSooner = seen.at <= now || seen.at < (known?.at ?? Infinity)
    this.#queue.schedule(job, isSooner && heldUntil <= now ? now : Math.max(seen.at, heldUntil, now) + OVERDUE_GRACE_MS)
  }

  /** Again and again while it stays overdue: whoever was told last may have run an older worker file that does not know it. */
  async #wake(job: Job): Promise<void> {
    const { clock, ports, pollMs, wake } = this.#options
    const known = this.#known.get(job)!
    let againMs: number
    try {
      await wake(job, known.at)
      againMs = Math.max(0, known.at - clock.now()) + backoffMs(OVERDUE_GRACE_MS, job.backoffStep++)
    } catch (thrown) {
      const { code, message } = classifyError(thrown)
      // It hears of a worker only after that is served.
      const level = code === 'RESTATE_REFUSED' && job.backoffStep < 2 ? 'debug' : 'warn'
      againMs = backoffMs(pollMs, job.backoffStep++)
      ports.log[level]('Restate could not be told', { ...job.ref, code, waitMs: againMs, reason: message })
    }
    if (this.#known.get(job) === known) this.#queue.schedule(job, clock.now() + againMs)
  }
}

interface KnownDue {
  /** Infinity for never. */
  readonly at: number
  readonly fingerprint: string
}

/** So much later than its time it is overdue. */
const OVERDUE_GRACE_MS = 10_000
const SENDS_AT_ONCE = 16
const POLL_BATCH_MAX = 250
