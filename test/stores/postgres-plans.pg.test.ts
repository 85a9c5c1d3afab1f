import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { counts, DATABASE, remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { query } from './postgres-harness.ts'

const server = inject('postgresUrl')
const ROWS = 400

/** A new table has no statistics until autovacuum analyses it, and the planner assumes that it is empty. */
describe.skipIf(server === '')('postgres store, a table without statistics', () => {
  let url: string
  let store: Store

  beforeEach(async () => {
    url = await createDatabase(server)
    store = await openPostgresStore({ url })
  })
  afterEach(async () => {
    await store.close()
    await dropDatabase(server, url)
  })

  test('invariant 14: pages that are new, unchanged or changed probe the table by key and never scan it', async () => {
    const page = (n: number) => Array.from({ length: ROWS }, (_, at) => upsert(`k${at}`, { n: at % 10 === 0 ? n : 0 }))
    const first = await SyncDriver.acquire(store)
    await first.begin()
    await query(url, `alter table public.${DATABASE} set (autovacuum_enabled = off)`)
    await first.complete(page(1))
    await first.release()
    const before = await scans()
    store = await openPostgresStore({ url })
    const driver = await SyncDriver.acquire(store)
    // The second page of a kind is looked up in the way that suited the first.
    const outcomes: unknown[] = []
    for (const n of [1, 1, 2, 2]) outcomes.push((await driver.cycle(page(n))).counts)
    const [unchanged, changed] = [counts({ unchanged: ROWS }), counts({ unchanged: ROWS * 0.9, updated: ROWS * 0.1 })]
    expect(outcomes).toEqual([unchanged, unchanged, changed, unchanged])
    expect((await scans()) - before).toBe(0)
  })

  test('invariant 14: pages with soft deletes, returning rows and hard deletes probe the table by key and never scan it', async () => {
    const keys = Array.from({ length: ROWS }, (_, at) => `k${at}`)
    const page = (of: readonly string[]) => of.map((key) => upsert(key, { n: 0 }))
    const gone = keys.filter((_, at) => at % 10 === 0)
    const soft = { deletes: { [DATABASE]: 'soft' } } as const
    const first = await SyncDriver.acquire(store)
    await first.begin()
    await query(url, `alter table public.${DATABASE} set (autovacuum_enabled = off)`)
    await first.complete(page(keys), soft)
    await first.release()
    const before = await scans()
    store = await openPostgresStore({ url })
    const driver = await SyncDriver.acquire(store)
    const outcomes: unknown[] = []
    for (const landings of [gone.map((key) => remove(key)), page(keys), page(keys), gone.map((key) => remove(key))])
      outcomes.push((await driver.cycle(landings, soft)).counts)
    expect(outcomes).toEqual([
      counts({ deleted: gone.length }),
      counts({ created: gone.length, unchanged: ROWS - gone.length }),
      counts({ unchanged: ROWS }),
      counts({ deleted: gone.length }),
    ])
    await driver.cycle([], { deletes: { [DATABASE]: 'hard' } })
    while ((await store.compact({ before: 0, scanMax: 15 })).hasMore);
    expect((await scans()) - before).toBe(0)
    expect(await query(url, `select from public.${DATABASE}`)).toHaveLength(ROWS - gone.length)
  })

  /** Closes the store: a backend reports its statistics when it ends, at the latest. */
  async function scans(): Promise<number> {
    await store.close()
    const name = new URL(url).pathname.slice(1)
    await expect
      .poll(
        async () =>
          (await query(url, `select from pg_stat_activity where datname = '${name}' and application_name = 'tidemark'`))
            .length,
      )
      .toBe(0)
    const [found] = await query<{ scans: string }>(
      url,
      `select seq_scan as scans from pg_stat_user_tables where schemaname = 'public' and relname = '${DATABASE}'`,
    )
    return Number(found!.scans)
  }
})
