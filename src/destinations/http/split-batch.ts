import type { DestinationBatch, DestinationChange, DestinationToken, TokenStep } from '../../contract/index.ts'

/** A part of a batch, with the token that it leads to. */
export interface BatchPart {
  readonly batch: DestinationBatch
  readonly step: TokenStep
}

/**
 * Cuts the first part of a batch, of at least one change and at most `bytesMax` bytes; `rest` is null if nothing is left.
 * Every part is stored with a token of its own, so that a receiver with small requests is as exact as one with large ones.
 */
export function cutBatch(
  { batch, step }: BatchPart,
  sizeOf: (change: DestinationChange) => number,
  bytesMax: number,
): { readonly part: BatchPart; readonly rest: BatchPart | null } {
  const { changes } = batch
  let bytes = 0
  let count = 0
  for (const change of changes) {
    bytes += sizeOf(change)
    if (count > 0 && bytes > bytesMax) break
    count++
  }
  const last = changes[count - 1]
  if (count === changes.length || last === undefined) return { part: { batch, step }, rest: null }
  const between = tokenAt(last, step)
  return {
    part: {
      batch: { ...batch, isLast: false, changes: changes.slice(0, count) },
      step: { previous: step.previous, next: between },
    },
    rest: {
      batch: { ...batch, isFirst: false, changes: changes.slice(count) },
      step: { previous: between, next: step.next },
    },
  }
}

/** Rows of a load are in order of key, and all other changes in order of sequence. */
function tokenAt(last: DestinationChange, { previous, next }: TokenStep): DestinationToken {
  if (previous !== null && previous.after !== null) return { ...next, after: last.key }
  return { ...next, sequence: last.sequence, committedAt: last.committedAt }
}
