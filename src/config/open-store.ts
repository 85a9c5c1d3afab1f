import { randomBytes } from 'node:crypto'
import type { Store } from '../contract/index.ts'
import { sealStore } from '../registry/sealed-store.ts'
import { loadKeyRing } from './load-key-ring.ts'
import { checkName } from './names.ts'
import type { Environment } from './settings.ts'
import { parseStoreUrl, type StoreLocation } from './store-url.ts'

export interface OpenStoreOptions {
  /** `default` when absent. */
  tenant?: string
  /** What a relative file is relative to; the current folder when absent. */
  folder?: string
  /** Where TIDEMARK_KEY and TIDEMARK_KEY_FILE are looked up; the process's own environment when absent. */
  environment?: Environment
  /** Called now and then while a store of an older version is migrated, which can take minutes. */
  onMigration?: (progress: { readonly moved: number; readonly total: number }) => void
}

/** The states of its syncs are sealed; see registry/sealed-store.ts. The caller closes what it opened. */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<Store> {
  const { tenant = 'default', folder = process.cwd(), environment = process.env } = options
  checkName('tenant', tenant)
  const location = parseStoreUrl(url, folder)
  // A key can only be missing for a PostgreSQL, which then stays untouched; beside a file it is made once the file is there.
  const given = location.kind === 'postgres' ? loadKeyRing(location, environment, folder) : null
  const store = await openLocation(location, tenant, options)
  try {
    return sealStore(store, given ?? loadKeyRing(location, environment, folder, (await store.wrappingKeys()).length === 0), randomBytes)
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Each driver is loaded only when its kind of store is asked for. */
async function openLocation(location: StoreLocation, tenant: string, { onMigration }: OpenStoreOptions): Promise<Store> {
  const options = { tenant, ...(onMigration !== undefined && { onMigration }) }
  switch (location.kind) {
    case 'sqlite': {
      const { openSqliteStore } = await import('../stores/sqlite/store.ts')
      return openSqliteStore({ file: location.file, ...options })
    }
    case 'postgres': {
      const { openPostgresStore } = await import('../stores/postgres/store.ts')
      return openPostgresStore({ url: location.url, ...options })
    }
    default:
      return location satisfies never
  }
}
