import type { Clock } from './ports.ts'

/** A budget that refills at a constant rate, rather than all at once. */
export class LeakyBucket {
  readonly limit: number
  readonly #clock: Clock
  readonly #perMs: number
  #left: number
  #atMs: number

  constructor(clock: Clock, limit: number, perMs: number) {
    this.limit = limit
    this.#clock = clock
    this.#perMs = perMs
    this.#left = limit
    this.#atMs = clock.now()
  }

  take(cost: number): boolean {
    this.#refill()
    if (cost > this.#left) return false
    this.#left -= cost
    return true
  }

  get remaining(): number {
    this.#refill()
    return Math.floor(this.#left)
  }

  /** When it will be full again. */
  get resetAtMs(): number {
    this.#refill()
    return Math.ceil(this.#atMs + ((this.limit - this.#left) / this.limit) * this.#perMs)
  }

  #refill(): void {
    const now = this.#clock.now()
    this.#left = Math.min(this.limit, this.#left + (Math.max(0, now - this.#atMs) / this.#perMs) * this.limit)
    this.#atMs = now
  }
}
