import type { Random } from './ports.ts'
import type { Fields } from './simulator.ts'

/** The part of a simulator that churn needs. */
export interface ChurnTarget {
  create(type: string, fields?: Fields): string
  update(type: string, id: string, changes: Fields): void
  remove(type: string, id: string): void
  readonly records: { current(type: string): ReadonlyArray<{ readonly id: string }> }
}

/** The number and kinds of writes of `churn`. */
export interface ChurnOptions {
  readonly type: string
  readonly writes: number
  readonly random: Random
  /** The fields of the nth write. */
  readonly fields: (n: number) => Fields
  /** Shares of updates and deletes among the writes; the rest creates. */
  readonly updates?: number
  readonly deletes?: number
}

/** Writes as a busy system would: creates, updates and deletes. */
export function churn(simulator: ChurnTarget, options: ChurnOptions): void {
  const { type, random, updates = 0.5, deletes = 0.1 } = options
  for (let n = 0; n < options.writes; n++) {
    const draw = random.next()
    const pick = random.next()
    const existing = simulator.records.current(type)
    const chosen = existing[Math.floor(pick * existing.length)]
    if (chosen === undefined || draw >= updates + deletes) simulator.create(type, options.fields(n))
    else if (draw < updates) simulator.update(type, chosen.id, options.fields(n))
    else simulator.remove(type, chosen.id)
  }
}
