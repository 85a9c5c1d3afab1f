import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { runSelect } from '../../src/stores/run-select.ts'
import { parseQualifiedNames } from '../../src/stores/postgres/qualified-names.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { locateStore } from '../../src/stores/drivers.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { query } from '../stores/postgres-harness.ts'
import { describeAsOf, type AsOfStore } from './as-of-cases.ts'

const server = inject('postgresUrl')

async function open(): Promise<AsOfStore> {
  const url = await createDatabase(server)
  const store = await openPostgresStore({ url, poolMax: 2 })
  onTestFinished(async () => {
    await store.close()
    await dropDatabase(server, url)
  })
  const table = (_tenant: string, database: string): string => (/^[a-z_]+$/.test(database) ? database : `"${database}"`)
  return {
    store,
    location: locateStore(url, '/'),
    table,
    qualified: (tenant, database) => `${tenant === 'default' ? 'public' : tenant}.${table(tenant, database)}`,
    run: async (sql) => void (await query(url, `${sql}; grant select on all tables in schema public to public`)),
  }
}

describe.skipIf(server === '')('as of, on PostgreSQL', () => {
  describeAsOf(open)

  test('a table may be named with its schema, also by its columns', async () => {
    const { store, location } = await open()
    const sync = await SyncDriver.acquire(store.forTenant('acme'))
    await sync.cycle([upsert('a', { name: 'Ada' })], { at: START })
    await sync.cycle([upsert('a', { name: 'Eve' })], { at: START + 1_000 })
    for (const sql of [
      'select name from acme.things',
      'select acme.things.name from acme . /* x */ "things"',
      'select things.name from ACME.Things',
      'select name from things',
      'with things as (select name from things) select * from things',
    ]) {
      expect((await runSelect(location, sql, { limit: 0, tenant: 'acme', asOf: START })).rows).toEqual([['Ada']])
    }
  })

  test('names are found only outside strings and comments', () => {
    const found = (sql: string): string[] =>
      parseQualifiedNames(sql).map(({ parts: names }) => names.map(({ name }) => name).join('|'))
    expect(
      found(
        `select A.b, "C ""d"".e".f from x -- y.z\n/* p /* q */ r */ where 'it''s s.t' = $tag$ u.v $tag$ and E'a\\'b w.w' <> $$ k $$ and 1.5e3 > g .\n h`,
      ),
    ).toEqual(['select', 'a|b', 'C "d".e|f', 'from', 'x', 'where', 'and', 'and', 'g|h'])
  })
})
