import type { LandingCounts } from '../../contract/index.ts'

const COUNT_NAMES = [
  'created',
  'updated',
  'deleted',
  'swept',
  'unchanged',
  'stale',
  'missing',
  'quarantined',
] as const satisfies (keyof LandingCounts)[]

/** Rows that a cycle processed. */
export function totalRows(counts: LandingCounts): number {
  return COUNT_NAMES.reduce((sum, name) => sum + counts[name], 0)
}

/** Rows that changed the store. */
export function changedRows({ created, updated, deleted, swept, quarantined }: LandingCounts): number {
  return created + updated + deleted + swept + quarantined
}

/** `240 created, 3 updated`; zero counts are left out. */
export function describeCounts(counts: LandingCounts): string {
  const parts = COUNT_NAMES.filter((name) => counts[name] > 0).map((name) => `${formatNumber(counts[name])} ${name}`)
  return parts.length === 0 ? 'no rows' : parts.join(', ')
}

export function formatNumber(count: number): string {
  return count.toLocaleString('en-US')
}
