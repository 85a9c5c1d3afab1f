import type { SequenceStore } from '../../../contract/index.ts'
import { defineRead, type PlansOf, type Sql, type Steps } from '../sql/port.ts'

export const SEQUENCE_PLANS = {
  headSequence: defineRead(readHeadSequence),
  sequenceBefore: defineRead(findSequenceBefore),
} satisfies PlansOf<SequenceStore>

function* readHeadSequence(sql: Sql): Steps<number> {
  return (
    (yield* sql.get<{ sequence: number }>('select sequence from {tenants} where tenant_id = :tenant'))?.sequence ?? 0
  )
}

/**
 * Uses the directory's index on commit times, which grow with sequences: everything before the first commit at or after
 * the time is older.
 */
export function* findSequenceBefore(sql: Sql, time: number): Steps<number> {
  const next = yield* sql.get<{ first: number }>(
    'select first_sequence as first from {commits} where tenant_id = :tenant and committed_at >= :time order by committed_at, first_sequence limit 1',
    { time },
  )
  return next === undefined ? yield* readHeadSequence(sql) : next.first - 1
}
