import { bigintArray } from './arrays.ts'
import type { Transaction } from './connection.ts'
import { readTables, type Table } from './table.ts'

/** A database whose history is kept longer than the log, or was until now. */
export interface KeptHistory {
  readonly id: number
  readonly name: string
  /** Null once it follows the log again. */
  readonly days: number | null
  /** What ended up to here is gone. */
  readonly floor: number
}

/** Without a change nothing is written: every commit says it. */
export function setHistoryDays(transaction: Transaction, historyDays: Readonly<Record<string, number | null>>, tables: ReadonlyMap<string, Table>): void {
  for (const [database, days] of Object.entries(historyDays)) {
    const table = tables.get(database)
    if (table === undefined || table.historyDays === days) continue
    transaction.send('update tidemark.databases set history_days = $3 where tenant_id = $1 and database_id = $2', transaction.tenant, table.id, days)
  }
}

/** Up to now its history reached as far as the log. */
export async function readKept(transaction: Transaction): Promise<KeptHistory[]> {
  transaction.send(
    `update tidemark.databases d set history_floor = t.floor, history_floor_at = t.floor_committed_at from tidemark.tenants t
     where d.tenant_id = $1 and t.tenant_id = $1 and d.history_days is not null and d.history_floor is null`, transaction.tenant,
  )
  return transaction.all<KeptHistory>(
    'select database_id as id, name, history_days as days, history_floor as floor from tidemark.databases where tenant_id = $1 and history_floor is not null',
    transaction.tenant,
  )
}

interface Bounds {
  readonly floor: number
  readonly scanMax: number
  /** The last sequence that is so many days old; null when the time is not known. */
  before(days: number): Promise<number | null>
}

/** One step for each of them: never beyond the log's floor, since the feed above it has to be whole. */
export async function forgetHistory(
  transaction: Transaction, kept: readonly KeptHistory[], { floor, scanMax, before }: Bounds,
): Promise<{ removed: number; more: boolean }> {
  let [removed, more] = [0, false]
  for (const { id, name, days, floor: from } of kept) {
    const until = days === null ? floor : Math.min(floor, (await before(days)) ?? from)
    const next = Math.min(until, from + scanMax)
    if (next > from) removed += await forgetVersions(transaction, (await readTables(transaction, [name])).get(name)!, from, next)
    more ||= next < until
    const isLog = days === null && next >= floor
    await transaction.run(
      `update tidemark.databases set history_floor = $3::bigint, history_floor_at = case when $3::bigint is null then null else greatest(history_floor_at,
         (select committed_at from tidemark.commits where tenant_id = $1 and first_sequence <= $3::bigint order by first_sequence desc limit 1)) end
       where tenant_id = $1 and database_id = $2 and history_floor is distinct from $3::bigint`, transaction.tenant, id, isLog ? null : Math.max(from, next),
    )
  }
  return { removed, more }
}

/** Versions that were replaced, and deletions, above one floor and up to the next. Current rows are never touched. */
export async function forgetVersions(transaction: Transaction, table: Table, floor: number, next: number): Promise<number> {
  const [versions, deletions] = await Promise.all([
    transaction.all<{ sequence: number }>(`delete from ${table.history} where _until_sequence <= $1 returning _sequence as sequence`, next),
    transaction.all<{ sequence: number }>(
      'delete from tidemark.deletions where tenant_id = $1 and sequence > $2 and sequence <= $3 and database_id = $4 returning sequence', transaction.tenant, floor, next, table.id,
    ),
  ])
  const gone = [...versions, ...deletions].map(({ sequence }) => sequence)
  if (gone.length > 0) await forgetCommits(transaction, table, gone)
  return gone.length
}

/** A commit goes with the last of its entries. */
function forgetCommits(transaction: Transaction, { live, history }: Table, gone: readonly number[]): Promise<number> {
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
    transaction.tenant, bigintArray(gone),
  )
}
