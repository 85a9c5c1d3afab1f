import type { LandingCounts } from '../contract/index.ts'

const NAMES = ['created', 'updated', 'deleted', 'swept', 'unchanged', 'stale', 'missing', 'quarantined'] as const satisfies (keyof LandingCounts)[]

/** Rows a cycle looked at. */
export function rowsOf(counts: LandingCounts): number {
  return NAMES.reduce((sum, name) => sum + counts[name], 0)
}

/** How many of them changed something. */
export function changedOf({ created, updated, deleted, swept, quarantined }: LandingCounts): number {
  return created + updated + deleted + swept + quarantined
}

/** `240 created, 3 updated`; what did not happen is not mentioned. */
export function describeCounts(counts: LandingCounts): string {
  const parts = NAMES.filter((name) => counts[name] > 0).map((name) => `${grouped(counts[name])} ${name}`)
  return parts.length === 0 ? 'no rows' : parts.join(', ')
}

export function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
