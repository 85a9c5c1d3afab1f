/**
 * The ids seen last, at most so many. It saves landing again what was just landed; nothing depends on it, because landing the same
 * thing twice changes nothing (invariant 4).
 */
export class DedupWindow {
  readonly #ids: Set<string>
  readonly #size: number

  constructor(size: number, ids: Iterable<string> = []) {
    this.#size = size
    this.#ids = new Set(ids)
    this.#evictOldest()
  }

  /** Only with what the cursor remembers; a wider window lives no longer than the process. */
  static fromLastId(size: number, lastTransactionId: string | undefined): DedupWindow {
    return new DedupWindow(size, lastTransactionId === undefined || lastTransactionId === '' ? [] : [lastTransactionId])
  }

  copy(): DedupWindow {
    return new DedupWindow(this.#size, this.#ids)
  }

  get size(): number {
    return this.#ids.size
  }

  /** The items that are new, once each, in their order; from then on they are not. */
  takeNew<Item>(items: readonly Item[], idOf: (item: Item) => string): Item[] {
    const found = items.filter((item) => {
      const id = idOf(item)
      if (this.#ids.has(id)) return false
      this.#ids.add(id)
      return true
    })
    this.#evictOldest()
    return found
  }

  #evictOldest(): void {
    for (const oldest of this.#ids) {
      if (this.#ids.size <= this.#size) return
      this.#ids.delete(oldest)
    }
  }
}
