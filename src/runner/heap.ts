/** Binary heap with an index: add, and remove any item, in O(log n). */
export class Heap<T> {
  readonly #isBefore: (a: T, b: T) => boolean
  readonly #items: T[] = []
  readonly #indexes = new Map<T, number>()

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  add(item: T): void {
    this.#setAt(item, this.#items.length)
    this.#siftUp(item)
  }

  remove(item: T): boolean {
    const place = this.#indexes.get(item)
    if (place === undefined) return false
    this.#indexes.delete(item)
    const last = this.#items.pop()!
    if (last === item) return true
    this.#setAt(last, place)
    this.#siftUp(last)
    this.#siftDown(last)
    return true
  }

  #siftUp(item: T): void {
    for (let place = this.#indexes.get(item)!; place > 0; ) {
      const above = (place - 1) >> 1
      if (!this.#isBefore(item, this.#items[above]!)) return
      this.#setAt(this.#items[above]!, place)
      this.#setAt(item, (place = above))
    }
  }

  #siftDown(item: T): void {
    for (let place = this.#indexes.get(item)!; ; ) {
      const [left, right] = [2 * place + 1, 2 * place + 2]
      if (left >= this.#items.length) return
      const below = right < this.#items.length && this.#isBefore(this.#items[right]!, this.#items[left]!) ? right : left
      if (!this.#isBefore(this.#items[below]!, item)) return
      this.#setAt(this.#items[below]!, place)
      this.#setAt(item, (place = below))
    }
  }

  #setAt(item: T, place: number): void {
    this.#items[place] = item
    this.#indexes.set(item, place)
  }
}
