/**
 * A bounded set of the most recent ids. It avoids committing the same items again; correctness does not depend on it,
 * because commits are idempotent (invariant 4).
 */
export class DedupWindow {
  readonly #ids: Set<string>
  readonly #size: number

  constructor(size: number, ids: Iterable<string> = []) {
    this.#size = size
    this.#ids = new Set(ids)
    this.#evictOldest()
  }

  /** Starts from the id in the cursor; the larger window exists only within the process. */
  static fromLastId(size: number, lastTransactionId: string | undefined): DedupWindow {
    return new DedupWindow(size, lastTransactionId === undefined || lastTransactionId === '' ? [] : [lastTransactionId])
  }

  copy(): DedupWindow {
    return new DedupWindow(this.#size, this.#ids)
  }

  get size(): number {
    return this.#ids.size
  }

  /** Returns unseen items, once each and in order, and records them. */
  takeNew<Item>(items: readonly Item[], idOf: (item: Item) => string): Item[] {
    const unseen = items.filter((item) => {
      const id = idOf(item)
      if (this.#ids.has(id)) return false
      this.#ids.add(id)
      return true
    })
    this.#evictOldest()
    return unseen
  }

  #evictOldest(): void {
    for (const oldest of this.#ids) {
      if (this.#ids.size <= this.#size) return
      this.#ids.delete(oldest)
    }
  }
}
