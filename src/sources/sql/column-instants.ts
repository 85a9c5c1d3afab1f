import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'

/** Converts a column value to a canonical instant; null for `infinity`, invalid dates and years before 1. */
export function parseColumnInstant(text: string): string | null {
  return canonicalizeInstant(text) ?? canonicalizeInstant(`${text}Z`) ?? canonicalizeInstant(`${text}T00:00:00Z`)
}

/** Values that are not instants sort before all others. */
export function laterInstant(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return (parseColumnInstant(a) ?? '') >= (parseColumnInstant(b) ?? '') ? a : b
}

/**
 * Subtracts a duration and truncates to the second, so that as text it sorts before every value of that second; keeps
 * the given format.
 */
export function subtractMs(text: string, ms: number): string {
  const instant = parseColumnInstant(text)
  if (instant === null || ms === 0) return text
  const moved = new Date(instantToMs(instant) - ms).toISOString()
  if (text.length === 10) return moved.slice(0, 10)
  return `${moved.slice(0, 10)}${text[10]}${moved.slice(11, 19)}${/[Zz]$/.test(text) ? 'Z' : ''}`
}
