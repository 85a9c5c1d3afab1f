/**
 * The call counter of an API key, as Kraken documents it: every call adds its cost, time takes away, and a call that finds the
 * counter above its maximum is refused. Refused calls are counted too, so asking again early only makes the wait longer.
 */
export const TIERS = {
  starter: { max: 15, decayPerSecond: 0.33 },
  intermediate: { max: 20, decayPerSecond: 0.5 },
  pro: { max: 20, decayPerSecond: 1 },
} as const

export type KrakenTier = keyof typeof TIERS

/** Of a call that reads the ledger or the history of trades. */
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

  /** From a refusal until the counter has run down to nothing, so that one wait is enough. */
  get drainMs(): number {
    return Math.ceil((this.#max + CALL_COST) / this.#decayPerMs)
  }

  /** Counts one call and says how long it has to wait. Calls that are taken together wait one after the other. */
  reserveCall(now: number): number {
    this.#value = this.#decay(now) + CALL_COST
    return Math.max(0, Math.ceil((this.#value - this.#max) / this.#decayPerMs))
  }

  /** Other users of the key count as well: after a refusal the counter is at least full. */
  recordRefusal(now: number): void {
    this.#value = Math.max(this.#decay(now), this.#max + CALL_COST)
  }

  #decay(now: number): number {
    const passedMs = Math.max(0, now - this.#updatedAt)
    this.#updatedAt = now
    return Math.max(0, this.#value - passedMs * this.#decayPerMs)
  }
}
