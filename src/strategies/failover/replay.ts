import { isPosition, type CursorState, type Position, type Replay } from './cursors.ts'
import type { Batch, Operation, Provider } from './provider.ts'
import { setBack } from './resolve.ts'

/** How often, and each time how much wider, the window is opened to find what the provider before had shown last. */
const WIDENINGS_MAX = 3
const WIDER = 4

export interface Replayed {
  readonly cursor: CursorState
  /** Something to be told of. */
  readonly note: 'gap' | 'widened' | null
}

/**
 * Reading again ends where the provider before had got to. One that passes that place without showing the item that the other
 * ended with is behind, or has a gap there: so it is asked from further back, a few times. What then is still missing is gone
 * from the source, as after a reorganisation.
 */
export function settleReplay<Item>({ cursor, seen }: Pick<Batch<Item>, 'cursor' | 'seen'>, before: CursorState | undefined, operation: Operation<Item>, provider: Pick<Provider<Item>, 'name' | 'replay'>): Replayed {
  const metadata = cursor.metadata!
  const { replay, ...rest } = metadata
  if (replay === undefined) return { cursor, note: null }
  // It said nothing, so the position is still the other's, and whoever goes on begins to read again from there.
  if (metadata.providerName !== provider.name) return { cursor: { ...cursor, metadata: { ...rest, ...(before?.metadata?.replay !== undefined && { replay: before.metadata.replay }) } }, note: null }
  const { from, widened } = replay
  // The page may itself have got further than anybody before.
  const until: Position = { type: replay.until.type, value: Math.max(replay.until.value, metadata.reached?.[replay.until.type] ?? 0) }
  const seek = replay.seek !== null && seen.some((item) => operation.id(item) === replay.seek) ? null : replay.seek
  const place = [cursor.primary, ...(cursor.alternatives ?? [])].filter(isPosition).find(({ type }) => type === until.type)
  const isPast = metadata.isComplete === true || (place !== undefined && place.value > from.value)
  if (seek !== null && isPast && widened < WIDENINGS_MAX) return { cursor: widen(cursor, { ...replay, until, seek, widened: widened + 1 }, provider), note: 'widened' }
  const isOver = place !== undefined && place.value >= until.value && (seek === null || isPast)
  const note = seek !== null && isPast ? 'gap' : null
  if (isOver) return { cursor: { ...cursor, metadata: rest }, note }
  return { cursor: { ...cursor, metadata: { ...metadata, replay: { ...replay, until, seek: isPast ? null : seek } } }, note }
}

function widen(cursor: CursorState, replay: Replay, { name, replay: window }: Pick<Provider<never>, 'name' | 'replay'>): CursorState {
  const { alternatives: _a, metadata, ...rest } = cursor
  const { custom: _c, ...kept } = metadata!
  return {
    ...rest,
    primary: setBack(replay.from, { blocks: Math.max(1, window.blocks), ms: Math.max(1_000, window.ms) }, WIDER ** replay.widened),
    metadata: { ...kept, providerName: name, updatedAt: metadata!.updatedAt, isComplete: false, replay },
  }
}
