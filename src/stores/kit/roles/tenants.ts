import type { TenantDirectory } from '../../../contract/index.ts'
import { read, type PlansOf } from '../sql/port.ts'

export const TENANTS = {
  tenants: read(function* (sql) {
    yield* sql.kernel.lookBeyond({ tenants: true })
    const found = yield* sql.all<{ name: string }>(`select ${sql.dialect.tenantName('t')} as name from {tenants} t order by 1`)
    return found.map(({ name }) => name)
  }),

  databaseNames: read(function* (sql) {
    const found = yield* sql.all<{ name: string }>('select name from {databases} where tenant_id = :tenant order by name')
    return found.map(({ name }) => name)
  }),
} satisfies PlansOf<TenantDirectory>
