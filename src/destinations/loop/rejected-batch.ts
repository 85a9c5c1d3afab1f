import type { DestinationChange, SyncError, TokenStep } from '../../contract/index.ts'
import type { BatchLimits } from './read-batches.ts'

/** A batch that the destination did not apply. */
export interface RejectedBatch {
  readonly firstSequence: number
  readonly lastSequence: number
  readonly changes: number
  /** The only key of the batch; null if it has several or none. */
  readonly key: string | null
}

export function describeBatch(changes: readonly DestinationChange[], { previous, next }: TokenStep): RejectedBatch {
  const sequences = changes.map(({ sequence }) => sequence)
  return {
    firstSequence: sequences.reduce((a, b) => Math.min(a, b), sequences[0] ?? previous?.sequence ?? next.sequence),
    lastSequence: sequences.reduce((a, b) => Math.max(a, b), sequences[0] ?? next.sequence),
    changes: changes.length,
    key: changes.length === 1 ? (changes[0]?.key ?? null) : null,
  }
}

/**
 * Finds the record that a destination rejects. A rejected batch is read again with half as many changes, until one is
 * left: everything before that record is then applied, and the error can name its key. Each rejection halves the size, so
 * a batch of 50,000 is rejected at most 17 times.
 */
export class RejectedBatchSearch {
  readonly #limits: BatchLimits
  #rowsMax: number
  /** Changes of the rejected batch that are not applied yet. */
  #remaining = 0

  constructor(limits: BatchLimits) {
    this.#limits = limits
    this.#rowsMax = limits.rowsMax
  }

  get limits(): BatchLimits {
    return { ...this.#limits, rowsMax: this.#rowsMax }
  }

  /** Whether the batch is tried again in parts. Other errors than a rejection do not depend on the records. */
  narrow({ code }: SyncError, batch: RejectedBatch | null): boolean {
    if (code !== 'DESTINATION_FAILED' || batch === null || batch.changes < 2) return false
    if (this.#remaining === 0) this.#remaining = batch.changes
    this.#rowsMax = Math.ceil(batch.changes / 2)
    return true
  }

  /** Behind the rejected batch, the size grows again. */
  onApplied(changes: number): void {
    if (this.#rowsMax === this.#limits.rowsMax) return
    this.#remaining = Math.max(0, this.#remaining - changes)
    if (this.#remaining === 0) this.#rowsMax = Math.min(this.#limits.rowsMax, this.#rowsMax * 2)
  }
}
