import { Heap } from './heap.ts'
import { computeRank, type TenantLoad, type QueueItem } from './queue-order.ts'

/**
 * Priority queue of scheduled items. Scheduling and taking cost O(log n), and waiting items cost nothing, so it holds
 * a hundred thousand syncs.
 */
export class DueQueue<T extends QueueItem> {
  readonly #entries = new Map<T, QueueEntry<T>>()
  readonly #scheduled = new Heap<QueueEntry<T>>((a, b) => a.at < b.at)
  readonly #ready = new Map<string, Heap<QueueEntry<T>>>()
  #readyTotal = 0

  /** Replaces an earlier schedule of the item. Infinity means never. */
  schedule(item: T, at: number): void {
    this.remove(item)
    if (at === Infinity) return
    const entry = { item, at, rank: computeRank(item) }
    this.#entries.set(item, entry)
    this.#scheduled.add(entry)
  }

  remove(item: T): void {
    const entry = this.#entries.get(item)
    if (entry === undefined) return
    this.#entries.delete(item)
    if (this.#scheduled.remove(entry)) return
    const ready = this.#ready.get(item.tenant)
    ready?.remove(entry)
    if (ready?.size === 0) this.#ready.delete(item.tenant)
    this.#readyTotal--
  }

  /** Time at which the next item becomes ready; not later than `now` if one is ready. */
  nextAt(now: number): number {
    this.#promoteDue(now)
    return this.#readyTotal > 0 ? now : (this.#scheduled.first?.at ?? Infinity)
  }

  /** Number of items that could start if there were free slots. */
  readyCount(now: number): number {
    this.#promoteDue(now)
    return this.#readyTotal
  }

  /**
   * Removes and returns the next item. Tenants share the slots evenly: fewest running cycles first, then served
   * longest ago, then longest waiting.
   */
  takeNext(now: number, load: TenantLoad): T | null {
    this.#promoteDue(now)
    let best: QueueEntry<T> | null = null
    for (const { first } of this.#ready.values()) {
      if (first !== undefined && (best === null || isTenantBefore(first, best, load))) best = first
    }
    if (best === null) return null
    this.remove(best.item)
    return best.item
  }

  #promoteDue(now: number): void {
    for (let entry = this.#scheduled.first; entry !== undefined && entry.at <= now; entry = this.#scheduled.first) {
      this.#scheduled.remove(entry)
      const { tenant } = entry.item
      let ready = this.#ready.get(tenant)
      if (ready === undefined) this.#ready.set(tenant, (ready = new Heap(isBefore)))
      ready.add(entry)
      this.#readyTotal++
    }
  }
}

interface QueueEntry<T> {
  readonly item: T
  readonly at: number
  readonly rank: number
}

function isBefore<T extends QueueItem>(a: QueueEntry<T>, b: QueueEntry<T>): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.item.tieBreaker < b.item.tieBreaker)
}

function isTenantBefore<T extends QueueItem>(a: QueueEntry<T>, b: QueueEntry<T>, load: TenantLoad): boolean {
  const [one, other] = [a.item.tenant, b.item.tenant]
  const running = load.runningCycles(one) - load.runningCycles(other)
  if (running !== 0) return running < 0
  const turns = load.lastServed(one) - load.lastServed(other)
  return turns === 0 ? isBefore(a, b) : turns < 0
}
