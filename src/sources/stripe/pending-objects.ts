/** Objects whose current version must be read, by type. The state holds them, so their number is limited. */
export class PendingObjects {
  readonly #ids: Map<string, Set<string>>
  #size: number

  constructor(pending: Readonly<Record<string, readonly string[]>> = {}) {
    this.#ids = new Map(Object.entries(pending).map(([type, ids]) => [type, new Set(ids)]))
    this.#size = [...this.#ids.values()].reduce((sum, ids) => sum + ids.size, 0)
  }

  get size(): number {
    return this.#size
  }

  get isFull(): boolean {
    return this.#size >= PENDING_OBJECTS_MAX
  }

  has(type: string, id: string): boolean {
    return this.#ids.get(type)?.has(id) === true
  }

  add(type: string, id: string): void {
    const ids = this.#ids.get(type) ?? new Set()
    this.#ids.set(type, ids)
    if (!ids.has(id)) this.#size++
    ids.add(id)
  }

  delete(type: string, id: string): void {
    if (this.#ids.get(type)?.delete(id) === true) this.#size--
  }

  list(): Array<{ type: string; id: string }> {
    return [...this.#ids].flatMap(([type, ids]) => [...ids].map((id) => ({ type, id })))
  }

  toState(): Record<string, string[]> {
    return Object.fromEntries([...this.#ids].filter(([, ids]) => ids.size > 0).map(([type, ids]) => [type, [...ids]]))
  }
}

const PENDING_OBJECTS_MAX = 1_000
