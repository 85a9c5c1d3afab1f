import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'
import { binaryIds } from './compare-ids.ts'
import { formatIso, requireInstant } from './instants.ts'

/** A cursor value as the source writes it, in a form that fits in a state. */
export type CursorValue = string | number

/** The ordering of cursor values; a function defines the source's own order. */
export type CursorKind = 'instant' | 'integer' | 'text' | ((a: string, b: string) => number)

export function isCursorValue(kind: CursorKind, value: unknown): value is CursorValue {
  if (kind === 'instant') return typeof value === 'string' && canonicalizeInstant(value) !== null
  if (kind === 'integer')
    return typeof value === 'number'
      ? Number.isSafeInteger(value)
      : typeof value === 'string' && /^-?\d{1,100}$/.test(value)
  return typeof value === 'string' && value !== ''
}

/** Returns a negative number, zero or a positive number. Both values must be cursors of the kind. */
export function compareCursors(kind: CursorKind, a: CursorValue, b: CursorValue): number {
  if (typeof kind === 'function') return kind(String(a), String(b))
  if (kind === 'text') return binaryIds(String(a), String(b))
  const [x, y] =
    kind === 'instant'
      ? [requireInstant(String(a), 'A cursor'), requireInstant(String(b), 'A cursor')]
      : [BigInt(a), BigInt(b)]
  return x < y ? -1 : x > y ? 1 : 0
}

/** For equal cursors the second wins: a rewritten file is identified by its new content. */
export function laterCursor(kind: CursorKind, a: CursorValue | null, b: CursorValue | null): CursorValue | null {
  if (a === null || b === null) return a ?? b
  return compareCursors(kind, a, b) > 0 ? a : b
}

/** Subtracts milliseconds and omits a zero fraction. */
export function subtractFromInstant(text: string, ms: number): string {
  return formatIso(instantToMs(requireInstant(text, 'A cursor')) - ms).replace('.000Z', 'Z')
}
