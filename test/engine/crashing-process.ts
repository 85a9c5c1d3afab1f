import type { Store } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'

/**
 * A crash is a promise that never settles: no `catch` and no `finally` runs, as in a power failure. A process is every
 * call it makes on the source and the store, each with one crash point before it takes effect and one after.
 */
export class Process {
  places = 0
  readonly #dies: number
  #died!: () => void
  readonly death = new Promise<'crashed'>((resolve) => (this.#died = () => resolve('crashed')))

  constructor(dies = Number.POSITIVE_INFINITY) {
    this.#dies = dies
  }

  store(store: Store): Store {
    const calls = Object.entries(store).filter(([, member]) => typeof member === 'function')
    return Object.fromEntries([
      ['tenant', store.tenant],
      ...calls.map(([name, call]) => [name, (...args: unknown[]) => this.#at(() => call(...args))]),
    ]) as unknown as Store
  }

  plan(plan: SyncPlan): SyncPlan {
    return { ...plan, execute: (state, context) => this.#at(() => plan.execute(state, context)) }
  }

  async #at<T>(call: () => Promise<T>): Promise<T> {
    await this.#place()
    const answer = await call()
    await this.#place()
    return answer
  }

  #place(): Promise<void> {
    if (this.places++ < this.#dies) return Promise.resolve()
    this.#died()
    return new Promise(() => {})
  }
}
