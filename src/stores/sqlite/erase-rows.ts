import type { TenantSession } from './connection.ts'
import { readTables } from './table.ts'

export function eraseRows(session: TenantSession): number {
  const { connection, tenantId } = session
  let entries = 0
  for (const open of readTables(session).values()) {
    const { name, history } = open()
    for (const table of [name, history]) {
      entries += connection.one<{ count: number }>(`select count(*) as count from ${table}`).count
      connection.exec(`drop table ${table}`)
    }
  }
  // Read from the schema, so that a table that is added later is included.
  const tables = connection.all<{ name: string }>(
    `select m.name from sqlite_schema m, pragma_table_info(m.name) c where m.type = 'table' and c.name = 'tenant_id'
     and m.name like 'tidemark\\_%' escape '\\' and m.name not in ('tidemark_tenants', 'tidemark_audit')`,
  )
  for (const { name } of tables) entries += connection.run(`delete from ${name} where tenant_id = ?`, tenantId).changes
  return entries
}
