import type { LandingPlan } from './plan-landing.ts'
import type { Sql, Steps } from './sql/port.ts'
import { required } from '../../values/required.ts'

/**
 * The commit directory: which database a range of sequences belongs to, and the facts its entries share. A commit gives
 * the rows of each database consecutive sequences, so it has one row per database.
 */
export interface CommitFacts {
  readonly sync: number
  readonly cycle: number
  readonly page: number
  readonly committedAt: number
}

/** Consecutive sequences of one commit in one table. */
export interface LoggedRange {
  readonly table: { readonly id: number; readonly database: string }
  readonly first: number
  readonly last: number
}

/** Writes the ranges of a commit to the directory of commits. */
export function* writeCommits(
  sql: Sql,
  ranges: readonly LoggedRange[],
  { sync, cycle, page, committedAt }: CommitFacts,
): Steps<void> {
  for (const { table, first, last } of ranges) {
    yield* sql.send(
      `insert into {commits} (tenant_id, first_sequence, last_sequence, database_id, sync_id, cycle_id, page, committed_at)
       values (:tenant, :first, :last, :id, :sync, :cycle, :page, :committedAt)`,
      { first, last, id: table.id, sync, cycle, page, committedAt },
    )
  }
}

/** Lists the range of sequences that a plan assigns to each database. */
export function listLoggedRanges(
  { writes }: LandingPlan,
  tables: ReadonlyMap<string, LoggedRange['table']>,
): LoggedRange[] {
  const ranges: Array<{ table: LoggedRange['table']; first: number; last: number }> = []
  for (const { landing, action, sequence } of writes) {
    if (action === null) continue
    const range = ranges.at(-1)
    if (range?.table.database === landing.database) range.last = sequence
    else
      ranges.push({
        table: required(tables.get(landing.database), 'The table of the database'),
        first: sequence,
        last: sequence,
      })
  }
  return ranges
}
