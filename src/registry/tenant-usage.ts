import type { Store } from '../contract/index.ts'

/** The size of a tenant. */
export interface TenantUsage {
  readonly tenant: string
  readonly syncs: number
  readonly databases: number
  readonly rows: number
  /** The number of changes so far; the log may be compacted. */
  readonly changes: number
  readonly wrappedBy: readonly string[]
}

/** Needs no decryption, so it works for a tenant whose key is lost. */
export async function readTenantUsage(store: Store): Promise<TenantUsage> {
  const databases = await store.databases()
  return {
    tenant: store.tenant,
    syncs: (await store.syncs()).length,
    databases: databases.length,
    rows: databases.reduce((sum, { rows }) => sum + rows, 0),
    changes: await store.headSequence(),
    wrappedBy: [...new Set((await store.dataKeys()).map(({ wrappedBy }) => wrappedBy))],
  }
}
