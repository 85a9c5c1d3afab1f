/** A bounded set of keys that drops the oldest. */
export class RecentKeys {
  readonly #max: number
  readonly #keys = new Set<string>()

  constructor(max: number) {
    this.#max = max
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  add(key: string): void {
    this.#keys.add(key)
    for (const oldest of this.#keys) {
      if (this.#keys.size <= this.#max) break
      this.#keys.delete(oldest)
    }
  }

  clear(): void {
    this.#keys.clear()
  }
}
