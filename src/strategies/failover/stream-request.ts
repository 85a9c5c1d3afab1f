import type { CursorState, ComparableCursor } from './cursors.ts'
import type { ProviderOperation, StreamRequest } from './provider.ts'
import type { Resumption } from './resumption.ts'

/** From where a provider takes a position up. */
export function buildStreamRequest<Item>(name: string, operation: ProviderOperation<Item>, from: CursorState | undefined, { cursor, isSameProvider: isOwn, replay }: Resumption): StreamRequest<Item> {
  const marked = from === undefined || replay === undefined ? from : { ...from, metadata: { ...from.metadata!, replay } }
  return { operationName: name, operation, cursor, cursorState: marked, isSameProvider: isOwn }
}

/** The provider's own from then on: it has been seen to tell what is so now. */
export function buildRepairRequest<Item>(back: ComparableCursor, name: string, operation: ProviderOperation<Item>, from: CursorState, provider: string): StreamRequest<Item> {
  const { custom: _, ...metadata } = from.metadata!
  const reached = metadata.reached?.[back.type]
  const until: ComparableCursor = { type: back.type, value: Math.max(back.value, reached ?? 0) }
  return { operationName: name, operation, cursor: back, isSameProvider: true, cursorState: { primary: back, lastTransactionId: from.lastTransactionId, totalFetched: from.totalFetched, metadata: { ...metadata, providerName: provider, replay: { until, from: back, seek: null, widened: 0, isRepair: true } } } }
}
