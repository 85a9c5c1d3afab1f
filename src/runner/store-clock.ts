import type { Clock } from '../contract/index.ts'

/**
 * The clock of the store, as it was told with its answers: the one clock that all who share a store go by, whatever their
 * own say. A machine whose clock is an hour off is neither an hour early at a slot nor an hour late at an ended lease.
 */
export class StoreClock implements Clock {
  readonly #local: Clock
  #offsetMs = 0

  constructor(own: Clock) {
    this.#local = own
  }

  now(): number {
    return this.#local.now() + this.#offsetMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#local.sleep(ms, signal)
  }

  /** The answer tells the store's time at some moment while it was waited for. Corrected by no more than that proves, so that it does not waver. */
  async synchronize<T extends { readonly now: number }>(question: (at: number) => Promise<T>): Promise<T> {
    const asked = this.#local.now()
    const answer = await question(asked + this.#offsetMs)
    const least = answer.now - this.#local.now()
    const most = answer.now + 1 - asked
    this.#offsetMs = Math.max(least, Math.min(most, this.#offsetMs))
    return answer
  }
}
