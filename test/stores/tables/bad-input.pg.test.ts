import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { CommitShape, JsonObject } from '../../../src/contract/index.ts'
import { openPostgresStore } from '../../../src/stores/postgres/store.ts'
import { SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'
import { query } from '../postgres-harness.ts'
import { STORE_FIXTURES, type StoreFixture } from './store-fixture.ts'

const WIDE: JsonObject = Object.fromEntries(
  Array.from({ length: 1_600 }, (_, n) => [`member_${n}`, n % 3 === 0 ? `text ${n}` : n]),
)

describe.each(Object.keys(STORE_FIXTURES))('records that do not fit a table, on the %s store', (kind) => {
  let place: StoreFixture
  let driver: SyncDriver
  beforeEach(async () => {
    place = await STORE_FIXTURES[kind]!()
    driver = await SyncDriver.acquire(place.store)
  })
  afterEach(() => place.close())

  async function expectRecords(records: Record<string, JsonObject>): Promise<void> {
    for (const [key, record] of Object.entries(records))
      expect(JSON.parse((await place.store.row('things', key))!.text)).toEqual(record)
  }

  test('a field named like a system column gets a numbered column', async () => {
    const record = {
      _key: 'mine',
      _extra: { a: 1 },
      _sequence: 7,
      _deleted_at: 'x',
      _until_at: 'y',
      _HASH: 'z',
      name: 'n',
    }
    await driver.cycle([upsert('a', record)])
    await driver.cycle([upsert('a', { ...record, name: 'changed' })])
    await expectRecords({ a: { ...record, name: 'changed' } })
    expect(await place.sql('select _key, _key_2, _sequence_2, "_HASH_2", name from things')).toEqual([
      { _key: 'a', _key_2: 'mine', _sequence_2: kind === 'postgres' ? '7' : 7, _HASH_2: 'z', name: 'changed' },
    ])
  })

  test.each([
    ['inferred', []],
    ['declared', [shapeOf(Object.keys(WIDE))]],
  ])('of 1,600 fields a thousand have columns, and the rest is in `_extra`: types %s', async (_, shapes) => {
    await driver.cycle([upsert('a', WIDE), upsert('b', { member_0: 'short' })], { shapes })
    await driver.cycle([upsert('a', { ...WIDE, member_1599: 'changed' })])
    await expectRecords({ a: { ...WIDE, member_1599: 'changed' }, b: { member_0: 'short' } })
    expect(Object.keys(await place.columns())).toHaveLength(1_000)
  })

  test('fields whose names differ only in case have separate columns', async () => {
    const record = { name: 1, Name: 2, NAME: 3 }
    await driver.cycle([upsert('a', record)], { shapes: [shapeOf(['name', 'Name'])] })
    await expectRecords({ a: record })
    expect(Object.keys(await place.columns())).toEqual(['name', 'Name_2', 'NAME_3'])
  })
})

describe('a PostgreSQL server that refuses', () => {
  let url: string
  const server = inject('postgresUrl')
  beforeEach(async () => {
    url = await createDatabase(server)
  })
  afterEach(() => dropDatabase(server, url))

  async function asOwner<T>(use: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return await use(client)
    } finally {
      await client.end()
    }
  }

  test('a role that may only read: the sync fails with STORE_READONLY, names the privilege, and the rows stay', async () => {
    const store = await openPostgresStore({ url })
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    await driver.release()
    await store.close()
    const role = `reader_${new URL(url).pathname.slice(1)}`
    await query(
      url,
      `create role ${role} login; grant usage on schema tidemark, public to ${role}; grant select on all tables in schema tidemark, public to ${role}`,
    )
    const reader = new URL(url)
    reader.username = role
    try {
      const readOnly = await openPostgresStore({ url: reader.href })
      await expect(SyncDriver.acquire(readOnly)).rejects.toMatchObject({
        code: 'STORE_READONLY',
        message: expect.stringContaining('permission denied'),
      })
      expect((await readOnly.rows({ database: 'things', limit: 9 })).map(({ key }) => key)).toEqual(['a'])
      await readOnly.close()
    } finally {
      await query(url, `drop owned by ${role}; drop role ${role}`)
    }
  })

  test('a long reader: declared columns wait in `_extra`, and get their declared type once the table is free', async () => {
    const store = await openPostgresStore({ url })
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    await asOwner(async (client) => {
      await client.query('begin; select * from things')
      await driver.cycle([upsert('b', { n: 2, price: '1.50' })], {
        shapes: [{ database: 'things', columns: [{ name: 'price', type: 'decimal', from: 'schema' }], key: [] }],
      })
      expect(JSON.parse((await store.row('things', 'b'))!.text)).toEqual({ n: 2, price: '1.50' })
      expect(
        (
          await client.query(
            "select column_name from information_schema.columns where table_name = 'things' and column_name = 'price'",
          )
        ).rows,
      ).toEqual([])
      await client.query('commit')
      await driver.cycle([upsert('c', { n: 3, price: '2.50' })])
      expect(
        (await client.query('select _key, price, pg_typeof(price)::text as type from things order by _key')).rows,
      ).toEqual([
        { _key: 'a', price: null, type: 'numeric' },
        { _key: 'b', price: null, type: 'numeric' },
        { _key: 'c', price: '2.50', type: 'numeric' },
      ])
    })
    expect(
      (await store.rows({ database: 'things', limit: 9 })).map(({ text }) => JSON.parse(text) as JsonObject),
    ).toEqual([{ n: 1 }, { n: 2, price: '1.50' }, { n: 3, price: '2.50' }])
    await store.close()
  })
})

function shapeOf(names: readonly string[]): CommitShape {
  return {
    database: 'things',
    columns: names.map((name) => ({ name, type: 'json', from: 'schema', isOptional: true })),
    key: [],
  }
}
