import { randomBytes } from 'node:crypto'
import type { Store } from '../contract/index.ts'
import { sealStore } from '../registry/sealed-store.ts'
import { locateStore } from './drivers.ts'
import { loadKeyRing } from '../config/load-key-ring.ts'
import { checkName } from '../config/names.ts'
import type { Environment } from '../config/settings.ts'

/** Options of `openStore`. */
export interface OpenStoreOptions {
  /** Defaults to `default`. */
  tenant?: string
  /** Base folder of a relative file path. Defaults to the current folder. */
  folder?: string
  /** Source of TIDEMARK_KEY and TIDEMARK_KEY_FILE. Defaults to the environment of the process. */
  environment?: Environment
  /** Called repeatedly while a store of an older version is migrated, which can take minutes. */
  onMigration?: (progress: { readonly moved: number; readonly total: number }) => void
}

/**
 * Opens a store whose sync states are sealed; see `src/registry/sealed-store.ts`. The caller closes it.
 *
 * @example
 * ```ts
 * import { openStore } from 'tidemark'
 *
 * const store = await openStore('sqlite:data/copy.db')
 * for (const { name, table } of await store.databases()) console.log(name, table)
 * await store.close()
 * ```
 */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<Store> {
  const { tenant = 'default', folder = process.cwd(), environment = process.env } = options
  checkName('tenant', tenant)
  const location = locateStore(url, folder)
  // For a server a missing key fails here, before the server is touched; beside a file the key is created after the
  // file.
  const given = location.storage.kind === 'server' ? loadKeyRing(location, environment, folder) : null
  const store = await location.open({
    tenant,
    ...(options.onMigration !== undefined && { onMigration: options.onMigration }),
  })
  try {
    return sealStore(
      store,
      given ?? loadKeyRing(location, environment, folder, (await store.wrappingKeys()).length === 0),
      randomBytes,
    )
  } catch (error) {
    await store.close()
    throw error
  }
}
