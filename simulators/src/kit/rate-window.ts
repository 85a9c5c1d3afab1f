import type { Clock } from './ports.ts'

/** The number of requests that are allowed in a time span. */
export interface RateLimit {
  readonly requests: number
  readonly perMs: number
}

/** A fixed window that starts with its first request, as most vendors count. */
export class RateWindow {
  readonly #clock: Clock
  readonly #limit: RateLimit | undefined
  #startedAtMs = -Infinity
  #used = 0

  constructor(clock: Clock, limit: RateLimit | undefined) {
    this.#clock = clock
    this.#limit = limit
  }

  /** Counts one request; false when the budget is spent. */
  take(cost = 1): boolean {
    if (this.#limit === undefined) return true
    this.#turn()
    if (this.#used + cost > this.#limit.requests) return false
    this.#used += cost
    return true
  }

  get used(): number {
    this.#turn()
    return this.#used
  }

  get remaining(): number {
    this.#turn()
    return this.#limit === undefined ? Infinity : this.#limit.requests - this.#used
  }

  get resetAtMs(): number {
    this.#turn()
    return (this.#startedAtMs === -Infinity ? this.#clock.now() : this.#startedAtMs) + (this.#limit?.perMs ?? 0)
  }

  #turn(): void {
    const now = this.#clock.now()
    if (this.#limit === undefined || now - this.#startedAtMs < this.#limit.perMs) return
    this.#startedAtMs = now
    this.#used = 0
  }
}
