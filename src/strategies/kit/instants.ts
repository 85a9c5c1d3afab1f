import { SyncError } from '../../contract/index.ts'
import { canonicalizeInstant, instantToMs, msToInstant } from '../../values/instant.ts'

export { msToInstant } from '../../values/instant.ts'

/** Returns UTC with microseconds, so instants compare as text; rejects local times, numbers and `infinity`. */
export function requireInstant(text: unknown, what: string): string {
  const canonical = typeof text === 'string' ? canonicalizeInstant(text) : null
  if (canonical === null)
    throw new SyncError('SOURCE_INVALID', `${what} is not an RFC 3339 instant such as 2026-01-31T12:00:00.123456Z.`)
  return canonical
}

export function formatIso(ms: number): string {
  return new Date(ms).toISOString()
}

/** The instant before a canonical one: a cursor at `t` proves everything below `t`, but not all of `t`. */
export function subtractMicrosecond(canonical: string): string {
  const micros = Number(canonical.slice(23, 26))
  const before = (text: string, last: number): string => `${text.slice(0, 23)}${String(last).padStart(3, '0')}Z`
  return micros > 0 ? before(canonical, micros - 1) : before(msToInstant(instantToMs(canonical) - 1), 999)
}
