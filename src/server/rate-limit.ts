import type { Clock, Store } from '../contract/index.ts'
import { HttpError } from './http-error.ts'

const WINDOW_MS = 60_000
const SHARE_MS = 1_000

export interface Allowance {
  readonly limit: number
  readonly remaining: number
  /** Unix seconds at which the next window begins. */
  readonly resetAt: number
}

interface Count {
  /** Where it is shared; null for what this process counts alone, such as what is asked of a replica. */
  readonly store: Store | null
  own: number
  /** How many of them the store knows of. */
  told: number
  others: number
}

/**
 * Fixed windows of a minute. What was counted here is told to the store, and what the others counted comes back with it: all
 * processes on one store share a limit, give or take what they serve within a second. A request waits for none of this.
 */
export class RateLimit {
  readonly #clock: Clock
  readonly #stopping: AbortSignal
  #window = 0
  #counts = new Map<string, Count>()
  #isSharing = false

  constructor(clock: Clock, stopping: AbortSignal) {
    this.#clock = clock
    this.#stopping = stopping
  }

  /** Counts one more, also beyond the limit. */
  take(who: string, limit: number, store: Store | null = null): Allowance {
    const counts = this.#current()
    let count = counts.get(who)
    if (count === undefined) counts.set(who, (count = { store, own: 0, told: 0, others: 0 }))
    count.own++
    if (store !== null && !this.#isSharing) void this.#share()
    return { limit, remaining: limit - count.own - count.others, resetAt: ((this.#window + 1) * WINDOW_MS) / 1_000 }
  }

  /** For as long as somebody asks. */
  async #share(): Promise<void> {
    this.#isSharing = true
    for (let news = this.#news(); news.size > 0 && !this.#stopping.aborted; news = this.#news()) {
      // A store that cannot be told is told the next time: nobody can be let in without it anyway.
      await Promise.all([...news].map(([store, counts]) => this.#tell(store, counts).catch(() => {})))
      await this.#clock.sleep(SHARE_MS, this.#stopping).catch(() => {})
    }
    this.#isSharing = false
  }

  #news(): Map<Store, Array<[string, Count]>> {
    const news = new Map<Store, Array<[string, Count]>>()
    for (const [who, count] of this.#current()) {
      if (count.store === null || count.own === count.told) continue
      const found = news.get(count.store)
      if (found === undefined) news.set(count.store, [[who, count]])
      else found.push([who, count])
    }
    return news
  }

  async #tell(store: Store, counts: ReadonlyArray<readonly [string, Count]>): Promise<void> {
    const told = counts.map(([, { own }]) => own)
    const totals = await store.countRequests(this.#window, counts.map(([who, count]) => [who, count.own - count.told]))
    for (const [at, [, count]] of counts.entries()) {
      count.told = told[at]!
      count.others = totals[at]! - count.told
    }
  }

  /** Forgotten with their window, so that they need no sweeping. */
  #current(): Map<string, Count> {
    const window = Math.floor(this.#clock.now() / WINDOW_MS)
    if (window !== this.#window) {
      this.#window = window
      this.#counts = new Map()
    }
    return this.#counts
  }
}

export function rateHeaders({ limit, remaining, resetAt }: Allowance): Record<string, string> {
  return { 'x-ratelimit-limit': String(limit), 'x-ratelimit-remaining': String(Math.max(0, remaining)), 'x-ratelimit-reset': String(resetAt) }
}

export function tooMany(allowance: Allowance, now: number): HttpError {
  const seconds = Math.max(1, Math.ceil(allowance.resetAt - now / 1_000))
  return new HttpError('RATE_LIMIT_EXCEEDED', `More than ${allowance.limit} requests in a minute. Ask again in ${seconds} s.`, { headers: { 'retry-after': String(seconds) } })
}
