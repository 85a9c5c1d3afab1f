import type { Clock } from '../kit/ports.ts'

/** The call counter of a key. Every call adds to it, also a refused one, and it decays with time. */
export class CallCounter {
  readonly #clock: Clock
  readonly #max: number
  readonly #decayPerMs: number
  #value = 0
  #at: number

  constructor(clock: Clock, max: number, decayPerSecond: number) {
    this.#clock = clock
    this.#max = max
    this.#decayPerMs = decayPerSecond / 1_000
    this.#at = clock.now()
  }

  /** False when the call is refused. */
  count(cost: number): boolean {
    const now = this.#clock.now()
    this.#value = Math.max(0, this.#value - Math.max(0, now - this.#at) * this.#decayPerMs) + cost
    this.#at = now
    return this.#value <= this.#max
  }
}
