import type { CursorState, CursorType, PaginationCursor, ComparableCursor, Replay } from './cursors.ts'
import { isComparableCursor, isStartState } from './cursors.ts'
import type { Provider, ReplayWindow } from './provider.ts'

/** Where a provider would go on. */
export interface Resumption {
  /** Undefined: from the very beginning. */
  readonly cursor: PaginationCursor | undefined
  /** The provider's own position, to be taken up exactly. */
  readonly isSameProvider: boolean
  /** Given when another provider's position was set back. */
  readonly replay: Replay | undefined
}

/** Null when nothing that is kept means anything to the provider. */
export function findResumption(provider: Pick<Provider<never>, 'name' | 'supports' | 'prefers' | 'replay'>, state: CursorState | undefined): Resumption | null {
  if (state === undefined || isStartState(state)) return { cursor: undefined, isSameProvider: state?.metadata?.providerName === provider.name, replay: undefined }
  const cursor = pickBestCursor(provider, state)
  if (cursor === undefined) return null
  const isOwn = state.metadata?.providerName === provider.name
  if (isOwn || !isComparableCursor(cursor)) return { cursor, isSameProvider: isOwn, replay: undefined }
  const start = rewindCursor(cursor, provider.replay)
  // Blocks and times alone: of another kind nobody knows what lies before it.
  return { cursor: start, isSameProvider: isOwn, replay: cursor.type === 'slot' ? undefined : buildReplay(cursor, start, state) }
}

/** The provider's own page token, then a block, then a time, then whatever else it takes; each from `primary` first. */
function pickBestCursor({ name, supports, prefers }: Pick<Provider<never>, 'name' | 'supports' | 'prefers'>, { primary, alternatives = [] }: CursorState): PaginationCursor | undefined {
  const usable = [primary, ...alternatives].filter((cursor) => supports.includes(cursor.type) && (cursor.type !== 'pageToken' || cursor.providerName === name))
  const order: CursorType[] = ['pageToken', 'blockNumber', 'timestamp', prefers]
  return order.map((type) => usable.find((cursor) => cursor.type === type)).find((cursor) => cursor !== undefined) ?? usable[0]
}

export function rewindCursor(position: ComparableCursor, window: ReplayWindow, times = 1): ComparableCursor {
  switch (position.type) {
    case 'blockNumber':
      return { type: 'blockNumber', value: Math.max(0, position.value - window.blocks * times) }
    case 'timestamp':
      return { type: 'timestamp', value: Math.max(0, position.value - window.ms * times) }
    case 'slot':
      return position
  }
}

function buildReplay(from: ComparableCursor, start: ComparableCursor, { lastTransactionId, alternatives = [], metadata }: CursorState): Replay {
  const until: ComparableCursor = { type: from.type, value: Math.max(from.value, metadata?.reached?.[from.type] ?? 0) }
  const last = metadata?.lastAt?.[from.type] ?? alternatives.findLast((cursor): cursor is ComparableCursor => cursor.type === from.type)?.value
  // Only what lies inside the window can be expected to show up again: not what was read ahead of the position.
  const isInside = last !== undefined && last >= start.value && last <= from.value && lastTransactionId !== ''
  return { until, from, seek: isInside ? lastTransactionId : null, widened: 0, ...(metadata?.replay?.isRepair === true && { isRepair: true }) }
}
