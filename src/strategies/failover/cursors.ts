import { SyncError, type JsonValue } from '../../contract/index.ts'
import { required } from '../../values/required.ts'

/**
 * A cursor into a stream of transactions, in one of the forms that providers support. Reading from it includes its own
 * item.
 */
export type PaginationCursor =
  | { readonly type: 'blockNumber'; readonly value: number }
  /** Milliseconds since the epoch. */
  | { readonly type: 'timestamp'; readonly value: number }
  | { readonly type: 'txHash'; readonly value: string }
  | { readonly type: 'slot'; readonly value: number }
  | { readonly type: 'signature'; readonly value: string }
  /** Opaque: only the provider that issued it can use it. */
  | { readonly type: 'pageToken'; readonly value: string; readonly providerName: string }

/** The type of a pagination cursor. */
export type CursorType = PaginationCursor['type']

/** Cursor types that can be compared and moved back. */
export type ComparableCursorType = 'blockNumber' | 'slot' | 'timestamp'

/** A cursor that can be compared and moved back. */
export type ComparableCursor = Extract<PaginationCursor, { type: ComparableCursorType }>

/** The cursor of one operation. */
export interface CursorState {
  /** For the provider that wrote it. */
  readonly primary: PaginationCursor
  /** For the other providers: every cursor form of the last transaction. */
  readonly alternatives?: readonly PaginationCursor[]
  /** Empty when nothing was ever read. */
  readonly lastTransactionId: string
  /** Number of items over all cycles. */
  readonly totalFetched: number
  readonly metadata?: CursorMetadata
}

/** Facts about a cursor: its provider, age and progress. */
export interface CursorMetadata {
  readonly providerName: string
  readonly updatedAt: number
  /** The only flag that decides whether the operation is complete. */
  readonly isComplete?: boolean
  /** The provider's own value, passed back only to that provider. */
  readonly custom?: JsonValue
  /** The furthest cursor of each type that any provider reached; it never decreases. */
  readonly reached?: Readonly<Partial<Record<ComparableCursorType, number>>>
  /** The cursor of the last transaction. The primary cursor may be before or after it. */
  readonly lastAt?: Readonly<Partial<Record<ComparableCursorType, number>>>
  /** Set while earlier items are read again. */
  readonly replay?: Replay
  /** Consecutive pages without new items. */
  readonly barren?: number
  /** The cursor used after a page token expired. */
  readonly fallback?: PaginationCursor
  /** Unknown fields are preserved. */
  readonly [name: string]: unknown
}

/** Re-reading after a provider switch, until the previous provider's cursor is passed. */
export interface Replay {
  /** The furthest cursor that any provider reached. */
  readonly until: ComparableCursor
  /** The previous provider's cursor: the window starts before it. */
  readonly from: ComparableCursor
  /**
   * The last item of the previous provider: a provider that does not return it may have a gap there. Null once it was
   * found, or if there is none to find.
   */
  readonly seek: string | null
  /** Number of times the window was widened to find it. */
  readonly widened: number
  /** The range is read again because history changed, so it may have become shorter. */
  readonly isRepair?: true
}

/** The cursor state of every operation, by name. */
export type CursorMap = Readonly<Record<string, CursorState>>

const CURSOR_VALUE_KINDS: Readonly<Record<CursorType, 'position' | 'text'>> = {
  blockNumber: 'position',
  timestamp: 'position',
  slot: 'position',
  txHash: 'text',
  signature: 'text',
  pageToken: 'text',
}

export function isComparableCursor(cursor: PaginationCursor): cursor is ComparableCursor {
  return CURSOR_VALUE_KINDS[cursor.type] === 'position'
}

/** Describes what is wrong with a cursor, or returns null. Never includes the cursor's value. */
export function findCursorFault(value: unknown): string | null {
  if (!isRecord(value) || typeof value.type !== 'string' || !Object.hasOwn(CURSOR_VALUE_KINDS, value.type))
    return 'has an unknown type'
  const type = value.type as CursorType
  if (CURSOR_VALUE_KINDS[type] === 'position')
    return isCount(value.value) ? null : `is a ${type} that is not a whole number`
  // The empty string is a valid token.
  if (typeof value.value !== 'string' || (value.value === '' && type !== 'pageToken'))
    return `is a ${type} that is not a string`
  if (type === 'pageToken' && (typeof value.providerName !== 'string' || value.providerName === ''))
    return 'is a page token without a providerName'
  return null
}

