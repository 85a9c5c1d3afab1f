import type { Store } from '../../contract/index.ts'
import { locateStore } from '../../stores/drivers.ts'
import { openTargetStore, type Target } from './target.ts'

/**
 * Opens the store for a read-only command; null if this tenant does not exist. A plain open would create the file,
 * its tables and the tenant, and a read-only command must not.
 */
export function openExistingStore(target: Target): Promise<Store | null> {
  return openIfTenantExists(target, { orAny: false })
}

/** The same for commands about all tenants: bound to any existing tenant. */
export function openExistingStoreOfAnyTenant(target: Target): Promise<Store | null> {
  return openIfTenantExists(target, { orAny: true })
}

async function openIfTenantExists(target: Target, options: { readonly orAny: boolean }): Promise<Store | null> {
  const { storeUrl, folder } = target.settings
  const tenant = await locateStore(storeUrl, folder).findTenant(target.tenant, options)
  return tenant === null ? null : openTargetStore({ ...target, tenant })
}
