import { expect, test } from 'vitest'
import { runSelect } from '../../src/stores/run-select.ts'
import type { Commit, Store, StoreLocation } from '../../src/contract/index.ts'
import { remove, START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'

export interface AsOfStore {
  readonly store: Store
  readonly location: StoreLocation
  /** Runs statements of the user's own. */
  run(sql: string): Promise<void>
  /** The name of a tenant's table, as its owner writes it in SQL. */
  table(tenant: string, database: string): string
  /** The same by a qualified name. */
  qualified(tenant: string, database: string): string
}

const SECOND = 1_000

/** Commits at seconds 10, 20, 30 and 40: created, changed, deleted, returned. */
async function land(store: Store, deletes: Commit['deletes'] = {}): Promise<void> {
  const sync = await SyncDriver.acquire(store)
  const at = async (seconds: number, landings: Parameters<SyncDriver['cycle']>[0]): Promise<void> => {
    await sync.cycle(landings, { at: START + seconds * SECOND, deletes })
  }
  await at(10, [upsert('a', { name: 'Ada', age: 1 }), upsert('b', { name: "Bob 'quoted'", age: 2 })])
  await at(20, [upsert('a', { name: 'Ada', age: 30 }), upsert('c', { name: 'Cyd', age: 3, city: 'Bern' })])
  await at(30, [remove('a'), upsert('b', { name: 'Bob', age: 2 })])
  await at(40, [upsert('a', { name: 'Ada again', age: 31 })])
}

/** `open` gives a store that nothing has landed in. */
export function describeAsOf(open: () => Promise<AsOfStore>): void {
  const names = async ({ location }: AsOfStore, sql: string, seconds: number, tenant = 'default'): Promise<unknown> =>
    (await runSelect(location, sql, { limit: 0, tenant, asOf: START + seconds * SECOND })).rows.map((row) =>
      row.length === 1 ? row[0] : row,
    )

  test('tables appear as they were at each commit, and between two', async () => {
    const opened = await open()
    await land(opened.store)
    const things = opened.table('default', 'things')
    const rows = (seconds: number): Promise<unknown> =>
      names(opened, `select _key, name, age from ${things} order by _key desc`, seconds)
    expect(await rows(10)).toEqual([
      ['b', "Bob 'quoted'", 2],
      ['a', 'Ada', 1],
    ])
    expect(await rows(19.999)).toEqual([
      ['b', "Bob 'quoted'", 2],
      ['a', 'Ada', 1],
    ])
    expect(await rows(20)).toEqual([
      ['c', 'Cyd', 3],
      ['b', "Bob 'quoted'", 2],
      ['a', 'Ada', 30],
    ])
    expect(await rows(30)).toEqual([
      ['c', 'Cyd', 3],
      ['b', 'Bob', 2],
    ])
    expect(await rows(45)).toEqual([
      ['c', 'Cyd', 3],
      ['b', 'Bob', 2],
      ['a', 'Ada again', 31],
    ])
    expect(await names(opened, `select count(*) from ${things}`, 30)).toEqual([2])
    expect(
      await names(opened, `select _key, _until_at is not null from ${things}_history order by _until_sequence`, 20),
    ).toMatchObject([['a', expect.anything()]])
  })

  test('with soft deletes, a row is shown until it was deleted and from its return on', async () => {
    const opened = await open()
    await land(opened.store, { things: 'soft' })
    const things = opened.table('default', 'things')
    const rows = (seconds: number): Promise<unknown> =>
      names(opened, `select _key, age from ${things} where _deleted_at is null order by _key`, seconds)
    const all = (seconds: number): Promise<unknown> =>
      names(opened, `select _key from ${things} order by _key`, seconds)
    expect([await rows(20), await all(20)]).toEqual([
      [
        ['a', 30],
        ['b', 2],
        ['c', 3],
      ],
      ['a', 'b', 'c'],
    ])
    expect([await rows(30), await all(30)]).toEqual([
      [
        ['b', 2],
        ['c', 3],
      ],
      ['b', 'c'],
    ])
    expect([await rows(45), await all(45)]).toEqual([
      [
        ['a', 31],
        ['b', 2],
        ['c', 3],
      ],
      ['a', 'b', 'c'],
    ])
    await (await SyncDriver.acquire(opened.store, { sync: 'other' })).cycle([remove('b')], { at: START + 50 * SECOND })
    expect([await all(49), await all(50)]).toEqual([
      ['a', 'b', 'c'],
      ['a', 'c'],
    ])
    expect(
      (await runSelect(opened.location, `select _key from ${things} order by _key`, { limit: 0, tenant: 'default' }))
        .rows,
    ).toEqual([['a'], ['b'], ['c']])
  })

  test('the statement keeps its structure: WITH clauses, strings, comments, set operations and aliases', async () => {
    const opened = await open()
    await land(opened.store)
    const things = opened.table('default', 'things')
    expect(
      await names(opened, `with bobs as (select name from ${things} where age = 2) select * from bobs -- the end`, 20),
    ).toEqual(["Bob 'quoted'"])
    expect(
      await names(
        opened,
        `with recursive n (i) as (select 1 union all select i + 1 from n where i < 2) select i, t.name from n join ${things} t on t.age = i order by i`,
        10,
      ),
    ).toEqual([
      [1, 'Ada'],
      [2, "Bob 'quoted'"],
    ])
    expect(
      await names(
        opened,
        `select 'from ${things} -- ''x''' as "a ""b""" /* ${things} */ union all select name from ${things} where age = 3`,
        20,
      ),
    ).toEqual([`from ${things} -- 'x'`, 'Cyd'])
    expect(
      await names(opened, `select a.name, b.name from ${things} a, ${things} b where a._key < b._key;`, 10),
    ).toEqual([['Ada', "Bob 'quoted'"]])
    const { columns } = await runSelect(opened.location, `select name, name from ${things}`, {
      limit: 1,
      tenant: 'default',
      asOf: START + 20 * SECOND,
    })
    expect(columns).toEqual(['name', 'name'])
    await expect(names(opened, `delete from ${things}`, 20)).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    await expect(names(opened, `select 1); delete from ${things}; select (2`, 20)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
    await expect(names(opened, `explain select * from ${things}`, 20)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
  })

  test("a name with quotes, and columns of the user's own, which have no past", async () => {
    const opened = await open()
    const sync = await SyncDriver.acquire(opened.store)
    const database = 'Odd-Name'
    await sync.cycle([upsert('a', { 'a "b"': 1 }, { database })], { at: START + 10 * SECOND })
    await sync.cycle([upsert('a', { 'a "b"': 2 }, { database })], { at: START + 20 * SECOND })
    await opened.run(`alter table ${opened.table('default', database)} add column mine integer default 7`)
    expect(await names(opened, `select "a ""b""" from ${opened.table('default', database)}`, 10)).toEqual([1])
    await expect(names(opened, `select mine from ${opened.table('default', database)}`, 10)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
  })

  test('no history at a time before the first commit, or before what compaction kept: the message says from when on', async () => {
    const opened = await open()
    await land(opened.store)
    const sql = `select name from ${opened.table('default', 'things')} order by _key`
    await expect(names(opened, sql, 9)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
      message: expect.stringContaining('it begins at 2026-01-01T00:00:10.000Z.'),
    })
    while ((await opened.store.compact({ before: START + 25 * SECOND, scanMax: 1 })).hasMore);
    await expect(names(opened, sql, 19)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
      message: expect.stringContaining('it begins at 2026-01-01T00:00:20.000Z.'),
    })
    expect(await names(opened, sql, 20)).toEqual(['Ada', "Bob 'quoted'", 'Cyd'])
  })

  test('a database that keeps its history longer than the log is shown further back than the others', async () => {
    const opened = await open()
    const sync = await SyncDriver.acquire(opened.store)
    const historyDays = { things: 10 }
    const DAY = 86_400
    for (const day of [1, 2, 3, 4]) {
      await sync.cycle(
        ['things', 'others'].map((database) => upsert('a', { day }, { database })),
        { at: START + day * DAY * SECOND, historyDays },
      )
    }
    while (
      (await opened.store.compact({ before: START + 4 * DAY * SECOND, scanMax: 1, at: START + 12.5 * DAY * SECOND }))
        .hasMore
    );
    expect(await names(opened, `select day from ${opened.table('default', 'things')}`, 2 * DAY)).toEqual([2])
    await expect(names(opened, `select day from ${opened.table('default', 'things')}`, 1 * DAY)).rejects.toMatchObject({
      message: expect.stringContaining('it begins at 2026-01-03T00:00:00.000Z.'),
    })
    expect(await names(opened, `select day from ${opened.table('default', 'others')}`, 3 * DAY)).toEqual([3])
    await expect(names(opened, `select day from ${opened.table('default', 'others')}`, 2 * DAY)).rejects.toMatchObject({
      message: expect.stringContaining('it begins at 2026-01-04T00:00:00.000Z.'),
    })
    await expect(
      names(
        opened,
        `select * from ${opened.table('default', 'things')} natural join ${opened.table('default', 'others')}`,
        2 * DAY,
      ),
    ).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  test('invariant 10: a table of another tenant is refused, also by its qualified name', async () => {
    const opened = await open()
    await land(opened.store)
    await land(opened.store.forTenant('acme'))
    expect(await names(opened, `select count(*) from ${opened.table('acme', 'things')}`, 10, 'acme')).toEqual([2])
    for (const name of [opened.qualified('default', 'things'), `${opened.qualified('default', 'things')}_history`]) {
      await expect(names(opened, `select * from ${name}`, 10, 'acme')).rejects.toMatchObject({
        code: 'ARGUMENT_INVALID',
        message: expect.stringContaining('reads current data of'),
      })
      await expect(names(opened, `select count(*) from ${name}`, 10, 'acme')).rejects.toMatchObject({
        code: 'ARGUMENT_INVALID',
      })
    }
  })

  test("a view of the user's would show the present, so it is refused", async () => {
    const opened = await open()
    await land(opened.store)
    await opened.run(`create view adults as select * from ${opened.table('default', 'things')} where age > 18`)
    await expect(names(opened, 'select * from adults', 10)).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
      message: expect.stringContaining('reads current data of'),
    })
    await expect(
      names(opened, `select * from ${opened.table('default', 'things')} join adults using (_key)`, 10),
    ).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })
}
