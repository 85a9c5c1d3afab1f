import type { Clock } from '../contract/index.ts'
import { HttpError } from './http-error.ts'

const WINDOW_MS = 60_000

export interface Allowance {
  readonly limit: number
  readonly remaining: number
  /** Unix seconds at which the next window begins. */
  readonly resetAt: number
}

/** Fixed windows of a minute, counted in this process. */
export class RateLimit {
  readonly #clock: Clock
  #window = 0
  #counts = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts one more, also beyond the limit. */
  take(who: string, limit: number): Allowance {
    const counts = this.#current()
    const count = (counts.get(who) ?? 0) + 1
    counts.set(who, count)
    return { limit, remaining: limit - count, resetAt: ((this.#window + 1) * WINDOW_MS) / 1_000 }
  }

  /** Forgotten with their window, so that they need no sweeping. */
  #current(): Map<string, number> {
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
