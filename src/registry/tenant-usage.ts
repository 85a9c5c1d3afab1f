import type { Store } from '../contract/index.ts'

/** How much of a tenant there is. */
export interface TenantUsage {
  readonly tenant: string
  readonly syncs: number
  readonly databases: number
  readonly rows: number
  /** How many changes it has seen; the log may have forgotten some. */
  readonly changes: number
  readonly wrappedBy: readonly string[]
}

/** Nothing of it has to be opened: also of a tenant whose key is lost. */
export async function readTenantUsage(store: Store): Promise<TenantUsage> {
  const databases = await store.databases()
  return {
    tenant: store.tenant, syncs: (await store.syncs()).length, databases: databases.length, rows: databases.reduce((sum, { rows }) => sum + rows, 0), changes: await store.headSequence(),
    wrappedBy: [...new Set((await store.dataKeys()).map(({ wrappedBy }) => wrappedBy))],
  }
}
