import { describe, expect, inject, test } from 'vitest'
import { runStoreCase } from '../../../src/testing/describe-store.ts'
import { openPostgresStore } from '../../../src/stores/postgres/store.ts'
import { readFeed, remove, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'
import { openHarness, query } from '../postgres-harness.ts'
import { rowCases } from './row-cases.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('tables of PostgreSQL', () => {
  test.each(rowCases.map((rowCase) => [rowCase.name, rowCase] as const))('%s', async (_, rowCase) => {
    expect(await runStoreCase(rowCase, openHarness)).toBe(null)
  })

  test('sequences exceed 32 bits, in rows, history, deletions and the commit directory', async () => {
    const url = await createDatabase(server)
    const store = await openPostgresStore({ url })
    try {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 1 })])
      const base = 5 * 2 ** 32 - 2
      await query(url, `update tidemark.tenants set sequence = ${base}`)
      await driver.cycle([upsert('a', { n: 2 }), upsert('b', { n: 1 })])
      await driver.cycle([remove('a'), remove('b')])
      await driver.cycle([upsert('a', { n: 3 })])
      const entries = (await readFeed(store)).map(({ sequence, action, key, text }) => [sequence, action, key, text])
      expect(entries).toEqual([
        [1, 'created', 'a', '{"n":1}'],
        [base + 1, 'updated', 'a', '{"n":2}'],
        [base + 2, 'created', 'b', '{"n":1}'],
        [base + 3, 'deleted', 'a', null],
        [base + 4, 'deleted', 'b', null],
        [base + 5, 'created', 'a', '{"n":3}'],
      ])
      expect(
        (await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: Number.MAX_SAFE_INTEGER })).removedEntries,
      ).toBe(5)
      expect((await readFeed(store)).map(({ sequence }) => sequence)).toEqual([base + 5])
    } finally {
      await store.close()
      await dropDatabase(server, url)
    }
  })
})
