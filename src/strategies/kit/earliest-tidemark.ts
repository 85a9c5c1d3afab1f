import { canonicalizeInstant } from '../../values/instant.ts'

/** Invariant 12: the minimum over all streams of a sync; undefined when one of them has none. */
export function earliestTidemark(tidemarks: readonly (string | undefined)[]): string | undefined {
  const instants = tidemarks.map((tidemark) => (tidemark === undefined ? null : canonicalizeInstant(tidemark)))
  return instants.includes(null)
    ? undefined
    : (instants as string[]).reduce((earliest, instant) => (instant < earliest ? instant : earliest))
}
