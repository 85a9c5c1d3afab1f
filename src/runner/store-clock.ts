import type { Clock } from '../contract/index.ts'

/**
 * The store's clock, estimated from its responses. All processes that share a store use it, so a machine whose clock
 * is an hour off neither runs a slot an hour early nor waits an hour for an expired lease.
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

  /**
   * The response carries the store's time at some point during the call. The offset changes only as far as that
   * proves, so that it does not oscillate.
   */
  async synchronize<T extends { readonly now: number }>(question: (at: number) => Promise<T>): Promise<T> {
    const asked = this.#local.now()
    const answer = await question(asked + this.#offsetMs)
    const least = answer.now - this.#local.now()
    const most = answer.now + 1 - asked
    this.#offsetMs = Math.max(least, Math.min(most, this.#offsetMs))
    return answer
  }
}
