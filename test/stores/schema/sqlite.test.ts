import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../../src/contract/index.ts'
import { Connection } from '../../../src/stores/sqlite/connection.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { DATABASE, readLiveRows, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { change, describeSchemaChanges, type SchemaHarness } from './cases.ts'

async function open(): Promise<SchemaHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-schema-'))
  const options = { file: join(folder, 'store.db'), synchronous: 'off' } as const
  const opened: Store[] = []
  const reopen = async (): Promise<Store> => {
    const store = await openSqliteStore(options)
    opened.push(store)
    return store
  }
  return {
    store: await reopen(),
    reopen,
    table: DATABASE,
    async close() {
      for (const store of opened) await store.close()
      await rm(folder, { recursive: true })
    },
    async sql<Found extends object>(text: string) {
      const db = new DatabaseSync(options.file)
      try {
        return db
          .prepare(text)
          .all()
          .map((row) => ({ ...(row as Found) }))
      } finally {
        db.close()
      }
    },
    async killNext(body) {
      const { write } = Connection.prototype
      Connection.prototype.write = function (inner) {
        return write.call(this, () => {
          inner()
          throw new Error('killed')
        }) as never
      }
      try {
        return await body()
      } finally {
        Connection.prototype.write = write
      }
    },
  }
}

describeSchemaChanges('SQLite', open)

describe('the columns of a SQLite store', () => {
  test('invariant 14: indexes, triggers, views, foreign keys and columns of the user survive a change of their column', async () => {
    const harness = await open()
    const { store, sql } = harness
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { age: 1, name: 'Ann' }), upsert('b', { age: 2, name: 'Bob' })])
    for (const text of [
      'create index by_age on things (age desc)',
      'create unique index by_both on things (name, age)',
      'create index by_sum on things (age + 1) where age > 0',
      'create view ages as select _key, age from things',
      'create table seen (key text, age)',
      'create trigger noting after insert on things begin insert into seen values (new._key, new.age); end',
      "alter table things add column mine text default 'm'",
      'create table orders (customer text references things (_key))',
      "insert into orders values ('a')",
    ])
      await sql(text)
    const objects =
      "select type, name, sql from sqlite_schema where name in ('by_age', 'by_both', 'by_sum', 'ages', 'noting') order by name"
    const before = await sql(objects)
    await change(store, [{ member: 'age', type: 'text' }])
    expect(await sql(objects)).toEqual(before)
    await driver.cycle([upsert('c', { age: 'old', name: 'Cid' })])
    expect(await sql('select key, age from seen')).toEqual([{ key: 'c', age: 'old' }])
    expect(await sql('select mine, age from things order by _key')).toEqual([
      { mine: 'm', age: '1' },
      { mine: 'm', age: '2' },
      { mine: 'm', age: 'old' },
    ])
    expect(await sql("explain query plan select * from things where age = 'old'")).toMatchObject([
      { detail: expect.stringContaining('by_age') },
    ])
    expect(await readLiveRows(store)).toEqual([
      ['a', { age: 1, name: 'Ann' }],
      ['b', { age: 2, name: 'Bob' }],
      ['c', { age: 'old', name: 'Cid' }],
    ])
    // A rename is applied to dependents.
    await change(store, [{ member: 'age', column: 'years' }])
    expect(await sql("explain query plan select * from things where years = 'old'")).toMatchObject([
      { detail: expect.stringContaining('by_age') },
    ])
    // Objects that would be dropped with the column are named, and stay unless the request allows the loss.
    await expect(change(store, [{ member: 'age', drop: true }])).rejects.toMatchObject({
      code: 'SCHEMA_CHANGE_INVALID',
      message: expect.stringContaining('index by_age'),
    })
    await change(store, [{ member: 'age', drop: true }], true)
    expect((await sql<{ name: string }>(objects)).map(({ name }) => name)).toEqual([])
    expect((await readLiveRows(store))[2]).toEqual(['c', { age: 'old', name: 'Cid' }])
    await harness.close()
  })
})
