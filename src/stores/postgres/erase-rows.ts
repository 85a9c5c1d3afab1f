import { SyncError } from '../../contract/index.ts'
import type { Transaction } from './connection.ts'
import { readTables } from './table.ts'

const DEPENDENT_OBJECTS_EXIST = '2BP01'

export async function eraseRows(transaction: Transaction): Promise<number> {
  let erased = 0
  for (const { name, history } of (await readTables(transaction)).values()) {
    // A table that was dropped by hand has nothing to count.
    for (const table of [name, history]) {
      const { exists } = await transaction.one<{ exists: boolean }>(
        'select to_regclass($1) is not null as exists',
        table,
      )
      if (exists) erased += (await transaction.one<{ count: number }>(`select count(*) from ${table}`)).count
    }
    if (
      await transaction.tryRun(`drop table if exists ${name}, ${history}`, {
        lockTimeoutMs: 10_000,
        refusals: [DEPENDENT_OBJECTS_EXIST],
      })
    )
      continue
    throw new SyncError(
      'STORE_FOREIGN',
      `Other database objects depend on the table ${name}. Drop them first. Nothing was erased.`,
    )
  }
  // Read from the catalog, so that a table that is added later is included.
  const tables = await transaction.all<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'tidemark' and tablename not in ('tenants', 'audit')",
  )
  for (const { name } of tables)
    erased += await transaction.run(`delete from tidemark.${name} where tenant_id = $1`, transaction.tenant)
  return erased
}
