import type { Clock } from '../contract/index.ts'

/**
 * The clock of the store, as it was told with its answers: the one clock that all who share a store go by, whatever their
 * own say. A machine whose clock is an hour off is neither an hour early at a slot nor an hour late at an ended lease.
 */
export class StoreClock implements Clock {
  readonly #own: Clock
  #aheadMs = 0

  constructor(own: Clock) {
    this.#own = own
  }

  now(): number {
    return this.#own.now() + this.#aheadMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#own.sleep(ms, signal)
  }

  /** The answer tells the store's time at some moment while it was waited for. Corrected by no more than that proves, so that it does not waver. */
  async ask<T extends { readonly now: number }>(question: (at: number) => Promise<T>): Promise<T> {
    const asked = this.#own.now()
    const answer = await question(asked + this.#aheadMs)
    const least = answer.now - this.#own.now()
    const most = answer.now + 1 - asked
    this.#aheadMs = Math.max(least, Math.min(most, this.#aheadMs))
    return answer
  }
}
