import { isComparableCursor, type CursorState, type ComparableCursor, type Replay } from './cursors.ts'
import type { ProviderBatch, ProviderOperation, Provider } from './provider.ts'
import { rewindCursor } from './resumption.ts'

/** How often, and each time how much wider, the window is opened to find what the provider before had shown last. */
const WIDENINGS_MAX = 3
const WIDEN_FACTOR = 4

export interface ReplayOutcome {
  readonly cursor: CursorState
  /** Something to be told of. */
  readonly warning: 'gap' | 'widened' | null
}

/**
 * Reading again ends where the provider before had got to. One that passes that place without showing the item that the other
 * ended with is behind, or has a gap there: so it is asked from further back, a few times. What then is still missing is gone
 * from the source, as after a reorganisation.
 */
export function advanceReplay<Item>({ cursor, fetchedItems: seen }: Pick<ProviderBatch<Item>, 'cursor' | 'fetchedItems'>, before: CursorState | undefined, operation: ProviderOperation<Item>, provider: Pick<Provider<Item>, 'name' | 'replay'>): ReplayOutcome {
  const metadata = cursor.metadata!
  const { replay, ...rest } = metadata
  if (replay === undefined) return { cursor, warning: null }
  // It said nothing, so the position is still the other's, and whoever goes on begins to read again from there.
  if (metadata.providerName !== provider.name) return { cursor: { ...cursor, metadata: { ...rest, ...(before?.metadata?.replay !== undefined && { replay: before.metadata.replay }) } }, warning: null }
  const { from, widened } = replay
  // The page may itself have got further than anybody before.
  const until: ComparableCursor = { type: replay.until.type, value: Math.max(replay.until.value, metadata.reached?.[replay.until.type] ?? 0) }
  const seek = replay.seek !== null && seen.some((item) => operation.id(item) === replay.seek) ? null : replay.seek
  const place = [cursor.primary, ...(cursor.alternatives ?? [])].filter(isComparableCursor).find(({ type }) => type === until.type)
  const isPast = metadata.isComplete === true || (place !== undefined && place.value > from.value)
  if (seek !== null && isPast && widened < WIDENINGS_MAX) return { cursor: widenReplay(cursor, { ...replay, until, seek, widened: widened + 1 }, provider), warning: 'widened' }
  const isOver = place !== undefined && place.value >= until.value && (seek === null || isPast)
  const note = seek !== null && isPast ? 'gap' : null
  if (isOver) return { cursor: { ...cursor, metadata: rest }, warning: note }
  return { cursor: { ...cursor, metadata: { ...metadata, replay: { ...replay, until, seek: isPast ? null : seek } } }, warning: note }
}

function widenReplay(cursor: CursorState, replay: Replay, { name, replay: window }: Pick<Provider<never>, 'name' | 'replay'>): CursorState {
  const { alternatives: _a, metadata, ...rest } = cursor
  const { custom: _c, ...kept } = metadata!
  return {
    ...rest,
    primary: rewindCursor(replay.from, { blocks: Math.max(1, window.blocks), ms: Math.max(1_000, window.ms) }, WIDEN_FACTOR ** replay.widened),
    metadata: { ...kept, providerName: name, updatedAt: metadata!.updatedAt, isComplete: false, replay },
  }
}
