import { SyncError } from '../contract/index.ts'

/** The requests that a verification may send. */
export class RequestBudget {
  readonly #max: number
  #used = 0

  constructor(max: number | null) {
    this.#max = max ?? Infinity
  }

  get used(): number {
    return this.#used
  }

  get left(): number {
    return this.#max - this.#used
  }

  /** Legal before the requests are sent. Throws if they exceed the budget. */
  spend(count: number): void {
    if (this.left < count) throw new BudgetError()
    this.#used += count
  }
}

/** Ends the comparison: the result is incomplete. */
export class BudgetError extends SyncError {
  constructor() {
    super('CANCELLED', 'The request budget of the verification is used up.')
  }
}
