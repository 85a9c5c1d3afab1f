import { isComparableCursor, requireMetadata, type CursorState, type ComparableCursor, type Replay } from './cursors.ts'
import type { ProviderBatch, ProviderOperation, Provider } from './provider.ts'
import { rewindCursor } from './resumption.ts'

/** How often, and by what factor, the window is widened to find the previous provider's last item. */
const WIDENINGS_MAX = 3
const WIDEN_FACTOR = 4

export interface ReplayOutcome {
  readonly cursor: CursorState
  /** A warning to log, if any. */
  readonly warning: 'gap' | 'widened' | null
}

/**
 * A replay ends at the previous provider's cursor. A provider that passes it without returning that provider's last
 * item is behind or has a gap, so it is read from further back, a few times. An item that is still missing then was
 * removed from the source, as after a reorganisation.
 */
export function advanceReplay<Item>(
  { cursor, fetchedItems }: Pick<ProviderBatch<Item>, 'cursor' | 'fetchedItems'>,
  previous: CursorState | undefined,
  operation: ProviderOperation<Item>,
  provider: Pick<Provider<Item>, 'name' | 'replay'>,
): ReplayOutcome {
  const metadata = requireMetadata(cursor)
  const { replay, ...rest } = metadata
  if (replay === undefined) return { cursor, warning: null }
  // The page was empty, so the cursor is still the other provider's, and the next provider starts the replay from it.
  if (metadata.providerName !== provider.name)
    return {
      cursor: {
        ...cursor,
        metadata: { ...rest, ...(previous?.metadata?.replay !== undefined && { replay: previous.metadata.replay }) },
      },
      warning: null,
    }
  const { from, widened } = replay
  // The page itself may have advanced further than any provider before.
  const until: ComparableCursor = {
    type: replay.until.type,
    value: Math.max(replay.until.value, metadata.reached?.[replay.until.type] ?? 0),
  }
  const seek =
    replay.seek !== null && fetchedItems.some((item) => operation.id(item) === replay.seek) ? null : replay.seek
  const position = [cursor.primary, ...(cursor.alternatives ?? [])]
    .filter(isComparableCursor)
    .find(({ type }) => type === until.type)
  const isPast = metadata.isComplete === true || (position !== undefined && position.value > from.value)
  if (seek !== null && isPast && widened < WIDENINGS_MAX)
    return {
      cursor: widenReplay(cursor, { ...replay, until, seek, widened: widened + 1 }, provider),
      warning: 'widened',
    }
  const isOver = position !== undefined && position.value >= until.value && (seek === null || isPast)
  const warning = seek !== null && isPast ? 'gap' : null
  if (isOver) return { cursor: { ...cursor, metadata: rest }, warning }
  return {
    cursor: { ...cursor, metadata: { ...metadata, replay: { ...replay, until, seek: isPast ? null : seek } } },
    warning,
  }
}

function widenReplay(
  cursor: CursorState,
  replay: Replay,
  { name, replay: window }: Pick<Provider<never>, 'name' | 'replay'>,
): CursorState {
  const { alternatives: _a, metadata: _m, ...rest } = cursor
  const { custom: _c, ...kept } = requireMetadata(cursor)
  return {
    ...rest,
    primary: rewindCursor(
      replay.from,
      { blocks: Math.max(1, window.blocks), ms: Math.max(1_000, window.ms) },
      WIDEN_FACTOR ** replay.widened,
    ),
    metadata: { ...kept, providerName: name, updatedAt: kept.updatedAt, isComplete: false, replay },
  }
}
