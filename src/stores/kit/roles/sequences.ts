import type { SequenceStore } from '../../../contract/index.ts'
import { read, type PlansOf, type Sql, type Steps } from '../sql/port.ts'

export const SEQUENCES = {
  position: read(readPosition),
  sequenceBefore: read(findBefore),
} satisfies PlansOf<SequenceStore>

function* readPosition(sql: Sql): Steps<number> {
  return (yield* sql.get<{ sequence: number }>('select sequence from {tenants} where tenant_id = :tenant'))?.sequence ?? 0
}

/** By the directory's index on times, which grow with sequences: everything before the first commit of that time or later is older. */
export function* findBefore(sql: Sql, time: number): Steps<number> {
  const next = yield* sql.get<{ first: number }>(
    'select first_sequence as first from {commits} where tenant_id = :tenant and committed_at >= :time order by committed_at, first_sequence limit 1', { time },
  )
  return next === undefined ? yield* readPosition(sql) : next.first - 1
}
