import type { Clock } from '../../contract/index.ts'
import { DueQueue } from '../due-queue.ts'
import type { QueueItem } from '../queue-order.ts'

/**
 * The concurrency slots of one process. Restate dispatches everything that is due; cycles beyond the limit wait here
 * in the same fair order as in the built-in runner.
 */
export class ConcurrencySlots {
  readonly #clock: Clock
  readonly #queue = new DueQueue<QueueItem>()
  readonly #grants = new Map<QueueItem, () => void>()
  readonly #running = new Map<string, number>()
  readonly #lastServed = new Map<string, number>()
  #free: number
  #turn = 0

  constructor(count: number, clock: Clock) {
    this.#free = count
    this.#clock = clock
  }

  /**
   * Resolves with false if no slot became free in time or before the abort. A caller that got a slot must release it.
   */
  async acquire(item: QueueItem, ms: number, signal: AbortSignal): Promise<boolean> {
    const granted = new AbortController()
    let isGranted = false
    this.#grants.set(item, () => {
      isGranted = true
      granted.abort(new Error('a slot is free'))
    })
    this.#queue.schedule(item, 0)
    this.#grantFree()
    await this.#clock.sleep(ms, AbortSignal.any([granted.signal, signal])).catch(() => {})
    this.#grants.delete(item)
    this.#queue.remove(item)
    return isGranted
  }

  release({ tenant }: QueueItem): void {
    this.#free++
    this.#running.set(tenant, (this.#running.get(tenant) ?? 1) - 1)
    this.#grantFree()
  }

  #grantFree(): void {
    while (this.#free > 0) {
      const next = this.#queue.takeNext(0, {
        runningCycles: (tenant) => this.#running.get(tenant) ?? 0,
        lastServed: (tenant) => this.#lastServed.get(tenant) ?? 0,
      })
      if (next === null) return
      this.#free--
      this.#running.set(next.tenant, (this.#running.get(next.tenant) ?? 0) + 1)
      this.#lastServed.set(next.tenant, ++this.#turn)
      this.#grants.get(next)?.()
    }
  }
}
