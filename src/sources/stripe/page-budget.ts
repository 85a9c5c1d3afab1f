import { isSyncError, type Clock, type SyncContext } from '../../contract/index.ts'

/** One page may begin further requests for its objects for this long. Well below any deadline of a page. */
const PAGE_MS_MAX = 5_000

/**
 * Bounds a page that needs requests of its own for its objects. It returns the objects it has read so far, and the next
 * page goes on with the rest: every page makes progress, however many requests the objects need.
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

  /** Reads the items in order and returns how many. At least one is read, or its failure is thrown. */
  async processWithinBudget<Item>(items: Iterable<Item>, context: SyncContext, read: (item: Item) => Promise<void>): Promise<number> {
    let taken = 0
    for (const item of items) {
      if (taken > 0 && this.#isSpent()) break
      try {
        await read(item)
      } catch (error) {
        // A failed request must not cost the ones before it. A wait that the source asked for must be kept.
        if (taken === 0 || context.signal.aborted || (isSyncError(error) && error.retryAfterMs !== undefined)) throw error
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
