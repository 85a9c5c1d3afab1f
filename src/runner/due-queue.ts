import { Heap } from './heap.ts'
import { computeRank, type TenantLoad, type QueueItem } from './queue-order.ts'

/**
 * Who waits until when, and who goes next of those whose time has come. Made for a hundred thousand: to arrange one or to
 * take the next costs a few comparisons, and those who wait cost nothing.
 */
export class DueQueue<T extends QueueItem> {
  readonly #entries = new Map<T, QueueEntry<T>>()
  readonly #scheduled = new Heap<QueueEntry<T>>((a, b) => a.at < b.at)
  readonly #ready = new Map<string, Heap<QueueEntry<T>>>()
  #readyTotal = 0

  /** From `at` on; Infinity for never. Whatever was said of it before is forgotten. */
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
    const line = this.#ready.get(item.tenant)!
    line.remove(entry)
    if (line.size === 0) this.#ready.delete(item.tenant)
    this.#readyTotal--
  }

  /** When the next one's time comes; in the past when it has come. */
  nextAt(now: number): number {
    this.#promoteDue(now)
    return this.#readyTotal > 0 ? now : this.#scheduled.first?.at ?? Infinity
  }

  /** How many could go, were there a place. */
  readyCount(now: number): number {
    this.#promoteDue(now)
    return this.#readyTotal
  }

  /**
   * Takes the next one out. Tenants share the places evenly: the one with the fewest running cycles, then the one served
   * longest ago, then the one whose first has waited longest.
   */
  takeNext(now: number, shares: TenantLoad): T | null {
    this.#promoteDue(now)
    let best: QueueEntry<T> | null = null
    for (const line of this.#ready.values()) {
      const first = line.first!
      if (best === null || isTenantBefore(first, best, shares)) best = first
    }
    if (best === null) return null
    this.remove(best.item)
    return best.item
  }

  #promoteDue(now: number): void {
    for (let entry = this.#scheduled.first; entry !== undefined && entry.at <= now; entry = this.#scheduled.first) {
      this.#scheduled.remove(entry)
      const { tenant } = entry.item
      let line = this.#ready.get(tenant)
      if (line === undefined) this.#ready.set(tenant, (line = new Heap(isBefore)))
      line.add(entry)
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

function isTenantBefore<T extends QueueItem>(a: QueueEntry<T>, b: QueueEntry<T>, shares: TenantLoad): boolean {
  const [one, other] = [a.item.tenant, b.item.tenant]
  const running = shares.runningCycles(one) - shares.runningCycles(other)
  if (running !== 0) return running < 0
  const turns = shares.lastServed(one) - shares.lastServed(other)
  return turns === 0 ? isBefore(a, b) : turns < 0
}
