import type { DestinationBatch, DestinationPosition, DestinationToken, TokenStep } from '../../contract/index.ts'

/**
 * Whether a batch may be applied to a destination with these tokens: it follows the stored token of its target, and no
 * token has a newer epoch. Called inside the transaction that applies the batch, so that two processes never apply twice
 * or out of order.
 */
export function isNextStep(
  position: DestinationPosition,
  { target }: Pick<DestinationBatch, 'target'>,
  { previous, next }: TokenStep,
): boolean {
  const isFenced = [position.live, position.loading].some((token) => token !== null && token.epoch > next.epoch)
  return !isFenced && isSameToken(position[target], previous)
}

/** Epochs differ after a takeover: the sequence and the key identify the state of the rows. */
function isSameToken(a: DestinationToken | null, b: DestinationToken | null): boolean {
  if (a === null || b === null) return a === b
  return a.storeId === b.storeId && a.sequence === b.sequence && a.after === b.after
}
