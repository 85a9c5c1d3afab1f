import { randomBytes } from 'node:crypto'
import type { Store } from '../contract/index.ts'
import { sealStore } from '../registry/sealed-store.ts'
import { locateStore } from './drivers.ts'
import { loadKeyRing } from '../config/load-key-ring.ts'
import { checkName } from '../config/names.ts'
import type { Environment } from '../config/settings.ts'

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
  const location = locateStore(url, folder)
  // A key can only be missing for a server, which then stays untouched; beside a file it is made once the file is there.
  const given = location.storage.kind === 'server' ? loadKeyRing(location, environment, folder) : null
  const store = await location.open({ tenant, ...(options.onMigration !== undefined && { onMigration: options.onMigration }) })
  try {
    return sealStore(store, given ?? loadKeyRing(location, environment, folder, (await store.wrappingKeys()).length === 0), randomBytes)
  } catch (error) {
    await store.close()
    throw error
  }
}
