import { requireMetadata, type CursorState, type ComparableCursor } from './cursors.ts'
import type { ProviderOperation, StreamRequest } from './provider.ts'
import type { Resumption } from './resumption.ts'

/** Builds the request of a provider that resumes from a cursor. */
export function buildStreamRequest<Item>(
  name: string,
  operation: ProviderOperation<Item>,
  from: CursorState | undefined,
  { cursor, isSameProvider, replay }: Resumption,
): StreamRequest<Item> {
  const cursorState =
    from === undefined || replay === undefined ? from : { ...from, metadata: { ...from.metadata!, replay } }
  return { operationName: name, operation, cursor, cursorState, isSameProvider }
}

/**
 * Rewinds the stream after a history change. The cursor becomes the provider's own, because it returns the current
 * history.
 */
export function buildRepairRequest<Item>(
  rewindTo: ComparableCursor,
  name: string,
  operation: ProviderOperation<Item>,
  from: CursorState,
  provider: string,
): StreamRequest<Item> {
  const { custom: _, ...metadata } = requireMetadata(from)
  const reached = metadata.reached?.[rewindTo.type]
  const until: ComparableCursor = { type: rewindTo.type, value: Math.max(rewindTo.value, reached ?? 0) }
  return {
    operationName: name,
    operation,
    cursor: rewindTo,
    isSameProvider: true,
    cursorState: {
      primary: rewindTo,
      lastTransactionId: from.lastTransactionId,
      totalFetched: from.totalFetched,
      metadata: {
        ...metadata,
        providerName: provider,
        replay: { until, from: rewindTo, seek: null, widened: 0, isRepair: true },
      },
    },
  }
}
