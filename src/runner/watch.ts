import type { Ports } from '../contract/index.ts'
import { classify } from '../engine/classify.ts'
import { markOf, type DueOptions } from './due.ts'
import type { Job } from './job.ts'
import { look } from './look.ts'

export interface WatchOptions {
  readonly ports: Ports
  readonly pollMs: number
  readonly looksMax: number
  readonly pauseMs: number
  readonly isBusy: (job: Job) => boolean
  readonly onTrouble: (trouble: Trouble) => void
}

export interface Trouble {
  readonly code: string
  readonly message: string
  readonly waitMs: number
}

/** Keeps what is known of the jobs true: asks the store in rounds, a bounded number each time, and judges what moved. */
export class Watch {
  readonly #jobs: readonly Job[]
  readonly #options: WatchOptions
  readonly #since: number
  #cursor = 0
  #seenAll = false
  #failures = 0
  #lookedAt = -Infinity
  #everyMs: number

  constructor(jobs: readonly Job[], options: WatchOptions) {
    this.#jobs = jobs
    this.#options = options
    this.#since = options.ports.clock.now()
    this.#everyMs = options.pollMs
  }

  /** How long the next look may wait; 0 when it is time. The first round goes on without a rest. */
  restMs(): number {
    if (!this.#seenAll && this.#failures === 0) return 0
    const passed = this.#options.ports.clock.now() - this.#lookedAt
    // Negative when the clock was set back.
    return passed < 0 ? 0 : Math.max(0, this.#everyMs - passed)
  }

  /** The next few in the round. A store that cannot be asked is left alone for longer and longer. */
  async lookAround(): Promise<void> {
    const { ports, pollMs, looksMax, isBusy, onTrouble } = this.#options
    const now = ports.clock.now()
    if (now < this.#lookedAt) this.#judgeAnew()
    this.#lookedAt = now
    const end = this.#cursor + looksMax
    const batch = this.#jobs.slice(this.#cursor, end).filter((job) => !isBusy(job))
    try {
      for (let start = 0; start < batch.length; start += LOOKS_AT_ONCE) {
        await Promise.all(batch.slice(start, start + LOOKS_AT_ONCE).map((job) => this.lookAt(job)))
      }
      this.#failures = 0
      this.#cursor = end < this.#jobs.length ? end : 0
      if (this.#cursor === 0) this.#seenAll = true
      // Different for everybody, or processes that were started together would reach for the same sync together for ever.
      this.#everyMs = Math.round(pollMs * (0.9 + 0.2 * ports.random.next()))
    } catch (thrown) {
      const { code, message } = classify(thrown)
      this.#everyMs = backoffMs(pollMs, this.#failures++)
      onTrouble({ code, message, waitMs: this.#everyMs })
    }
  }

  async lookAt(job: Job): Promise<void> {
    const standing = await look(job.store, job.sync, job.standing)
    const moved = job.standing === null || markOf(job.standing.checkpoint) !== markOf(standing.checkpoint)
    job.standing = standing
    if (moved) job.judge(this.#dueOptions())
  }

  /** What was reckoned by a clock that has been set back since may lie hours ahead. */
  #judgeAnew(): void {
    for (const job of this.#jobs) {
      job.notBefore = -Infinity
      job.judge(this.#dueOptions())
    }
  }

  #dueOptions(): DueOptions {
    const now = this.#options.ports.clock.now()
    return { now, since: Math.min(this.#since, now), pauseMs: this.#options.pauseMs }
  }
}

/** Twice as long with every failure in a row. */
export function backoffMs(firstMs: number, failures: number): number {
  return Math.min(firstMs * 2 ** failures, Math.max(firstMs, BACKOFF_MAX_MS))
}

const BACKOFF_MAX_MS = 30_000
/** Few, because running cycles want their connections too. */
const LOOKS_AT_ONCE = 4
