import { canonicalizeInstant } from '../../values/instant.ts'

/** The minimum over the streams of a sync; undefined when one of them has stated none (invariant 12). */
export function earliestTidemark(tidemarks: readonly (string | undefined)[]): string | undefined {
  const instants = tidemarks.map((tidemark) => (tidemark === undefined ? null : canonicalizeInstant(tidemark)))
  return instants.includes(null) ? undefined : (instants as string[]).reduce((earliest, instant) => (instant < earliest ? instant : earliest))
}
