import type { CursorState, CursorType, PaginationCursor, ComparableCursor, Replay } from './cursors.ts'
import { isComparableCursor, isStartState } from './cursors.ts'
import type { Provider, ReplayWindow } from './provider.ts'

/** Where a provider resumes. */
export interface Resumption {
  /** Undefined: from the start of the stream. */
  readonly cursor: PaginationCursor | undefined
  /** The cursor is the provider's own and is resumed exactly. */
  readonly isSameProvider: boolean
  /** Set when another provider's cursor was moved back. */
  readonly replay: Replay | undefined
}

/** Returns null if the provider supports none of the stored cursors. */
export function findResumption(
  provider: Pick<Provider<never>, 'name' | 'supports' | 'prefers' | 'replay'>,
  state: CursorState | undefined,
): Resumption | null {
  if (state === undefined || isStartState(state))
    return { cursor: undefined, isSameProvider: state?.metadata?.providerName === provider.name, replay: undefined }
  const cursor = pickBestCursor(provider, state)
  if (cursor === undefined) return null
  const isSameProvider = state.metadata?.providerName === provider.name
  if (isSameProvider || !isComparableCursor(cursor)) return { cursor, isSameProvider, replay: undefined }
  const start = rewindCursor(cursor, provider.replay)
  // Only for blocks and timestamps: slots cannot be moved back.
  return {
    cursor: start,
    isSameProvider,
    replay: cursor.type === 'slot' ? undefined : buildReplay(cursor, start, state),
  }
}

/**
 * In order: the provider's own page token, a block, a timestamp, any other supported cursor; `primary` before
 * alternatives.
 */
function pickBestCursor(
  { name, supports, prefers }: Pick<Provider<never>, 'name' | 'supports' | 'prefers'>,
  { primary, alternatives = [] }: CursorState,
): PaginationCursor | undefined {
  const usable = [primary, ...alternatives].filter(
    (cursor) => supports.includes(cursor.type) && (cursor.type !== 'pageToken' || cursor.providerName === name),
  )
  const order: CursorType[] = ['pageToken', 'blockNumber', 'timestamp', prefers]
  return (
    order.map((type) => usable.find((cursor) => cursor.type === type)).find((cursor) => cursor !== undefined) ??
    usable[0]
  )
}

export function rewindCursor(cursor: ComparableCursor, window: ReplayWindow, times = 1): ComparableCursor {
  switch (cursor.type) {
    case 'blockNumber':
      return { type: 'blockNumber', value: Math.max(0, cursor.value - window.blocks * times) }
    case 'timestamp':
      return { type: 'timestamp', value: Math.max(0, cursor.value - window.ms * times) }
    case 'slot':
      return cursor
  }
}

function buildReplay(
  from: ComparableCursor,
  start: ComparableCursor,
  { lastTransactionId, alternatives = [], metadata }: CursorState,
): Replay {
  const until: ComparableCursor = { type: from.type, value: Math.max(from.value, metadata?.reached?.[from.type] ?? 0) }
  const last =
    metadata?.lastAt?.[from.type] ??
    alternatives.findLast((cursor): cursor is ComparableCursor => cursor.type === from.type)?.value
  // Only items inside the window can reappear, not items that were read ahead of the cursor.
  const isInside = last !== undefined && last >= start.value && last <= from.value && lastTransactionId !== ''
  return {
    until,
    from,
    seek: isInside ? lastTransactionId : null,
    widened: 0,
    ...(metadata?.replay?.isRepair === true && { isRepair: true }),
  }
}
