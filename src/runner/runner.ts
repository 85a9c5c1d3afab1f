import type { Outline } from '../contract/index.ts'
import { classify } from '../engine/classify.ts'
import { runCycle } from '../engine/cycle.ts'
import type { Progress } from '../engine/cycle-options.ts'
import { Agenda } from './agenda.ts'
import { markOf, type Facts, type Why } from './due.ts'
import { Job } from './job.ts'
import { oncePerSlot } from './once-per-slot.ts'
import type { Shares } from './order.ts'
import { backfillOf, type PairBackfill } from './pair-backfill.ts'
import type { CycleEvent, Places, RunnerEvent, RunnerOptions, RunnerStatus, RunningCycle } from './runner-options.ts'
import { PAUSE_MS, statusOf } from './status.ts'
import { guardStrayRejections } from '../platform/stray-rejections.ts'
import { StoreClock } from './store-clock.ts'
import { backoffMs, Watch, type Trouble } from './watch.ts'

/**
 * Runs every sync when it is due, in one process or in many on one store: whoever takes the lease runs the cycle.
 *
 *   idle ──start──▶ running ──stop──▶ stopping ──last cycle ended──▶ stopped
 */
export class Runner {
  readonly #options: RunnerOptions
  readonly #concurrency: number
  readonly #pollMs: number
  readonly #jobs: Job[]
  readonly #clock: StoreClock
  readonly #watch: Watch
  readonly #agenda = new Agenda<Job>()
  /** Held by others, as far as is known. */
  readonly #held = new Set<Job>()
  readonly #running = new Map<Job, Running>()
  readonly #turns = new Map<string, number>()
  #state: RunnerStatus['state'] = 'idle'
  #loop: Promise<unknown> = Promise.resolve()
  #nap: AbortController | null = null
  #cycles = 0

