import type { Clock } from '../contract/index.ts'

/**
 * The store's clock, estimated from its responses. All processes that share a store use it, so a machine whose clock
 * is an hour off neither runs a slot an hour early nor waits an hour for an expired lease.
 */
export class StoreClock implements Clock {
  readonly #local: Clock
  #offsetMs = 0

  constructor(local: Clock) {
    this.#local = local
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
  async synchronize<T extends { readonly now: number }>(query: (at: number) => Promise<T>): Promise<T> {
    const sentAt = this.#local.now()
    const response = await query(sentAt + this.#offsetMs)
    const least = response.now - this.#local.now()
    const most = response.now + 1 - sentAt
    this.#offsetMs = Math.max(least, Math.min(most, this.#offsetMs))
    return response
  }
}
