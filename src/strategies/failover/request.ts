import type { CursorState, Position } from './cursors.ts'
import type { Operation, StreamRequest } from './provider.ts'
import type { Resumption } from './resolve.ts'

/** From where a provider takes a position up. */
export function requestOf<Item>(name: string, operation: Operation<Item>, from: CursorState | undefined, { cursor, isOwn, replay }: Resumption): StreamRequest<Item> {
  const marked = from === undefined || replay === undefined ? from : { ...from, metadata: { ...from.metadata!, replay } }
  return { name, operation, cursor, from: marked, isOwn }
}

/** The provider's own from then on: it has been seen to tell what is so now. */
export function requestFrom<Item>(back: Position, name: string, operation: Operation<Item>, from: CursorState, provider: string): StreamRequest<Item> {
  const { custom: _, ...metadata } = from.metadata!
  const reached = metadata.reached?.[back.type]
  const until: Position = { type: back.type, value: Math.max(back.value, reached ?? 0) }
  return { name, operation, cursor: back, isOwn: true, from: { primary: back, lastTransactionId: from.lastTransactionId, totalFetched: from.totalFetched, metadata: { ...metadata, providerName: provider, replay: { until, from: back, seek: null, widened: 0, isRepair: true } } } }
}
