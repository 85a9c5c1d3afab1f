import type { Store } from '../contract/index.ts'
import { checkName } from './names.ts'
import { parseStoreUrl } from './store-url.ts'

export interface OpenStoreOptions {
  /** `default` when absent. */
  tenant?: string
  /** What a relative file is relative to; the current folder when absent. */
  folder?: string
}

/** Each driver is loaded only when its kind of store is asked for. The caller closes what it opened. */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<Store> {
  const { tenant = 'default', folder = process.cwd() } = options
  checkName('tenant', tenant)
  const location = parseStoreUrl(url, folder)
  switch (location.kind) {
    case 'sqlite': {
      const { openSqliteStore } = await import('../stores/sqlite/store.ts')
      return openSqliteStore({ file: location.file, tenant })
    }
    case 'postgres': {
      const { openPostgresStore } = await import('../stores/postgres/store.ts')
      return openPostgresStore({ url: location.url, tenant })
    }
    default:
      return location satisfies never
  }
}
