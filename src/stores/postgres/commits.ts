import type { LandingPlan } from '../kit/plan-landing.ts'
import type { Transaction } from './connection.ts'
import type { Table } from './table.ts'

/**
 * The directory of commits: which database a range of sequences is in, and what its entries have in common. A commit gives the
 * rows of each database consecutive sequences, so it has one row per database.
 */
export interface CommitFacts {
  readonly sync: number
  readonly cycle: number
  readonly page: number
  readonly committedAt: number
}

export interface LoggedRange {
  readonly table: Table
  readonly first: number
  readonly last: number
}

export function writeCommits(transaction: Transaction, ranges: readonly LoggedRange[], { sync, cycle, page, committedAt }: CommitFacts): void {
  for (const { table, first, last } of ranges) {
    transaction.send(
      `insert into tidemark.commits (tenant_id, first_sequence, last_sequence, database_id, sync_id, cycle_id, page, committed_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8)`, transaction.tenant, first, last, table.id, sync, cycle, page, committedAt,
    )
  }
}

/** The sequences that a plan gives to each database. */
export function logged({ writes }: LandingPlan, tables: ReadonlyMap<string, Table>): LoggedRange[] {
  const ranges: Array<{ table: Table; first: number; last: number }> = []
  for (const { landing, action, sequence } of writes) {
    if (action === null) continue
    const range = ranges.at(-1)
    if (range?.table.database === landing.database) range.last = sequence
    else ranges.push({ table: tables.get(landing.database)!, first: sequence, last: sequence })
  }
  return ranges
}

/** When the commit that a sequence belongs to was made; null when nothing is left of it, or there never was one. */
export async function committedAtOf(transaction: Transaction, sequence: number): Promise<number | null> {
  const found = await transaction.get<{ last: number; at: number }>(
    'select last_sequence as last, committed_at as at from tidemark.commits where tenant_id = $1 and first_sequence <= $2 order by first_sequence desc limit 1',
    transaction.tenant, sequence,
  )
  return found === undefined || found.last < sequence ? null : found.at
}
