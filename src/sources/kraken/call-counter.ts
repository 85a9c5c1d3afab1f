/**
 * The call counter of an API key, as Kraken documents it: every call adds its cost, the counter decays with time, and a call above
 * the maximum is rejected. Rejected calls count too, so an early retry makes the wait longer.
 */
export const TIERS = {
  starter: { max: 15, decayPerSecond: 0.33 },
  intermediate: { max: 20, decayPerSecond: 0.5 },
  pro: { max: 20, decayPerSecond: 1 },
} as const

export type KrakenTier = keyof typeof TIERS

/** The cost of a call that reads the ledger or the trade history. */
const CALL_COST = 2

export class CallCounter {
  readonly #max: number
  readonly #decayPerMs: number
  #value = 0
  #updatedAt = -Infinity

  constructor(tier: KrakenTier) {
    this.#max = TIERS[tier].max
    this.#decayPerMs = TIERS[tier].decayPerSecond / 1_000
  }

  /** The time from a rejection until the counter is empty, so that one wait is enough. */
  get drainMs(): number {
    return Math.ceil((this.#max + CALL_COST) / this.#decayPerMs)
  }

  /** Counts one call and returns how long it must wait. Concurrent calls are queued. */
  reserveCall(now: number): number {
    this.#value = this.#decay(now) + CALL_COST
    return Math.max(0, Math.ceil((this.#value - this.#max) / this.#decayPerMs))
  }

  /** Other users of the key count too: after a rejection the counter is at least full. */
  recordRefusal(now: number): void {
    this.#value = Math.max(this.#decay(now), this.#max + CALL_COST)
  }

  #decay(now: number): number {
    const passedMs = Math.max(0, now - this.#updatedAt)
    this.#updatedAt = now
    return Math.max(0, this.#value - passedMs * this.#decayPerMs)
  }
}
