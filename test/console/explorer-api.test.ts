import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { confinedSelectOf } from '../../src/stores/run-select.ts'
import { sqliteDriver } from '../../src/stores/sqlite/driver.ts'
import { selectFromSqlite } from '../../src/stores/sqlite/select.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { addKey, ServerFixture } from '../server/server-fixture.ts'

const ROWS = '/console/api/databases/things/rows'
const VIEWS = ['rows', 'statistics?field=n', 'export', 'columns']

/** Statements run in this process: a process of their own takes a second to start from the sources. */
async function open(): Promise<ServerFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-explorer-'))
  const file = join(folder, 'store.db')
  const store = await openSqliteStore({ file, synchronous: 'off' })
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const stand = await ServerFixture.open(
    async () => ({ store, reopen: () => Promise.reject(new Error('not used')), close: () => store.close() }),
    {
      host: '0.0.0.0',
      select: confinedSelectOf({
        ...sqliteDriver.locate(`sqlite:${file}`, '/'),
        select: async (sql, options) => selectFromSqlite(file, sql, options),
      }),
    },
  )
  const driver = await stand.driver()
  await driver.cycle([
    upsert('a', { n: 1, name: 'Ada' }),
    upsert('b', { n: 2, name: 'Bo, "B"' }),
    upsert('c', { n: null }),
  ])
  await driver.cycle([upsert('o', { secret: 'other' }, { database: 'orders' })])
  const theirs = await SyncDriver.acquire(store.forTenant('acme'))
  await theirs.cycle([upsert('x', { n: 99, name: 'theirs' })])
  return stand
}

function query(stand: ServerFixture, key: string, sql: string, more: object = {}) {
  return stand.post('/console/api/databases/things/query', {
    key,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sql, ...more }),
  })
}

