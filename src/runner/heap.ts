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
    const index = this.#indexes.get(item)
    if (index === undefined) return false
    this.#indexes.delete(item)
    const last = this.#items.pop()
    if (last === undefined || last === item) return true
    this.#setAt(last, index)
    this.#siftUp(last)
    this.#siftDown(last)
    return true
  }

  #siftUp(item: T): void {
    for (let index = this.#indexes.get(item) ?? 0; index > 0;) {
      const above = (index - 1) >> 1
      const parent = this.#items[above]
      if (parent === undefined || !this.#isBefore(item, parent)) return
      this.#setAt(parent, index)
      this.#setAt(item, (index = above))
    }
  }

  #siftDown(item: T): void {
    for (let index = this.#indexes.get(item) ?? 0; ;) {
      const [left, right] = [this.#items[2 * index + 1], this.#items[2 * index + 2]]
      if (left === undefined) return
      const isRight = right !== undefined && this.#isBefore(right, left)
      const child = isRight ? right : left
      if (!this.#isBefore(child, item)) return
      const below = 2 * index + (isRight ? 2 : 1)
      this.#setAt(child, index)
      this.#setAt(item, (index = below))
    }
  }

  #setAt(item: T, index: number): void {
    this.#items[index] = item
    this.#indexes.set(item, index)
  }
}
