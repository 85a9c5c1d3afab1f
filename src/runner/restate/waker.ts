import type { Ports } from '../../contract/index.ts'
import { classify } from '../../engine/classify.ts'
import { Agenda } from '../agenda.ts'
import { markOf } from '../due.ts'
import type { Job } from '../job.ts'
import type { StoreClock } from '../store-clock.ts'
import { backoffMs, Watch, type Trouble } from '../watch.ts'

export interface WakerOptions {
  readonly clock: StoreClock
  readonly ports: Ports
  readonly pollMs: number
  readonly pauseMs: number
  readonly isDead: (holder: string) => boolean
  /** Tells the object of the job that it is due at that time. */
  readonly wake: (job: Job, at: number) => Promise<void>
  readonly onTrouble: (trouble: Trouble) => void
}

/**
 * Tells the objects what others wrote to the registry. An object looks after each of its cycles when the next one is, and
 * sets its own timer; so it is told only when something became due sooner than it can know, and when it is overdue all
 * the same.
 */
export class Waker {
  readonly #options: WakerOptions
  readonly #watch: Watch
  readonly #agenda = new Agenda<Job>()
  readonly #known = new Map<Job, Known>()
  readonly #turns = new Map<string, number>()
  #isStopping = false
  #sending = 0
  #turn = 0
  #nap: AbortController | null = null
  #loop: Promise<unknown> = Promise.resolve()

  constructor(jobs: readonly Job[], options: WakerOptions) {
    const { clock, ports, pollMs, pauseMs, onTrouble } = options
    this.#options = options
    this.#watch = new Watch(jobs, { clock, ports, pollMs, pauseMs, looksMax: LOOKS_MAX, isBusy: () => false, onSeen: (job) => this.#see(job), onTrouble, onNews: () => this.#rouse() })
  }

  add(jobs: readonly Job[]): void {
    this.#watch.add(jobs)
  }

  /** Resolves when it has looked around once. */
  async start(): Promise<void> {
    const first = this.#watch.lookAround()
    this.#watch.listen()
    this.#loop = first.then(() => this.#keepWaking())
    await first
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    this.#rouse()
    await this.#loop
    await this.#watch.close()
  }

  async #keepWaking(): Promise<void> {
    while (!this.#isStopping) {
      this.#wakeDue()
      await this.#rest()
      if (!this.#isStopping && this.#watch.restMs() === 0) await this.#watch.lookAround()
    }
  }

  #wakeDue(): void {
    while (this.#sending < SENDS_AT_ONCE) {
      // Tenants by turns: a small one must not be told after all that a large one has.
      const job = this.#agenda.next(this.#options.clock.now(), { running: () => 0, lastTurn: (tenant) => this.#turns.get(tenant) ?? 0 })
      if (job === null) return
      this.#sending++
      this.#turns.set(job.tenant, ++this.#turn)
      void this.#wake(job).finally(() => {
        this.#sending--
        this.#rouse()
      })
    }
  }

  async #rest(): Promise<void> {
    const { clock } = this.#options
    const now = clock.now()
    const nextMs = this.#sending < SENDS_AT_ONCE ? this.#agenda.nextAt(now) - now : Infinity
    this.#nap = new AbortController()
    await clock.sleep(Math.max(1, Math.ceil(Math.min(this.#watch.restMs(), nextMs))), this.#nap.signal).catch(() => {})
    this.#nap = null
  }

  #rouse(): void {
    this.#nap?.abort(new Error('there is news'))
  }

  #see(job: Job): void {
    const { clock, isDead } = this.#options
    const known = this.#known.get(job)
    const seen = { at: job.due?.kind === 'at' ? job.due.at : Infinity, mark: markOf(job.standing!.checkpoint) }
    if (seen.mark === known?.mark) return
    this.#known.set(job, seen)
    job.stumbles = 0
    const now = clock.now()
    const heldUntil = job.heldUntil(isDead)
    const isSooner = seen.at <= now || seen.at < (known?.at ?? Infinity)
    this.#agenda.put(job, isSooner && heldUntil <= now ? now : Math.max(seen.at, heldUntil, now) + GRACE_MS)
  }

  /** Again and again while it stays overdue: whoever was told last may have run an older worker file that does not know it. */
  async #wake(job: Job): Promise<void> {
    const { clock, ports, pollMs, wake } = this.#options
    const known = this.#known.get(job)!
    let againMs: number
    try {
      await wake(job, known.at)
      againMs = Math.max(0, known.at - clock.now()) + backoffMs(GRACE_MS, job.stumbles++)
    } catch (thrown) {
      const { code, message } = classify(thrown)
      // It hears of a worker only after that is served.
      const level = code === 'RESTATE_REFUSED' && job.stumbles < 2 ? 'debug' : 'warn'
      againMs = backoffMs(pollMs, job.stumbles++)
      ports.log[level]('Restate could not be told', { ...job.name, code, waitMs: againMs, reason: message })
    }
    if (this.#known.get(job) === known) this.#agenda.put(job, clock.now() + againMs)
  }
}

interface Known {
  /** Infinity for never. */
  readonly at: number
  readonly mark: string
}

/** So much later than its time it is overdue. */
const GRACE_MS = 10_000
const SENDS_AT_ONCE = 16
const LOOKS_MAX = 250