describe('views of a database', () => {
  test('invariant 10 every view and the SQL need the right to read the database, and show one tenant only', async () => {
    const stand = await open()
    const [reader, other] = [await addKey(stand.store, ['things:read']), await addKey(stand.store, ['orders:read'])]
    const stranger = await addKey(stand.store.forTenant('acme'), ['*:read'])
    for (const view of VIEWS) {
      const path = `/console/api/databases/things/${view}`
      expect((await stand.get(path, { key: null })).status, view).toBe(401)
      expect((await stand.get(path, { key: other })).status, view).toBe(403)
      const own = await stand.get(path, { key: reader })
      expect([own.status, own.text.includes('theirs')], view).toEqual([200, false])
      const foreign = await stand.get(path, { key: stranger })
      expect([foreign.status, foreign.text.includes('Ada')], view).toEqual([200, false])
      expect((await stand.get(path.replace('things', 'nothing'), { key: stand.key })).status, view).toBe(404)
    }
    expect((await query(stand, other, 'select 1')).status).toBe(403)
    expect((await query(stand, reader, 'select name from things order by n')).body.data.rows).toEqual([
      [null],
      ['Ada'],
      ['Bo, "B"'],
    ])
    expect((await query(stand, stranger, 'select name from acme__things')).body.data.rows).toEqual([['theirs']])
    expect((await query(stand, stranger, 'select name from things')).status).toBe(400)
  })

  test('invariant 10 SQL reads the tables of readable databases and their histories, and nothing else', async () => {
    const stand = await open()
    const reader = await addKey(stand.store, ['things:read'])
    const refused = [
      'select * from orders',
      'select count(*) from orders_history',
      'select * from acme__things',
      'select count(*) from tidemark_api_keys',
      'select * from things union all select secret, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 from orders',
      'select (select count(*) from orders) from things',
      'with orders2 as (select * from orders) select * from orders2',
      'select * from sqlite_schema',
      "select * from pragma_table_info('orders')",
      'select * from dbstat',
      "select load_extension('x')",
      "attach 'x' as y",
      "select 1; attach 'x' as y",
      "update things set name = 'x'",
      'with x as (select 1) delete from things',
      'pragma user_version',
      'vacuum into "/tmp/x"',
      'explain select 1',
    ]
    for (const sql of refused) {
      for (const more of sql.startsWith('explain') ? [{}] : [{}, { plan: true }]) {
        const { status, text } = await query(stand, reader, sql, more)
        expect([sql, status, text.includes('other')]).toEqual([sql, 400, false])
      }
    }
    const past = new Date(Date.UTC(2026, 0, 1) + 60_000).toISOString()
    expect((await query(stand, reader, 'select * from orders', { asOf: past })).status).toBe(400)
    expect((await query(stand, reader, 'select count(*) as n from things', { asOf: past })).body.data.rows).toEqual([
      [3],
    ])
    const allowed = [
      'select count(*) from things t join things_history h using (_key)',
      'with recursive k(x) as (select 1 union all select x + 1 from k where x < 9) select count(*) from k',
      'with t as (select * from things) select count(*) from t',
      "select value from json_each('[1]')",
      "select upper(name), row_number() over (order by n) from things where name like 'A%'",
    ]
    for (const sql of allowed) expect([sql, (await query(stand, reader, sql)).status]).toEqual([sql, 200])
    const both = await addKey(stand.store, ['*:read'])
    expect((await query(stand, both, 'select secret from orders')).body.data.rows).toEqual([['other']])
    expect(
      (await query(stand, both, 'select * from things where _key = 1', { plan: true })).body.data.rows[0][0],
    ).toMatch(/PRIMARY KEY/)
  })

  test('a statement is limited in rows, and a store without SQL says so', async () => {
    const stand = await open()
    const { data } = (
      await query(
        stand,
        stand.key,
        'with recursive k(x) as (select 1 union all select x + 1 from k where x < 5000) select x from k',
      )
    ).body
    expect([data.rows.length, data.truncated]).toEqual([1_000, true])
    const wide = await query(
      stand,
      stand.key,
      `with recursive k(x) as (select 1 union all select x + 1 from k where x < 900) select hex(zeroblob(50000)) from k`,
    )
    expect([wide.body.data.truncated, wide.text.length < 5_000_000]).toEqual([true, true])
    const plain = await ServerFixture.open(async () => {
      const store = await openSqliteStore({ file: ':memory:' })
      return { store, reopen: () => Promise.resolve(store), close: () => store.close() }
    })
    await (await plain.driver()).cycle([upsert('a', { n: 1 })])
    expect((await query(plain, plain.key, 'select 1')).body).toMatchObject({ details: { reason: 'unsupported' } })
    expect((await plain.get('/console/api/databases/things/columns')).body.data.canQuery).toBe(false)
  })

  test('a wrong view is refused with the reason, and changes nothing', async () => {
    const stand = await open()
    const at = (view: string) => stand.get(`${ROWS}?${view}`)
    const filters = (value: unknown) => `filters=${encodeURIComponent(JSON.stringify(value))}`
    for (const view of [
      'order=nothing',
      'order=field:nothing',
      'after=%00',
      'after=bm90aGluZw',
      'asOf=yesterday',
      'asOf=2999-01-01T00:00:00Z',
      'filters=[',
      filters({}),
      filters([['n']]),
      filters([['n', 'equals']]),
      filters([['n', 'like', '1']]),
      filters([['n', 'equals', '1 or 1=1']]),
      filters([['n" or 1=1 --', 'empty']]),
      filters([['_hash', 'empty']]),
      'limit=201',
      'unknown=1',
    ]) {
      const { status, body } = await at(view)
      expect([view, status, body['error']]).toEqual([view, 400, 'INVALID_REQUEST'])
    }
    expect((await at(filters([['name', 'contains', `' or 1=1 --`]]))).body['data']).toEqual([])
    expect((await at('')).body['data']).toHaveLength(3)
  })

  test('an export has the rows of the view in its order, in every format', async () => {
    const stand = await open()
    const view = `order=-field:n&filters=${encodeURIComponent('[["n","from","1"]]')}`
    const shown = (await stand.get(`${ROWS}?${view}`)).body['data'].map(({ key }: { key: string }) => key)
    expect(shown).toEqual(['b', 'a'])
    const get = async (format: string) => {
      const path = `/console/api/databases/things/export?format=${format}&${view}`
      const response = await fetch(`${stand.url}${path}`, { headers: { authorization: `Bearer ${stand.key}` } })
      return { headers: response.headers, text: await response.text() }
    }
    const csv = await get('csv')
    expect(csv.text.split('\n')).toEqual([
      '"_key","_action","_sequence","_committed_at","_upstream_at","n","name"',
      expect.stringMatching(/^"b","row",2,2026-\S+,,2,"Bo, ""B"""$/),
      expect.stringMatching(/^"a","row",1,2026-\S+,,1,"Ada"$/),
      '',
    ])
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="things.csv"')
    const lines = (await get('ndjson')).text.trim().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { record: object }).record)).toEqual([
      { n: 2, name: 'Bo, "B"' },
      { n: 1, name: 'Ada' },
    ])
    const parquet = await get('parquet')
    expect([parquet.text.slice(0, 4), parquet.text.slice(-4)]).toEqual(['PAR1', 'PAR1'])
    const bad = await stand.get('/console/api/databases/things/export?order=field:none')
    expect(bad.status).toBe(400)
  })
})
