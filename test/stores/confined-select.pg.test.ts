import { describe, expect, inject, onTestFinished, test } from 'vitest'
import type { SelectResult } from '../../src/contract/index.ts'
import { createDatabase } from '../setup/postgres-server.ts'
import { postgresDriver } from '../../src/stores/postgres/driver.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { confinedSelectOf } from '../../src/stores/run-select.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { query } from './postgres-harness.ts'
import { required } from '../../src/values/required.ts'

describe.skipIf(inject('postgresUrl') === '')('a confined statement on PostgreSQL', () => {
  async function open() {
    const url = await createDatabase(inject('postgresUrl'))
    const store = await openPostgresStore({ url, poolMax: 2 })
    onTestFinished(() => store.close())
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1, name: 'Ada' }), upsert('b', { n: 2, name: 'Bo' })])
    await driver.cycle([upsert('o', { secret: 'other' }, { database: 'orders' })])
    await (await SyncDriver.acquire(store.forTenant('acme'))).cycle([upsert('x', { name: 'theirs' })])
    const select = required(confinedSelectOf(postgresDriver.locate(url, '/')), 'confinedSelectOf')
    const run = (sql: string, more: object = {}): Promise<SelectResult> =>
      select(sql, { tenant: 'default', limit: 100, deadlineMs: 20_000, only: ['things'], ...more })
    return { url, run }
  }

  test('invariant 10 it reads the given tables and their histories, and nothing else', async () => {
    const { url, run } = await open()
    await query(url, 'create view public.spy as select secret from public.orders')
    await query(
      url,
      'create function public.lower(int) returns text language sql as $$ select secret from public.orders $$',
    )
    for (const sql of [
      'select * from orders',
      'select count(*) from public.orders_history',
      'select * from acme.things',
      'select * from tidemark.api_keys',
      'select * from spy',
      'with o as (select * from orders) select * from o',
      'select (select secret from orders limit 1) from things',
      'select * from things where exists (select from orders)',
      'select * from pg_stats',
      'select * from information_schema.columns',
      "select query_to_xml('select * from orders', true, false, '')",
      "select pg_catalog.query_to_xml('select * from orders', true, false, '')",
      "select query_to_xml -- x\n ('select * from orders', true, false, '')",
      'select/* */pg_sleep/* */(0)',
      'select U&"pg\\005fsleep"(0)',
      'select "pg_sleep"(0)',
      'select public.lower(1)',
      "select set_config('tidemark.tenant', 'acme', true)",
      "select pg_read_file('/etc/passwd')",
      "select * from xpath_table('a', 'b', 'c', 'd', 'e') as t(a int)",
      'select 1; select 2',
      'explain select 1',
      'explain analyze delete from things',
      'with x as (delete from things returning 1) select * from x',
      "select lo_import('/etc/passwd')",
    ])
      await expect(run(sql), sql).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    const allowed: ReadonlyArray<readonly [sql: string, rows: unknown[][]]> = [
      ['select name from things order by n', [['Ada'], ['Bo']]],
      ['select count(*) from public.things_history', [[0]]],
      [
        'select upper(name), row_number() over (order by n desc) from things',
        [
          ['BO', 1],
          ['ADA', 2],
        ],
      ],
      ["select coalesce(jsonb_build_object('n', sum(n))->>'n', '-') from things -- note", [['3']]],
    ]
    for (const [sql, rows] of allowed) expect((await run(sql)).rows, sql).toEqual(rows)
    expect((await run('select * from things where _key = $$a$$', { plan: true })).rows.join(' ')).toMatch(/things/)
    const at = Date.now()
    expect((await run('select count(*) from things', { asOf: at })).rows).toEqual([[2]])
    await expect(run('select count(*) from orders', { asOf: at })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  test('it stops at its deadline, and at the bytes of a result', async () => {
    const { run } = await open()
    await expect(
      run('select count(*) from generate_series(1, 1000000000) a cross join generate_series(1, 1000) b', {
        deadlineMs: 200,
      }),
    ).rejects.toMatchObject({ code: 'QUERY_TOO_LONG' })
    const wide = await run(
      "select translate((generate_series(1, 20000)::numeric(200, 100) / 3)::text, '0', 'o') || name from things",
      { limit: 40_000 },
    )
    expect([wide.truncated, wide.rows.length < 40_000]).toEqual([true, true])
  })
})
