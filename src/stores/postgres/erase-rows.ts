import { SyncError } from '../../contract/index.ts'
import type { Transaction } from './connection.ts'
import { readTables } from './table.ts'

const DEPENDENT_OBJECTS_EXIST = '2BP01'

export async function eraseRows(transaction: Transaction): Promise<number> {
  let erased = 0
  for (const { name, history } of (await readTables(transaction)).values()) {
    // A table that was dropped by hand has nothing to count.
    for (const table of [name, history]) {
      const there = await transaction.get<{ is: boolean }>('select to_regclass($1) is not null as is', table)
      if (there!.is) erased += (await transaction.get<{ count: number }>(`select count(*) from ${table}`))!.count
    }
    if (await transaction.tryRun(`drop table if exists ${name}, ${history}`, { lockTimeoutMs: 10_000, refusals: [DEPENDENT_OBJECTS_EXIST] })) continue
    throw new SyncError('STORE_FOREIGN', `Others have built upon the table ${name}: drop what they built first. Nothing was erased.`)
  }
  // Read from the catalog, so that a table that is added later is included.
  const tables = await transaction.all<{ name: string }>("select tablename as name from pg_tables where schemaname = 'tidemark' and tablename not in ('tenants', 'audit')")
  for (const { name } of tables) erased += await transaction.run(`delete from tidemark.${name} where tenant_id = $1`, transaction.tenant)
  return erased
}
