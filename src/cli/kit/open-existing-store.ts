import type { Store } from '../../contract/index.ts'
import { locateStore } from '../../stores/drivers.ts'
import { openTargetStore, type Target } from './target.ts'

/**
 * The store as it is, for commands that only look: null when nothing was ever kept for this tenant. Opening one makes
 * the file, its tables and the tenant, and a look must leave none of them behind.
 */
export function openExistingStore(target: Target): Promise<Store | null> {
  return openIfTenantExists(target, { orAny: false })
}

/** The same for commands about all tenants: bound to whichever is there. */
export function openExistingStoreOfAnyTenant(target: Target): Promise<Store | null> {
  return openIfTenantExists(target, { orAny: true })
}

async function openIfTenantExists(target: Target, options: { readonly orAny: boolean }): Promise<Store | null> {
  const { storeUrl, folder } = target.settings
  const tenant = await locateStore(storeUrl, folder).findTenant(target.tenant, options)
  return tenant === null ? null : openTargetStore({ ...target, tenant })
}
