import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { sql } from '../../../src/sources/sql/source.ts'
import { required } from '../../../src/values/required.ts'
import { describeSource } from '../../../src/testing/describe-source.ts'
import { contextOf, describeSqlSource } from './cases.ts'
import { SOURCES } from './servers.ts'
import { DatabaseFixture } from './database-fixture.ts'

describeSqlSource(
  SOURCES.find(({ name }) => name === 'sqlite')!,
  (source) => {
    test('R28 values come as they are: large integers, reals, bytes, null', async () => {
      await source().exec(
        "create table vals (id integer primary key, big integer, r real, b blob, t text, n text); insert into vals values (1, 9223372036854775807, 0.1, x'00ff10', 'ünï', null)",
      )
      const { changes } = await sql({ url: source().url }).listing('vals').execute(undefined, contextOf())
      expect(changes).toEqual([
        {
          type: 'upsert',
          key: '1',
          record: { id: 1, big: 9223372036854775807n, r: 0.1, b: 'AP8Q', t: 'ünï', n: null },
        },
      ])
    })

    test('stamps in every usual form are followed: with T and Z, as days, as seconds since 1970', async () => {
      const forms: [string, string][] = [
        ["strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-N seconds')", 'iso'],
        ["datetime('now', '-N seconds')", 'plain'],
        ["date('now', '-N seconds')", 'day'],
        ["unixepoch('now', '-N seconds')", 'epoch'],
      ]
      for (const [expression, name] of forms) {
        await source().exec(
          `create table f_${name} (id integer primary key, changed); insert into f_${name} values (1, ${expression.replace('N', '300000')}), (2, ${expression.replace('N', '200000')})`,
        )
        const stage = (await DatabaseFixture.open()).sync(
          'f',
          'incremental',
          sql({ url: source().url }).table(`f_${name}`, { cursor: 'changed', lagMs: 0 }).delta,
        )
        expect((await stage.complete('f')).counts, name).toMatchObject({ created: 2 })
        await source().exec(`insert into f_${name} values (3, ${expression.replace('N', '100000')})`)
        expect((await stage.complete('f')).counts, name).toMatchObject({ created: 1 })
        await stage.close()
      }
    })

    test('a range is read by whole days if the column is a date', async () => {
      await source().exec(
        "create table dated (id integer primary key, day text); insert into dated values (1, '2026-01-01'), (2, '2026-01-02'), (3, '2026-01-03')",
      )
      const { range } = sql({ url: source().url }).table('dated', { cursor: 'day' }).backfill
      const keys = async (from: string, to: string): Promise<unknown[]> =>
        (await required(range, 'range')({ from, to })(undefined, contextOf())).changes.map(({ key }) => key)
      const midnight = (day: number): string => `2026-01-0${day}T00:00:00.000000Z`
      expect(await keys(midnight(1), midnight(3))).toEqual(['1', '2'])
      expect(await keys(midnight(2), '2026-01-03T08:00:00.000000Z')).toEqual(['2', '3'])
    })

    test('a page of large rows ends early, and the next goes on behind it', async () => {
      await source().exec('create table large (id integer primary key, body blob)')
      for (let id = 1; id <= 13; id++) await source().exec(`insert into large values (${id}, zeroblob(3000000))`)
      const { execute } = sql({ url: source().url }).listing('large')
      const first = await execute(undefined, contextOf())
      expect(first.hasMore).toBe(true)
      expect(first.changes.length).toBeLessThan(13)
      const second = await execute(first.nextState, contextOf())
      expect([...first.changes, ...second.changes].map(({ key }) => Number(key))).toEqual([
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
      ])
      expect(second.hasMore).toBe(false)
    })

    test('a file that is not there is said to be missing, and none is made', async () => {
      await expect(
        sql({ url: 'sqlite:/nowhere/at/all.db' }).listing('t').execute(undefined, contextOf()),
      ).rejects.toMatchObject({ code: 'SOURCE_NOT_FOUND' })
      await expect(
        sql({ url: 'ftp://example.com' }).listing('t').execute(undefined, contextOf()),
      ).rejects.toMatchObject({ code: 'SYNC_INVALID' })
    })
  },
)

const SPLITS = { 'in one part': {}, 'in ranges of keys': { partitions: 3, concurrency: 2 } }

for (const [name, split] of Object.entries(SPLITS))
  describeSource(
    `sql: sqlite, ${name}`,
    async () => {
      const source = await SOURCES.find(({ name }) => name === 'sqlite')!.open(inject('postgresUrl'))
      await source.exec('create table items (id integer primary key, name text, updated_at timestamp not null)')
      const now = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
      let writes = 0
      return {
        source: sql({ url: source.url }).table('items', { cursor: 'updated_at', lagMs: 20, pageSize: 6, ...split }),
        async create(count) {
          const ids = Array.from({ length: count }, () => ++writes)
          await source.exec(`insert into items values ${ids.map((id) => `(${id}, 'write ${id}', ${now})`).join(', ')}`)
          return ids.map(String)
        },
        change: (keys) =>
          source.exec(
            `update items set name = 'write ${++writes}', updated_at = ${now} where id in (${keys.join(', ')})`,
          ),
        remove: (keys) => source.exec(`delete from items where id in (${keys.join(', ')})`),
        rows: async () =>
          Object.fromEntries((await source.query('select * from items')).map((row) => [String(row['id']), row])),
        settle: () => sleep(40),
        deltaReportsDeletes: false,
        ...('partitions' in split && {
          partitions: { timeOf: (record) => (record as { updated_at: string }).updated_at },
        }),
        close: () => source.close(),
      }
    },
    { runner: { describe, test } },
  )
