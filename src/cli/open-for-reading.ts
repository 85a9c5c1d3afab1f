import { existsSync } from 'node:fs'
import { parseStoreUrl } from '../config/store-url.ts'
import type { Store } from '../contract/index.ts'
import { selectFrom } from './select-from.ts'
import { openTargetStore, type Target } from './target.ts'

/**
 * The store as it is, for commands that only look: null when nothing was ever kept for this tenant. Opening one makes
 * the file, its tables and the tenant, and a look must leave none of them behind.
 */
export async function openForReading(target: Target): Promise<Store | null> {
  const location = parseStoreUrl(target.settings.storeUrl, target.settings.folder)
  if (location.kind === 'sqlite' && !existsSync(location.file)) return null
  const ask = async (sql: string): Promise<boolean> => {
    const { rows } = await selectFrom(location, sql, { limit: 1, tenant: target.tenant })
    return rows.length > 0
  }
  if (location.kind === 'postgres') return (await ask("select 1 where to_regprocedure('tidemark.schema_version()') is not null")) ? openTargetStore(target) : null
  if (!(await ask("select 1 from sqlite_schema where name = 'tidemark_tenants'"))) return null
  // A tenant's name has no quotes: it was checked with the settings.
  return (await ask(`select 1 from tidemark_tenants where name = '${target.tenant}'`)) ? openTargetStore(target) : null
}

/** The same for commands about all tenants: bound to whichever is there. */
export async function openForEveryTenant(target: Target): Promise<Store | null> {
  const location = parseStoreUrl(target.settings.storeUrl, target.settings.folder)
  if (location.kind === 'postgres') return openForReading(target)
  if (!existsSync(location.file)) return null
  const first = async (sql: string): Promise<unknown> => (await selectFrom(location, sql, { limit: 1, tenant: target.tenant })).rows[0]?.[0]
  if ((await first("select name from sqlite_schema where name = 'tidemark_tenants'")) === undefined) return null
  const tenant = await first('select name from tidemark_tenants order by tenant_id')
  return tenant === undefined ? null : openTargetStore({ ...target, tenant: tenant as string })
}
