import { Heap } from './heap.ts'
import { placeOf, type Shares, type Waiting } from './order.ts'

/**
 * Who waits until when, and who goes next of those whose time has come. Made for a hundred thousand: to arrange one or to
 * take the next costs a few comparisons, and those who wait cost nothing.
 */
export class Agenda<T extends Waiting> {
  readonly #entries = new Map<T, Entry<T>>()
  readonly #later = new Heap<Entry<T>>((a, b) => a.at < b.at)
  readonly #ready = new Map<string, Heap<Entry<T>>>()
  #waiting = 0

  /** From `at` on; Infinity for never. Whatever was said of it before is forgotten. */
  put(item: T, at: number): void {
    this.remove(item)
    if (at === Infinity) return
    const entry = { item, at, place: placeOf(item) }
    this.#entries.set(item, entry)
    this.#later.add(entry)
  }

  remove(item: T): void {
    const entry = this.#entries.get(item)
    if (entry === undefined) return
    this.#entries.delete(item)
    if (this.#later.remove(entry)) return
    const line = this.#ready.get(item.tenant)!
    line.remove(entry)
    if (line.size === 0) this.#ready.delete(item.tenant)
    this.#waiting--
  }

  /** When the next one's time comes; in the past when it has come. */
  nextAt(now: number): number {
    this.#call(now)
    return this.#waiting > 0 ? now : this.#later.first?.at ?? Infinity
  }

  /** How many could go, were there a place. */
  waiting(now: number): number {
    this.#call(now)
    return this.#waiting
  }

  /**
   * Takes the next one out. Tenants share the places evenly: the one with the fewest running cycles, then the one served
   * longest ago, then the one whose first has waited longest.
   */
  next(now: number, shares: Shares): T | null {
    this.#call(now)
    let best: Entry<T> | null = null
    for (const line of this.#ready.values()) {
      const first = line.first!
      if (best === null || isTenantBefore(first, best, shares)) best = first
    }
    if (best === null) return null
    this.remove(best.item)
    return best.item
  }

  #call(now: number): void {
    for (let entry = this.#later.first; entry !== undefined && entry.at <= now; entry = this.#later.first) {
      this.#later.remove(entry)
      const { tenant } = entry.item
      let line = this.#ready.get(tenant)
      if (line === undefined) this.#ready.set(tenant, (line = new Heap(isBefore)))
      line.add(entry)
      this.#waiting++
    }
  }
}

interface Entry<T> {
  readonly item: T
  readonly at: number
  readonly place: number
}

function isBefore<T extends Waiting>(a: Entry<T>, b: Entry<T>): boolean {
  return a.place < b.place || (a.place === b.place && a.item.lot < b.item.lot)
}

function isTenantBefore<T extends Waiting>(a: Entry<T>, b: Entry<T>, shares: Shares): boolean {
  const [one, other] = [a.item.tenant, b.item.tenant]
  const running = shares.running(one) - shares.running(other)
  if (running !== 0) return running < 0
  const turns = shares.lastTurn(one) - shares.lastTurn(other)
  return turns === 0 ? isBefore(a, b) : turns < 0
}
