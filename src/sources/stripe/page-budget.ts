import { isSyncError, type Clock, type SyncContext } from '../../contract/index.ts'

/** A page starts no further requests after this time, which is well below the deadline of a page. */
const PAGE_MS_MAX = 5_000

/**
 * Limits the requests that a page makes for its objects. The page returns the objects read so far, and the next page continues
 * with the rest, so every page makes progress.
 */
export class PageBudget {
  readonly #clock: Clock
  readonly #endsAt: number
  #requestsLeft: number

  constructor(requestsMax: number, { clock }: SyncContext) {
    this.#clock = clock
    this.#endsAt = clock.now() + PAGE_MS_MAX
    this.#requestsLeft = requestsMax
  }

  spend(): void {
    this.#requestsLeft--
  }

  /** Reads items in order and returns their number. Reads at least one, or throws its failure. */
  async processWithinBudget<Item>(
    items: Iterable<Item>,
    context: SyncContext,
    read: (item: Item) => Promise<void>,
  ): Promise<number> {
    let taken = 0
    for (const item of items) {
      if (taken > 0 && this.#isSpent()) break
      try {
        await read(item)
      } catch (error) {
        // A failed request must not discard the items before it. A wait requested by the source must be kept.
        if (taken === 0 || context.signal.aborted || (isSyncError(error) && error.retryAfterMs !== undefined))
          throw error
        break
      }
      taken++
    }
    return taken
  }

  #isSpent(): boolean {
    return this.#requestsLeft <= 0 || this.#clock.now() >= this.#endsAt
  }
}
