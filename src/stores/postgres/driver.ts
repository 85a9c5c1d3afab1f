import type { StoreDriver, StoreLocation } from '../../contract/index.ts'
import { maskUrl } from '../../redaction/mask-url.ts'
import { quoteLiteral } from '../kit/column-names.ts'
import { createStoreUrlInvalidError } from '../kit/store-url-invalid-error.ts'

/** `postgres://user@host/database`. */
export const postgresDriver: StoreDriver = {
  schemes: ['postgres', 'postgresql'],
  locate(url) {
    if (!/^[a-z]+:\/\//i.test(url) || !URL.canParse(url))
      throw createStoreUrlInvalidError(url, 'is not a complete PostgreSQL URL')
    return locationOf(url)
  },
}

function locationOf(url: string): StoreLocation {
  // The driver is loaded only when it is needed.
  const select: StoreLocation['select'] = async (sql, options) =>
    (await import('./select.ts')).selectFromPostgres(url, sql, options)
  return {
    product: 'PostgreSQL',
    storage: { kind: 'server' },
    describe: () => maskUrl(url),
    open: async (options) => (await import('./store.ts')).openPostgresStore({ url, ...options }),
    async findTenant(tenant) {
      const { rows } = await select("select 1 where to_regprocedure('tidemark.schema_version()') is not null", {
        limit: 1,
        tenant,
      })
      return rows.length > 0 ? tenant : null
    },
    select,
    confinesSelect: true,
    syntax: {
      tableReference: (table) => table,
      // This form is independent of the server's backslash setting.
      textLiteral: (value) =>
        value.includes('\\') ? `E${quoteLiteral(value.replaceAll('\\', '\\\\'))}` : quoteLiteral(value),
      contains: (column, text) => `strpos(cast(${column} as text), ${text}) > 0`,
      deadlineCondition: null,
    },
  }
}
