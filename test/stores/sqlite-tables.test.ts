import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'

describe('invariant 14: users may extend a table of the SQLite store', () => {
  let folder: string
  let file: string
  let store: Store
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tidemark-tables-'))
    file = join(folder, 'store.db')
    store = await openSqliteStore({ file })
  })
  afterEach(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })

  function sql(text: string): Array<Record<string, unknown>> {
    const db = new DatabaseSync(file)
    try {
      db.exec('pragma foreign_keys = on')
      if (!/^\s*(select|explain)/i.test(text)) {
        db.exec(text)
        return []
      }
      return db
        .prepare(text)
        .all()
        .map((row) => ({ ...(row as Record<string, unknown>) }))
    } finally {
      db.close()
    }
  }

  test('an index, a trigger, a column and a foreign key survive updates, deletions and new fields, and the index is used', async () => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([
      upsert('a', { email: 'a@x', n: 1 }),
      upsert('b', { email: 'b@x', n: 1 }),
      upsert('c', { email: 'c@x', n: 1 }),
    ])
    sql(`create index things_by_email on things (email);
      alter table things add column note text default 'none';
      create table seen (key text);
      create trigger things_seen after update on things begin insert into seen values (new._key); end;
      create table orders (id integer primary key, thing text references things (_key) on delete cascade);
      insert into orders (thing) values ('a'), ('b'), ('c');
      update things set note = 'mine' where _key = 'a'; delete from seen`)
    await driver.cycle([
      upsert('a', { email: 'new@x', n: 2, added: true }),
      remove('c'),
      upsert('d', { email: 'd@x', n: 1 }),
    ])
    expect(sql('select _key, email, n, added, note from things order by _key')).toEqual([
      { _key: 'a', email: 'new@x', n: 2, added: 1, note: 'mine' },
      { _key: 'b', email: 'b@x', n: 1, added: null, note: 'none' },
      { _key: 'd', email: 'd@x', n: 1, added: null, note: 'none' },
    ])
    expect(sql('select key from seen')).toEqual([{ key: 'a' }])
    expect(sql('select thing from orders order by 1').map(({ thing }) => thing)).toContain('a')
    expect(
      sql("explain query plan select * from things where email = 'b@x'")
        .map(({ detail }) => detail)
        .join(),
    ).toContain('things_by_email')
  })

  test('with soft deletes, the user’s columns of a row and references to it stay while the record is deleted', async () => {
    const driver = await SyncDriver.acquire(store)
    const deletes = { things: 'soft' } as const
    await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 })], { deletes })
    sql(`alter table things add column note text; update things set note = 'mine' where _key = 'a';
      create table orders (id integer primary key, thing text references things (_key)); insert into orders (thing) values ('a')`)
    await driver.cycle([remove('a'), remove('b')], { deletes })
    expect(
      sql('select t._key, note, _deleted_at is not null as gone from orders join things t on t._key = thing'),
    ).toEqual([{ _key: 'a', note: 'mine', gone: 1 }])
    await driver.cycle([upsert('a', { n: 2 })], { deletes })
    expect(sql('select _key, n, note, _deleted_at from things where _deleted_at is null')).toEqual([
      { _key: 'a', n: 2, note: 'mine', _deleted_at: null },
    ])
  })

  test('a column _deleted_at of the user is left alone: soft deletes are refused, and nothing changes', async () => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    sql("alter table things add column _Deleted_At text default 'mine'")
    await driver.begin()
    const commit = await driver.draft(driver.lastPage(), [remove('a')], { deletes: { things: 'soft' } })
    await expect(store.commit(commit)).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringContaining('_deleted_at'),
    })
    expect(sql('select _key, _deleted_at from things')).toEqual([{ _key: 'a', _Deleted_At: 'mine' }])
    expect((await store.schema('things'))!.ownColumns).toEqual(['_Deleted_At'])
    expect((await driver.complete([remove('a')], { deletes: { things: 'hard' } })).counts.deleted).toBe(1)
  })

  test('a user’s column with the name of a new field stays the user’s', async () => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    sql("alter table things add column note text; update things set note = 'mine'")
    await driver.cycle([upsert('a', { n: 2, note: 'theirs' })])
    expect(sql('select note, note_2 from things')).toEqual([{ note: 'mine', note_2: 'theirs' }])
    expect(JSON.parse((await store.row('things', 'a'))!.text)).toEqual({ n: 2, note: 'theirs' })
  })

  test.each(['create table things (id)', 'create table things_history (id)', 'create view things as select 1'])(
    'a foreign object is left alone: %s',
    async (statement) => {
      sql(statement)
      const driver = await SyncDriver.acquire(store)
      await expect(driver.begin({ databases: ['things'] })).rejects.toMatchObject({ code: 'STORE_FOREIGN' })
      await expect(driver.begin({ databases: ['others'] })).resolves.toBeDefined()
      expect(await store.databaseNames()).toEqual(['others'])
    },
  )
})
