import { setTimeout as sleep } from 'node:timers/promises'
import mysql from 'mysql2/promise'
import { expect, test } from 'vitest'
import { sql } from '../../../src/sources/sql/source.ts'
import { contextOf, describeSqlSource } from './cases.ts'
import { SOURCES } from './servers.ts'
import { DatabaseFixture } from './database-fixture.ts'

describeSqlSource(
  SOURCES.find(({ name }) => name === 'mariadb')!,
  (source) => {
    test('R28 values come as they are: integers, decimals, microseconds, bytes, JSON', async () => {
      await source()
        .exec(`create table vals (id binary(3) primary key, big bigint unsigned, price decimal(40, 10), at timestamp(6) null, plain datetime(6), day date, t time, b blob, j json, e enum('a','b'),
      yes tinyint(1), bits bit(12), f double, txt text character set utf8mb4, nothing int, y year);
      insert into vals values (x'00ff10', 18446744073709551615, 123456789012345678901234567890.0123456789, '2026-01-31 12:00:00.123456', '2026-01-31 12:00:00.000001', '2026-01-31', '11:12:13', x'00ff', '{"n": 9007199254740993}', 'b',
        1, b'100000000001', 0.1, 'ünï 🌊', null, 2026)`)
      const { changes } = await sql({ url: source().url }).listing('vals').execute(undefined, contextOf())
      expect(changes).toEqual([
        {
          type: 'upsert',
          key: 'AP8Q',
          record: {
            id: 'AP8Q',
            big: 18446744073709551615n,
            price: '123456789012345678901234567890.0123456789',
            at: '2026-01-31T12:00:00.123456Z',
            plain: '2026-01-31T12:00:00.000001',
            day: '2026-01-31',
            t: '11:12:13',
            b: 'AP8=',
            j: { n: 9007199254740993n },
            e: 'b',
            yes: 1,
            bits: 2049,
            f: 0.1,
            txt: 'ünï 🌊',
            nothing: null,
            y: 2026,
          },
        },
      ])
    })

    test('keys of bytes, of large integers and of text are paged in the order of the database', async () => {
      await source()
        .exec(`create table bytes_ (id binary(2) primary key); insert into bytes_ values (x'0001'), (x'ff00'), (x'7f00'), (x'00ff');
      create table bigs (id bigint unsigned primary key); insert into bigs values (9007199254740992), (9007199254740993), (18446744073709551615), (9);
      create table words (word varchar(20) collate utf8mb4_general_ci primary key); insert into words values ('b'), ('A'), ('c'), ('Ä1'), ('10'), ('9')`)
      for (const [table, count] of [
        ['bytes_', 4],
        ['bigs', 4],
        ['words', 6],
      ] as const) {
        const stage = (await DatabaseFixture.open()).sync(
          'rows',
          'replace',
          sql({ url: source().url }).listing(table, { pageSize: 1 }).execute,
        )
        expect((await stage.complete('rows')).counts, table).toMatchObject({ created: count, unchanged: 0 })
        await stage.close()
      }
    })

    test('R37 a transaction that is still open holds the horizon back', async () => {
      await source().exec(
        'create table slow (id int primary key, updated_at timestamp(6) not null default current_timestamp(6))',
      )
      const writer = await mysql.createConnection({ uri: source().url.replace('mariadb:', 'mysql:') })
      const stage = (await DatabaseFixture.open()).sync(
        'slow',
        'incremental',
        sql({ url: source().url }).table('slow', { cursor: 'updated_at', lagMs: 0 }).delta,
      )
      await source().exec('insert into slow values (1, utc_timestamp(6) - interval 1 minute)')
      await stage.complete('slow')
      await writer.query('begin')
      await writer.query('insert into slow (id) values (2)')
      await source().exec('insert into slow (id) values (3)')
      // The server refreshes its list of transactions only after a tenth of a second without a query for it.
      do await sleep(150)
      while ((await source().query('select 1 from information_schema.innodb_trx')).length === 0)
      await sleep(150)
      await stage.complete('slow')
      expect(Object.keys(await stage.rows('slow'))).toEqual(['1'])
      await writer.query('commit')
      await sleep(150)
      await stage.complete('slow')
      expect(Object.keys(await stage.rows('slow'))).toEqual(['1', '2', '3'])
      writer.destroy()
      await stage.close()
    })

    test('a privilege and a password have codes of their own', async () => {
      await source().exec(
        "create table private (id int primary key); create user guest@'%' identified by 'hunter2-canary'; grant select on shop.vals to guest@'%'",
      )
      const as = (user: string, password: string): string =>
        Object.assign(new URL(source().url.replace('mariadb:', 'http:')), { username: user, password }).href.replace(
          'http:',
          'mariadb:',
        )
      const ask = (url: string, table: string): Promise<unknown> =>
        sql({ url }).listing(table).execute(undefined, contextOf())
      // A table that it may not see does not exist for it; the server reports the same.
      await expect(ask(as('guest', 'hunter2-canary'), 'private')).rejects.toMatchObject({
        code: 'SOURCE_NOT_FOUND',
        message: expect.stringContaining('the account cannot see it'),
      })
      const refused = await ask(as('guest', 'wrong-canary'), 'vals').then(
        () => null,
        (error: Error) => error,
      )
      expect(refused).toMatchObject({ code: 'AUTH_REJECTED' })
      expect(refused!.message).not.toContain('canary')
      // Without the privilege to see transactions the lag alone counts.
      await expect(
        sql({ url: as('guest', 'hunter2-canary') })
          .table('vals', { cursor: 'at', lagMs: 0 })
          .delta(undefined, contextOf()),
      ).resolves.toMatchObject({ hasMore: false, changes: [{ key: 'AP8Q' }] })
    })
  },
)
