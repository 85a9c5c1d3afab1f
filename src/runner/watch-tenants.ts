import type { Ports, Store } from '../contract/index.ts'

const TENANT_POLL_MS = 5_000

/**
 * Reports every tenant with data in the store, now and as they appear, until stopped. The name of an erased tenant
 * stays in the store and is skipped: running its syncs would restore the erased data.
 */
export async function watchTenants(
  store: Store,
  { clock, log }: Ports,
  onTenant: (tenant: string) => void,
  stopping: AbortSignal,
): Promise<void> {
  const reported = new Set([store.tenant])
  while (!stopping.aborted) {
    try {
      for (const tenant of await store.tenants()) {
        if (reported.has(tenant) || stopping.aborted || !(await hasTenantData(store.forTenant(tenant)))) continue
        reported.add(tenant)
        onTenant(tenant)
      }
    } catch (error) {
      log.warn('tenants could not be listed', { reason: error instanceof Error ? error.message : String(error) })
    }
    await clock.sleep(TENANT_POLL_MS, stopping).catch(() => {})
  }
}

export async function hasTenantData(store: Store): Promise<boolean> {
  return (await store.syncs()).length > 0 || (await store.apiKeys()).length > 0
}
