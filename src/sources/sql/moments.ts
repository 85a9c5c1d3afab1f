import { canonicalInstant, instantMs } from '../../values/instant.ts'

/** A column's moment on one line with all others; null when it is none: `infinity`, a day that does not exist, years before ours. */
export function instantIn(text: string): string | null {
  return canonicalInstant(text) ?? canonicalInstant(`${text}Z`) ?? canonicalInstant(`${text}T00:00:00Z`)
}

/** What is no moment is before all that are. */
export function laterMoment(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return (instantIn(a) ?? '') >= (instantIn(b) ?? '') ? a : b
}

/** Earlier by so much: at the beginning of that second, so that as a text it comes before every other of it; written as the given one is. */
export function earlier(text: string, ms: number): string {
  const instant = instantIn(text)
  if (instant === null || ms === 0) return text
  const moved = new Date(instantMs(instant) - ms).toISOString()
  if (text.length === 10) return moved.slice(0, 10)
  return `${moved.slice(0, 10)}${text[10]}${moved.slice(11, 19)}${/[Zz]$/.test(text) ? 'Z' : ''}`
}
