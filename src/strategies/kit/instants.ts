import { SyncError } from '../../contract/index.ts'
import { canonicalInstant } from '../../values/instant.ts'

/** UTC with microseconds, so that instants compare as text; refuses local times, numbers and `infinity`. */
export function instantOf(text: unknown, what: string): string {
  const canonical = typeof text === 'string' ? canonicalInstant(text) : null
  if (canonical === null) throw new SyncError('SOURCE_INVALID', `${what} is not an instant such as 2026-01-31T12:00:00.123456Z.`)
  return canonical
}

export function isoOf(ms: number): string {
  return new Date(ms).toISOString()
}

/** The canonical form of a number of milliseconds. */
export function instantOfMs(ms: number): string {
  return `${isoOf(ms).slice(0, 23)}000Z`
}
