import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'
import { binaryIds } from './compare-ids.ts'
import { formatIso } from './instants.ts'

/** As the source writes it, and as a state can hold it. */
export type CursorValue = string | number

/** How the values of a cursor are ordered; a function for an order of the source's own. */
export type CursorKind = 'instant' | 'integer' | 'text' | ((a: string, b: string) => number)

export function isCursorValue(kind: CursorKind, value: unknown): value is CursorValue {
  if (kind === 'instant') return typeof value === 'string' && canonicalizeInstant(value) !== null
  if (kind === 'integer') return typeof value === 'number' ? Number.isSafeInteger(value) : typeof value === 'string' && /^-?\d{1,100}$/.test(value)
  return typeof value === 'string' && value !== ''
}

/** Negative, zero or positive. Both are cursors of the kind. */
export function compareCursors(kind: CursorKind, a: CursorValue, b: CursorValue): number {
  if (typeof kind === 'function') return kind(String(a), String(b))
  if (kind === 'text') return binaryIds(String(a), String(b))
  const [x, y] = kind === 'instant' ? [canonicalizeInstant(String(a))!, canonicalizeInstant(String(b))!] : [BigInt(a), BigInt(b)]
  return x < y ? -1 : x > y ? 1 : 0
}

/** Of two that stand at one place the second: a file written anew is known by its new content. */
export function laterCursor(kind: CursorKind, a: CursorValue | null, b: CursorValue | null): CursorValue | null {
  if (a === null || b === null) return a ?? b
  return compareCursors(kind, a, b) > 0 ? a : b
}

/** Of an instant; as short as it can be written. */
export function subtractFromInstant(text: string, ms: number): string {
  return formatIso(instantToMs(canonicalizeInstant(text)!) - ms).replace('.000Z', 'Z')
}
