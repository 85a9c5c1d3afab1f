import type { DestinationChange, JsonObject, RowValues } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'

/** A row of a load that was read as values. Its record and text are made only if a destination reads them. */
export class RowChange implements DestinationChange {
  readonly #page: RowValues
  readonly #index: number

  constructor(page: RowValues, index: number) {
    this.#page = page
    this.#index = index
  }

  get action(): 'created' {
    return 'created'
  }

  get key(): string {
    return this.#page.key(this.#index)
  }

  get sequence(): number {
    return this.#page.sequence(this.#index)
  }

  get committedAt(): number {
    return this.#page.committedAt(this.#index)
  }

  get values(): ReturnType<RowValues['values']> {
    return this.#page.values(this.#index)
  }

  get record(): JsonObject {
    const { values } = this
    // `fromEntries` defines members, so that `__proto__` is an ordinary field.
    return Object.fromEntries(
      this.#page.members.flatMap((member, at) => {
        const value = values[at]
        return value === undefined ? [] : [[member, value]]
      }),
    )
  }

  get text(): string {
    return stringifyJson(this.record)
  }
}
