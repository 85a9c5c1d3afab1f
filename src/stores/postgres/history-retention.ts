import { bigintArray } from './binary-arrays.ts'
import type { Transaction } from './connection.ts'
import { readTables, tableOf, type Table } from './table.ts'

/** Writes only changes: every commit carries the setting. */
export function setHistoryDays(
  transaction: Transaction,
  historyDays: Readonly<Record<string, number | null>>,
  tables: ReadonlyMap<string, Table>,
): void {
  for (const [database, days] of Object.entries(historyDays)) {
    const table = tables.get(database)
    if (table === undefined || table.historyDays === days) continue
    transaction.send(
      'update tidemark.databases set history_days = $3 where tenant_id = $1 and database_id = $2',
      transaction.tenant,
      table.id,
      days,
    )
  }
}

/** Deletes replaced versions and deletions above one floor and up to the next. Current rows are never touched. */
export async function pruneVersions(
  transaction: Transaction,
  id: number,
  floor: number,
  next: number,
): Promise<number> {
  const { name } = await transaction.one<{ name: string }>(
    'select name from tidemark.databases where tenant_id = $1 and database_id = $2',
    transaction.tenant,
    id,
  )
  const table = tableOf(await readTables(transaction, [name]), name)
  const [versions, deletions] = await Promise.all([
    transaction.all<{ sequence: number }>(
      `delete from ${table.history} where _until_sequence <= $1 returning _sequence as sequence`,
      next,
    ),
    transaction.all<{ sequence: number }>(
      'delete from tidemark.deletions where tenant_id = $1 and sequence > $2 and sequence <= $3 and database_id = $4 returning sequence',
      transaction.tenant,
      floor,
      next,
      table.id,
    ),
  ])
  const gone = [...versions, ...deletions].map(({ sequence }) => sequence)
  if (gone.length > 0) await pruneCommits(transaction, table, gone)
  return gone.length
}

/** Deletes the commits whose last entry was deleted. */
function pruneCommits(transaction: Transaction, { live, history }: Table, gone: readonly number[]): Promise<number> {
  return transaction.run(
    `with emptied as materialized (
       select distinct c.first_sequence as first, c.last_sequence as last from unnest($2::bigint[]) as gone (sequence) cross join lateral (
         select first_sequence, last_sequence from tidemark.commits where tenant_id = $1 and first_sequence <= gone.sequence order by first_sequence desc limit 1
       ) c
     )
     delete from tidemark.commits c using emptied e where c.tenant_id = $1 and c.first_sequence = e.first
       and coalesce((select _sequence from ${live} l where _sequence >= e.first order by _sequence limit 1) > e.last, true)
       and coalesce((select _sequence from ${history} where _sequence >= e.first order by _sequence limit 1) > e.last, true)
       and coalesce((select sequence from tidemark.deletions where tenant_id = $1 and sequence >= e.first order by sequence limit 1) > e.last, true)`,
    transaction.tenant,
    bigintArray(gone),
  )
}
