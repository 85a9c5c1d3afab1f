import type { VerificationGap, VerificationReport } from '../contract/index.ts'

/** The result of a verification in one word. `unsettled`: rows differ that may have changed since the last cycle. */
export type VerificationOutcome = 'equal' | 'different' | 'unsettled' | 'repaired' | 'incomplete' | 'failed'

export function toOutcome({
  error,
  differences,
  unsettled,
  repaired,
  incomplete,
}: VerificationReport): VerificationOutcome {
  if (error !== null) return 'failed'
  const settled = differences.missing + differences.stale + differences.extra
  if (settled + unsettled > 0 && repaired >= settled + unsettled) return 'repaired'
  if (settled > 0) return 'different'
  if (incomplete === 'budget' || incomplete === 'limit' || incomplete === 'moved') return 'incomplete'
  return unsettled > 0 ? 'unsettled' : 'equal'
}

/** The part that a verification left out. */
export const GAP_TEXT: Readonly<Record<VerificationGap, string>> = {
  budget: 'the request budget was used up',
  fields: 'fields without a digest were not compared; --full compares every field',
  deletes: 'the source cannot list all records, so extra rows were not looked for',
  sample: 'a sample was compared',
  range: 'a range of times was compared',
  moved: 'some rows changed whenever they were compared',
  limit: 'too many rows differ; run a backfill',
}