export function findCursorStateFault(value: unknown): string | null {
  if (!isRecord(value)) return 'is not an object'
  const primary = findCursorFault(value.primary)
  if (primary !== null) return `has a primary cursor that ${primary}`
  if (value.alternatives !== undefined) {
    if (!Array.isArray(value.alternatives)) return 'has alternatives that are not a list'
    const fault = value.alternatives.map(findCursorFault).find((found) => found !== null)
    if (fault !== undefined) return `has an alternative that ${fault}`
  }
  if (typeof value.lastTransactionId !== 'string') return 'has a lastTransactionId that is not a string'
  if (!isCount(value.totalFetched)) return 'has a totalFetched that is not a whole number'
  return value.metadata === undefined ? null : findMetadataFault(value.metadata)
}

function findMetadataFault(value: unknown): string | null {
  if (!isRecord(value)) return 'has metadata that is not an object'
  if (typeof value.providerName !== 'string' || value.providerName === '') return 'has no providerName'
  if (!isCount(value.updatedAt)) return 'has no updatedAt'
  if (value.isComplete !== undefined && typeof value.isComplete !== 'boolean')
    return 'has an isComplete that is not a boolean'
  if (value.fallback !== undefined && findCursorFault(value.fallback) !== null)
    return 'has a fallback that is not a cursor'
  if (value.barren !== undefined && !isCount(value.barren)) return 'has a barren that is not a whole number'
  for (const name of ['reached', 'lastAt'] as const) {
    const values = value[name] ?? {}
    if (
      !isRecord(values) ||
      !Object.entries(values).every(
        ([type, at]) => CURSOR_VALUE_KINDS[type as CursorType] === 'position' && isCount(at),
      )
    )
      return `has a ${name} that is not a map of cursor values`
  }
  const { replay } = value
  if (replay === undefined) return null
  const isComparable = (cursor: unknown): boolean =>
    findCursorFault(cursor) === null && isComparableCursor(cursor as PaginationCursor)
  const isReplay =
    isRecord(replay) &&
    isComparable(replay.until) &&
    isComparable(replay.from) &&
    (replay.seek === null || typeof replay.seek === 'string') &&
    isCount(replay.widened)
  return isReplay ? null : 'has an invalid replay'
}

/**
 * Returns the map with one operation advanced; the other entries keep their identity. Rejects an invalid cursor, and
 * one that moves back without a replay: it would silently re-read everything in every cycle.
 */
export function mergeCursor(map: CursorMap, operation: string, next: CursorState): CursorMap {
  const fault = findCursorStateFault(next) ?? findRegression(map[operation], next)
  if (fault !== null)
    throw new SyncError(
      'STATE_INVALID',
      `failover: the new cursor of \`${operation}\` ${fault}. It was not stored. Check the provider that returned it.`,
    )
  return { ...map, [operation]: next }
}

/** Explains why a cursor may not follow another, or returns null. */
export function findRegression(previous: CursorState | undefined, next: CursorState): string | null {
  const reachedBefore = previous?.metadata?.reached ?? {}
  const reachedAfter = next.metadata?.reached ?? {}
  for (const [type, value] of Object.entries(reachedBefore) as [ComparableCursorType, number][]) {
    if ((reachedAfter[type] ?? -1) < value) return `is behind the ${type} that was reached`
  }
  const { primary } = next
  const isBack = isComparableCursor(primary) && primary.value < (reachedAfter[primary.type] ?? 0)
  return isBack && next.metadata?.replay === undefined ? 'is before the cursor that was reached' : null
}

export function isSameCursor(a: PaginationCursor | undefined, b: PaginationCursor | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return (
    a.type === b.type &&
    a.value === b.value &&
    (a.type !== 'pageToken' || a.providerName === (b as typeof a).providerName)
  )
}

/** The state of an operation that ended without any item: every provider can start from it. */
export function isStartState({ primary, lastTransactionId, totalFetched }: CursorState): boolean {
  return lastTransactionId === '' && totalFetched === 0 && primary.value === 0
}

/** The engine's own cursor states always have metadata; the type leaves it optional for states written by providers. */
export function requireMetadata({ metadata }: CursorState): CursorMetadata {
  return required(metadata, 'the metadata of a failover cursor')
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
