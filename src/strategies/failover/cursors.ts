import { SyncError, type JsonValue } from '../../contract/index.ts'

/** A place in a stream of transactions, in one of the forms that providers understand. Everything from it on is read again, itself included. */
export type PaginationCursor =
  | { readonly type: 'blockNumber'; readonly value: number }
  /** Milliseconds since the epoch. */
  | { readonly type: 'timestamp'; readonly value: number }
  | { readonly type: 'txHash'; readonly value: string }
  | { readonly type: 'slot'; readonly value: number }
  | { readonly type: 'signature'; readonly value: string }
  /** Means nothing to anybody but the provider that gave it. */
  | { readonly type: 'pageToken'; readonly value: string; readonly providerName: string }

export type CursorType = PaginationCursor['type']
/** Kinds that can be compared, and set back. */
export type ComparableCursorType = 'blockNumber' | 'slot' | 'timestamp'
export type ComparableCursor = Extract<PaginationCursor, { type: ComparableCursorType }>

/** Where one operation stands. */
export interface CursorState {
  /** For the provider that wrote it. */
  readonly primary: PaginationCursor
  /** For the others: every form in which the last transaction tells its place. */
  readonly alternatives?: readonly PaginationCursor[]
  /** Empty when nothing was ever read. */
  readonly lastTransactionId: string
  /** Items, over all cycles. */
  readonly totalFetched: number
  readonly metadata?: CursorMetadata
}

export interface CursorMetadata {
  readonly providerName: string
  readonly updatedAt: number
  /** The only word on whether the operation has come to its end. */
  readonly isComplete?: boolean
  /** The provider's own, given back to it alone. */
  readonly custom?: JsonValue
  /** The furthest place of each kind that any provider got to: it never goes back. */
  readonly reached?: Readonly<Partial<Record<ComparableCursorType, number>>>
  /** The place of the last transaction. The position may lie before it, or far behind it. */
  readonly lastAt?: Readonly<Partial<Record<ComparableCursorType, number>>>
  /** While what was read before is read again. */
  readonly replay?: Replay
  /** Pages in a row that brought nothing new. */
  readonly barren?: number
  /** Where it went on after a page token had run out. */
  readonly fallback?: PaginationCursor
  /** What others put here stays. */
  readonly [name: string]: unknown
}

/** Reading again after a change of providers, until the place is passed where the one before had got to. */
export interface Replay {
  /** The furthest that anybody got to. */
  readonly until: ComparableCursor
  /** Where the one before stood: the window is opened before it. */
  readonly from: ComparableCursor
  /** The last item of the provider before: one that does not show it may have a gap there. Null once it was shown, or where none is sought. */
  readonly seek: string | null
  /** How often the window was widened to find it. */
  readonly widened: number
  /** It is read again because it has changed, and so it may have become shorter. */
  readonly isRepair?: true
}

/** One state per operation. */
export type CursorMap = Readonly<Record<string, CursorState>>

const CURSOR_VALUE_KINDS: Readonly<Record<CursorType, 'position' | 'text'>> = {
  blockNumber: 'position', timestamp: 'position', slot: 'position', txHash: 'text', signature: 'text', pageToken: 'text',
}

export function isComparableCursor(cursor: PaginationCursor): cursor is ComparableCursor {
  return CURSOR_VALUE_KINDS[cursor.type] === 'position'
}

/** What is wrong with a cursor, or null. Never quotes it. */
export function findCursorFault(value: unknown): string | null {
  if (!isRecord(value) || typeof value.type !== 'string' || !Object.hasOwn(CURSOR_VALUE_KINDS, value.type)) return 'is of no known type'
  const type = value.type as CursorType
  if (CURSOR_VALUE_KINDS[type] === 'position') return isCount(value.value) ? null : `is a ${type} that is not a whole number`
  // The empty string is a token like any other.
  if (typeof value.value !== 'string' || (value.value === '' && type !== 'pageToken')) return `is a ${type} that is not a text`
  if (type === 'pageToken' && (typeof value.providerName !== 'string' || value.providerName === '')) return 'is a page token that does not say whose it is'
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
  if (typeof value.lastTransactionId !== 'string') return 'has a lastTransactionId that is not a text'
  if (!isCount(value.totalFetched)) return 'has a totalFetched that is not a whole number'
  return value.metadata === undefined ? null : findMetadataFault(value.metadata)
}

function findMetadataFault(value: unknown): string | null {
  if (!isRecord(value)) return 'has metadata that is not an object'
  if (typeof value.providerName !== 'string' || value.providerName === '') return 'does not say which provider wrote it'
  if (!isCount(value.updatedAt)) return 'does not say when it was written'
  if (value.isComplete !== undefined && typeof value.isComplete !== 'boolean') return 'has an isComplete that is neither true nor false'
  if (value.fallback !== undefined && findCursorFault(value.fallback) !== null) return 'has a fallback that is no cursor'
  if (value.barren !== undefined && !isCount(value.barren)) return 'has a barren that is not a whole number'
  for (const name of ['reached', 'lastAt'] as const) {
    const places = value[name] ?? {}
    if (!isRecord(places) || !Object.entries(places).every(([type, at]) => CURSOR_VALUE_KINDS[type as CursorType] === 'position' && isCount(at))) return `has a ${name} that is no place`
  }
  const { replay } = value
  if (replay === undefined) return null
  const isPlace = (place: unknown): boolean => findCursorFault(place) === null && isComparableCursor(place as PaginationCursor)
  const isReplay = isRecord(replay) && isPlace(replay.until) && isPlace(replay.from) && (replay.seek === null || typeof replay.seek === 'string') && isCount(replay.widened)
  return isReplay ? null : 'has a replay that is none'
}

/**
 * The map with one operation moved on. The others stay as they are: not copies, the very same. Refuses what is no cursor, and a
 * place that goes back for no reason: it would read all of it again, cycle after cycle, and nobody would be told.
 */
export function mergeCursor(map: CursorMap, operation: string, next: CursorState): CursorMap {
  const fault = findCursorStateFault(next) ?? findRegression(map[operation], next)
  if (fault !== null) throw new SyncError('STATE_INVALID', `failover: the new position of \`${operation}\` ${fault}. It was not kept.`)
  return { ...map, [operation]: next }
}

/** Why a position may not follow another, or null. */
export function findRegression(previous: CursorState | undefined, next: CursorState): string | null {
  const before = previous?.metadata?.reached ?? {}
  const after = next.metadata?.reached ?? {}
  for (const type of Object.keys(before) as ComparableCursorType[]) {
    if ((after[type] ?? -1) < before[type]!) return `forgets that ${type} had got further`
  }
  const { primary } = next
  const isBack = isComparableCursor(primary) && primary.value < (after[primary.type] ?? 0)
  return isBack && next.metadata?.replay === undefined ? 'lies before the place that was reached' : null
}

export function isSameCursor(a: PaginationCursor | undefined, b: PaginationCursor | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.type === b.type && a.value === b.value && (a.type !== 'pageToken' || a.providerName === (b as typeof a).providerName)
}

/** Written when an operation ended and there had never been anything: every provider can begin there. */
export function isStartState({ primary, lastTransactionId, totalFetched }: CursorState): boolean {
  return lastTransactionId === '' && totalFetched === 0 && primary.value === 0
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
