import type { Ports, Store } from '../contract/index.ts'

const TENANT_POLL_MS = 5_000

/**
 * Tells of every tenant that the store keeps something for, now and whenever one comes, until stopped. The name of an erased
 * one stays in the store, and is not told: to run its syncs would bring back what was erased.
 */
export async function watchTenants(store: Store, { clock, log }: Ports, onTenant: (tenant: string) => void, stopping: AbortSignal): Promise<void> {
  const told = new Set([store.tenant])
  while (!stopping.aborted) {
    try {
      for (const tenant of await store.tenants()) {
        if (told.has(tenant) || stopping.aborted || !(await hasTenantData(store.forTenant(tenant)))) continue
        told.add(tenant)
        onTenant(tenant)
      }
    } catch (error) {
      log.warn('the tenants could not be looked at', { reason: error instanceof Error ? error.message : String(error) })
    }
    await clock.sleep(TENANT_POLL_MS, stopping).catch(() => {})
  }
}

/** Whether there is a tenant behind the name. */
export async function hasTenantData(store: Store): Promise<boolean> {
  return (await store.syncs()).length > 0 || (await store.apiKeys()).length > 0
}
