import { Worker } from '../../src/index.ts'
import type { ErrorCode, Store } from '../../src/contract/index.ts'
import { listDeclaredSyncs, type DeclaredSync } from '../../src/runner/declared-sync.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'

const HOUR_MS = 3_600_000
const WORKERS = ['billing', 'crm', 'support']

export interface ManySyncs {
  readonly store: Store
  readonly syncs: readonly DeclaredSync[]
  /** A tenant with one failing sync, whose message only the tenant may see, and a sync that no worker declares. */
  addTenant(tenant: string): Promise<void>
}

/** The failures of some syncs, by their number modulo 20. */
const FAILURES: Readonly<Record<number, { code: ErrorCode; message: string }>> = {
  3: { code: 'AUTH_REJECTED', message: 'https://billing.example/v1/customers answered 401: the token has ended.' },
  7: { code: 'AUTH_REJECTED', message: 'https://billing.example/v1/invoices answered 401: the token has ended.' },
  11: { code: 'SOURCE_UNAVAILABLE', message: 'https://crm.example/contacts answered 503.' },
}

/** Numbers modulo 20 of syncs whose last complete cycle is days ago. */
const LATE = 15

/** Declared syncs of three workers without a runner: most are healthy, some fail for two causes, and some are late. */
export async function openManySyncs(count: number, now: number): Promise<ManySyncs> {
  const store = await openSqliteStore({ file: ':memory:' })
  const workers = WORKERS.map((name) => new Worker({ name }))
  const syncs: DeclaredSync[] = []
  for (const [at, worker] of workers.entries()) {
    for (let n = at; n < count; n += WORKERS.length)
      worker.sync(nameOf(n), {
        database: worker.database(`db-${nameOf(n)}`),
        mode: 'incremental',
        schedule: '1h',
        execute: async () => ({ changes: [], hasMore: false, nextState: {} }),
      })
    syncs.push(...listDeclaredSyncs(worker))
  }
  for (let n = 0; n < count; n++) {
    const ref = { worker: WORKERS[n % WORKERS.length]!, sync: nameOf(n) }
    const startedAt = now - (n % 20 === LATE ? 50 * HOUR_MS : (n % 50) * 60_000)
    const first = await SyncDriver.acquire(store, ref)
    await first.begin({ at: startedAt })
    await first.complete([upsert(`k${n}`, { n })], { at: startedAt + 1_500, state: `{"n":${n}}` })
    await first.release({ endedAt: startedAt + 1_500, cycle: (await store.cycles(ref, { limit: 1 }))[0]!.cycle })
    const error = FAILURES[n % 20]
    if (error === undefined) continue
    const second = await SyncDriver.acquire(store, ref)
    await second.begin({ at: now - 60_000 })
    await second.release({ endedAt: now - 50_000, stopReason: 'error', error })
  }
  return { store, syncs, addTenant: (tenant) => addTenant(store.forTenant(tenant), now) }
}

async function addTenant(store: Store, now: number): Promise<void> {
  for (const ref of [
    { worker: WORKERS[0]!, sync: nameOf(0) },
    { worker: 'secretly', sync: 'undeclared' },
  ]) {
    const driver = await SyncDriver.acquire(store, ref)
    await driver.begin({ at: now - 60_000 })
    const error = { code: 'AUTH_REJECTED', message: 'https://secret-of-acme.example answered 401.' } as const
    await driver.release({ endedAt: now - 50_000, stopReason: 'error', error })
  }
}

export function nameOf(n: number): string {
  return `sync-${String(n).padStart(4, '0')}`
}
