import type { TenantDirectory } from '../../../contract/index.ts'
import { defineRead, type PlansOf } from '../sql/port.ts'

export const TENANT_PLANS = {
  tenants: defineRead(function* (sql) {
    yield* sql.kernel.widenRowSecurity({ tenants: true })
    const found = yield* sql.all<{ name: string }>(
      `select ${sql.dialect.tenantName('t')} as name from {tenants} t order by 1`,
    )
    return found.map(({ name }) => name)
  }),

  databaseNames: defineRead(function* (sql) {
    const found = yield* sql.all<{ name: string }>(
      'select name from {databases} where tenant_id = :tenant order by name',
    )
    return found.map(({ name }) => name)
  }),
} satisfies PlansOf<TenantDirectory>
