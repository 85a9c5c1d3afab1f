import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'

/** A column's moment on one line with all others; null when it is none: `infinity`, a day that does not exist, years before ours. */
export function parseColumnInstant(text: string): string | null {
  return canonicalizeInstant(text) ?? canonicalizeInstant(`${text}Z`) ?? canonicalizeInstant(`${text}T00:00:00Z`)
}

/** What is no moment is before all that are. */
export function laterInstant(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return (parseColumnInstant(a) ?? '') >= (parseColumnInstant(b) ?? '') ? a : b
}

/** Earlier by so much: at the beginning of that second, so that as a text it comes before every other of it; written as the given one is. */
export function subtractMs(text: string, ms: number): string {
  const instant = parseColumnInstant(text)
  if (instant === null || ms === 0) return text
  const moved = new Date(instantToMs(instant) - ms).toISOString()
  if (text.length === 10) return moved.slice(0, 10)
  return `${moved.slice(0, 10)}${text[10]}${moved.slice(11, 19)}${/[Zz]$/.test(text) ? 'Z' : ''}`
}