  constructor(options: RunnerOptions) {
    const { store, ports, tenants = [store.tenant], concurrency = 4, pollMs = 1_000, looksMax = 250, pauseMs = PAUSE_MS } = options
    this.#options = options
    this.#concurrency = concurrency
    this.#pollMs = pollMs
    this.#jobs = tenants.flatMap((tenant) => this.#jobsOf(tenant))
    this.#clock = new StoreClock(ports.clock)
    this.#watch = new Watch(this.#jobs, {
      clock: this.#clock, ports, pollMs, looksMax, pauseMs,
      isBusy: (job) => this.#running.has(job),
      onSeen: (job) => this.#arrange(job),
      onTrouble: (trouble) => this.#noteTrouble(trouble),
      onNews: () => this.#nap?.abort(new Error('there is news')),
    })
  }

  /** Runs the syncs for another tenant as well, from now on. */
  addTenant(tenant: string): void {
    if (this.#jobs.some((job) => job.tenant === tenant)) return
    const jobs = this.#jobsOf(tenant)
    this.#jobs.push(...jobs)
    this.#watch.add(jobs)
  }

  /** Resolves once it is at work. A store that cannot be reached is asked again, not given up. */
  async start(): Promise<void> {
    if (this.#state !== 'idle') return
    this.#state = 'running'
    const guard = guardStrayRejections((message) => {
      this.#options.ports.log.error('a promise that nobody waited for failed', { reason: message })
      this.#emit({ kind: 'stray', message })
    })
    const first = this.#watch.lookAround()
    this.#watch.listen()
    this.#loop = first
      .then(() => this.#keepStarting())
      .then(() => Promise.all([...this.#running.values()].map(({ ended }) => ended)))
      // A failure of the loop itself is nobody's to catch: without the guard it ends the process, and a supervisor starts another.
      .finally(async () => {
        guard.remove()
        this.#state = 'stopped'
        await this.#watch.close()
      })
    await first
  }

  /**
   * No new cycle begins; running ones are told to stop, which they do between two pages. Resolves when all have ended, or
   * after `graceMs`: whatever still runs then is safe to leave, and others take it over when its lease is over. May be
   * asked again with less patience.
   */
  async stop({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    if (this.#state === 'running') this.#state = 'stopping'
    if (this.#state === 'idle') this.#state = 'stopped'
    for (const { stopping } of this.#running.values()) stopping.abort(new Error('the runner stops'))
    this.#nap?.abort(new Error('the runner stops'))
    const patience = new AbortController()
    const lost = this.#options.ports.clock.sleep(graceMs, patience.signal).catch(() => {})
    await Promise.race([this.#loop, lost])
    patience.abort(new Error('all have ended'))
  }

  places(): Places {
    return { places: this.#concurrency, running: this.#running.size, waiting: this.#agenda.waiting(this.#clock.now()) }
  }

  status(): RunnerStatus {
    return {
      state: this.#state,
      running: [...this.#running.values()].map(({ cycle }) => ({ ...cycle })),
      waiting: this.#agenda.waiting(this.#clock.now()),
      syncs: this.#jobs.flatMap((job) => (job.standing === null ? [] : [statusOf(job.tenant, job.sync, { ...job.standing, backfill: this.#backfillOf(job, job.standing) }, job.due)])),
    }
  }

  #backfillOf({ tenant, name: { worker, sync }, sync: declared }: Job, { checkpoint }: Facts): PairBackfill | null {
    const find = (other: string): Outline | undefined =>
      this.#jobs.find((job) => job.tenant === tenant && job.name.worker === worker && job.name.sync === other)?.standing?.checkpoint
    return backfillOf({ sync, checkpoint }, declared, { find, now: this.#clock.now() })
  }

  #jobsOf(tenant: string): Job[] {
    const { store, syncs, ports } = this.#options
    const own = tenant === store.tenant ? store : store.forTenant(tenant)
    return syncs.map((sync) => new Job(own, sync, ports.random.next()))
  }

  async #keepStarting(): Promise<void> {
    while (this.#state === 'running') {
      this.#startDue()
      await this.#rest()
      if (this.#state !== 'running' || this.#watch.restMs() > 0) continue
      await this.#watch.lookAround()
      // Whether their holders live is for us to find out.
      for (const job of this.#held) this.#arrange(job)
    }
  }

  #startDue(): void {
    while (this.#running.size < this.#concurrency) {
      const job = this.#agenda.next(this.#clock.now(), this.#shares())
      if (job === null) return
      this.#begin(job)
    }
  }

  /** Where it belongs by all that is known of it. */
  #arrange(job: Job): void {
    const isRunning = this.#running.has(job)
    const isHeld = !isRunning && job.heldUntil(this.#isDead) > this.#clock.now()
    this.#held[isHeld ? 'add' : 'delete'](job)
    this.#agenda.put(job, isRunning ? Infinity : job.readyAt(this.#isDead))
  }

  /** Of the whole fleet: a tenant that is being served elsewhere has its share. */
  #shares(): Shares {
    const running = new Map<string, number>()
    for (const jobs of [this.#running.keys(), this.#held]) for (const { tenant } of jobs) running.set(tenant, (running.get(tenant) ?? 0) + 1)
    return { running: (tenant) => running.get(tenant) ?? 0, lastTurn: (tenant) => this.#turns.get(tenant) ?? 0 }
  }

  /** Until it is time to look, a sync becomes due, or a cycle ends. A moment at least, so that the rest of the process gets its turn. */
  async #rest(): Promise<void> {
    let ms = this.#watch.restMs()
    if (this.#running.size < this.#concurrency) {
      const now = this.#clock.now()
      ms = Math.min(ms, this.#agenda.nextAt(now) - now)
    }
    this.#nap = new AbortController()
    await this.#clock.sleep(Math.max(1, Math.ceil(ms)), this.#nap.signal).catch(() => {})
    this.#nap = null
  }

  // ── one cycle ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #begin(job: Job): void {
    const why = job.due!.why as Why
    const cycle = { ...job.name, why, holder: `${this.#options.holder}#${++this.#cycles}`, startedAt: this.#clock.now(), page: null }
    const running: Running = { cycle, stopping: new AbortController(), ended: Promise.resolve() }
    this.#running.set(job, running)
    this.#held.delete(job)
    this.#turns.set(job.tenant, this.#cycles)
    running.ended = this.#run(job, running).finally(() => {
      this.#running.delete(job)
      this.#arrange(job)
      this.#nap?.abort(new Error('a place is free'))
    })
  }

  /** Never rejects: whatever goes wrong with one sync is its own affair. */
  async #run(job: Job, running: Running): Promise<void> {
    const { fetch, secrets } = this.#options
    const ports = { ...this.#options.ports, clock: this.#clock }
    let outrun = false
    try {
      const result = await runCycle(job.sync.plan, {
        store: oncePerSlot(job.store, job.name, markOf(job.standing!.checkpoint), () => (outrun = true)),
        ports,
        fetch,
        secrets: typeof secrets === 'function' ? secrets(job.tenant) : secrets,
        holder: running.cycle.holder,
        trigger: running.cycle.why === 'trigger' ? 'trigger' : 'schedule',
        signal: running.stopping.signal,
        isDead: this.#isDead,
        onProgress: (progress) => this.#note(job, running, progress),
      })
      job.stumbles = 0
      if (result.stopReason !== 'held') {
        // Paused between the look and the lease: nothing began, so nothing ended.
        if (result.stopReason !== 'paused' || result.cycle !== null) this.#emit({ kind: 'ended', ...job.name, result })
        return await this.#watch.lookAt(job)
      }
      // By the store's own clock the lease may last longer than by ours.
      job.notBefore = ports.clock.now() + this.#pollMs
      await this.#watch.lookAt(job)
      const { heldBy, heldUntil } = job.standing!.checkpoint
      if (!outrun) this.#emit({ kind: 'held', ...job.name, by: heldBy, until: heldUntil })
    } catch (thrown) {
      const { code, message } = classify(thrown)
      const waitMs = backoffMs(this.#pollMs, job.stumbles++)
      job.notBefore = ports.clock.now() + waitMs
      this.#noteTrouble({ ...job.name, code, message, waitMs })
    }
  }

  #note(job: Job, running: Running, progress: Progress): void {
    if (progress.kind !== 'waiting') running.cycle = { ...running.cycle, page: progress.page }
    if (progress.kind !== 'begun') return this.#emit({ ...job.name, ...progress })
    const { cycle, resumed, page } = progress
    this.#emit({ kind: 'started', ...job.name, why: running.cycle.why, cycle, resumed, page })
  }

  #noteTrouble(trouble: Trouble & Partial<CycleEvent>): void {
    const { message, ...fields } = trouble
    this.#options.ports.log.warn('the store could not be asked', { ...fields, reason: message })
    this.#emit({ kind: 'store', ...trouble })
  }

  /** A lease of our own that no cycle of ours runs under could not be given back. */
  readonly #isDead = (holder: string): boolean => {
    const { holder: own, isDead } = this.#options
    if (!holder.startsWith(`${own}#`)) return isDead?.(holder) === true
    return ![...this.#running.values()].some(({ cycle }) => cycle.holder === holder)
  }

  /** A listener that throws is told so in the log; it must not fail the cycle it was told about. */
  #emit(event: RunnerEvent): void {
    try {
      this.#options.onEvent?.(event)
    } catch (thrown) {
      this.#options.ports.log.error('an event listener threw', { event: event.kind, reason: classify(thrown).message })
    }
  }
}

interface Running {
  cycle: RunningCycle
  readonly stopping: AbortController
  ended: Promise<void>
}
