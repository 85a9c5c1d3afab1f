/** The first of many, at the cost of a few comparisons, and any one taken out as cheaply. */
export class Heap<T> {
  readonly #isBefore: (a: T, b: T) => boolean
  readonly #items: T[] = []
  readonly #places = new Map<T, number>()

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
    this.#put(item, this.#items.length)
    this.#rise(item)
  }

  remove(item: T): boolean {
    const place = this.#places.get(item)
    if (place === undefined) return false
    this.#places.delete(item)
    const last = this.#items.pop()!
    if (last === item) return true
    this.#put(last, place)
    this.#rise(last)
    this.#sink(last)
    return true
  }

  #rise(item: T): void {
    for (let place = this.#places.get(item)!; place > 0; ) {
      const above = (place - 1) >> 1
      if (!this.#isBefore(item, this.#items[above]!)) return
      this.#put(this.#items[above]!, place)
      this.#put(item, (place = above))
    }
  }

  #sink(item: T): void {
    for (let place = this.#places.get(item)!; ; ) {
      const [left, right] = [2 * place + 1, 2 * place + 2]
      if (left >= this.#items.length) return
      const below = right < this.#items.length && this.#isBefore(this.#items[right]!, this.#items[left]!) ? right : left
      if (!this.#isBefore(this.#items[below]!, item)) return
      this.#put(this.#items[below]!, place)
      this.#put(item, (place = below))
    }
  }

  #put(item: T, place: number): void {
    this.#items[place] = item
    this.#places.set(item, place)
  }
}
