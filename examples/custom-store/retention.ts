import type { Transaction } from './connection.ts'
import { TENANT_TABLES } from './schema.ts'
import type { TenantSession } from './sql.ts'
import { readTables, tableOf } from './table.ts'

/**
 * Deletes replaced versions and deletions of a database above one floor and up to the next. Current rows are never
 * touched.
 */
export async function pruneVersions(
  session: TenantSession,
  transaction: Transaction,
  id: number,
  { floor, next }: { floor: number; next: number },
): Promise<number> {
  const { tenant } = session
  const { name: database } = await transaction.one<{ name: string }>(
    'select name from tidemark_databases where database_id = ?',
    id,
  )
  const { name, history } = tableOf(await readTables(session, transaction, [database]), database)
  const gone = [
    ...(await transaction.all<{ sequence: number }>(
      `delete from ${history} where _until_sequence <= ? returning _sequence as sequence`,
      next,
    )),
    ...(await transaction.all<{ sequence: number }>(
      'delete from tidemark_deletions where tenant_id = ? and sequence > ? and sequence <= ? and database_id = ? returning sequence',
      tenant,
      floor,
      next,
      id,
    )),
  ]
    .map(({ sequence }) => sequence)
    .toSorted((a, b) => a - b)
  if (gone.length === 0) return 0
  const commits = await transaction.all<{ first: number; last: number }>(
    `select first_sequence as first, last_sequence as last from tidemark_commits where tenant_id = ? and database_id = ? and last_sequence >= ? and first_sequence <= ?
     order by first_sequence`,
    tenant,
    id,
    gone[0],
    gone.at(-1),
  )
  let at = 0
  for (const { first, last } of commits) {
    while ((gone[at] ?? Infinity) < first) at++
    // A commit leaves the directory with the last of its entries.
    if ((gone[at] ?? Infinity) > last) continue
    const left = `select 1 as there from ${name} where _sequence between ? and ? union all select 1 from ${history} where _sequence between ? and ?
      union all select 1 from tidemark_deletions where tenant_id = ? and sequence between ? and ? limit 1`
    if ((await transaction.get(left, first, last, first, last, tenant, first, last)) !== undefined) continue
    await transaction.run('delete from tidemark_commits where tenant_id = ? and first_sequence = ?', tenant, first)
  }
  return gone.length
}

/** The rows are deleted in the transaction; `dropTables` drops the tables once it is committed. */
export async function eraseRows(session: TenantSession, transaction: Transaction): Promise<number> {
  let erased = 0
  for (const { name, history } of (await readTables(session, transaction)).values()) {
    for (const table of [name, history]) erased += await transaction.run(`delete from ${table}`)
  }
  for (const table of TENANT_TABLES)
    erased += await transaction.run(`delete from tidemark_${table} where tenant_id = ?`, session.tenant)
  return erased
}
