import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { Secret } from '../../../src/redaction/secret.ts'
import { sql } from '../../../src/sources/sql/source.ts'
import { contextOf, describeSqlSource } from './cases.ts'
import { SOURCES } from './servers.ts'
import { DatabaseFixture } from './database-fixture.ts'

describeSqlSource(
  SOURCES.find(({ name }) => name === 'postgres')!,
  (source) => {
    test("R28 values come as they are: integers, decimals, microseconds, bytes, JSON, arrays, types of one's own", async () => {
      await source().exec(`create type mood as enum ('so "so"', 'fine'); create domain cents as numeric(20, 2);
      create table vals (id uuid primary key, big int8, small int2, price numeric, cost cents, f float8, nan float8, at timestamptz, plain timestamp, day date, b bytea,
        j jsonb, tags text[], grid int8[][], moods mood[], m mood, costs cents[], yes bool, span interval, nothing text, "quo""ted" text, forever timestamptz);
      insert into vals values ('7d444840-9dc0-11d1-b245-5ffdce74fad2', 9223372036854775807, -3, 123456789012345678901234567890.123456789, 10.10, 0.1, 'NaN', '2026-01-31 13:00:00.123456+01',
        '2026-01-31 12:00:00.000001', '2026-01-31', '\\x00ff10', '{"n": 9007199254740993, "s": "ü"}', '{"a,b","c\\"d",NULL,"NULL",""}', '{{1,2},{3,9223372036854775807}}', '{"so \\"so\\"",fine}', 'fine',
        '{1.10,2.20}', true, '1 day 2 hours', null, 'x', 'infinity')`)
      const { changes } = await sql({ url: source().url }).listing('vals').execute(undefined, contextOf())
      expect(changes[0]).toEqual({
        type: 'upsert',
        key: '7d444840-9dc0-11d1-b245-5ffdce74fad2',
        record: {
          id: '7d444840-9dc0-11d1-b245-5ffdce74fad2',
          big: 9223372036854775807n,
          small: -3,
          price: '123456789012345678901234567890.123456789',
          cost: '10.10',
          f: 0.1,
          nan: 'NaN',
          at: '2026-01-31T12:00:00.123456Z',
          plain: '2026-01-31T12:00:00.000001',
          day: '2026-01-31',
          b: 'AP8Q',
          j: { n: 9007199254740993n, s: 'ü' },
          tags: ['a,b', 'c"d', null, 'NULL', ''],
          grid: [
            [1, 2],
            [3, 9223372036854775807n],
          ],
          moods: ['so "so"', 'fine'],
          m: 'fine',
          costs: ['1.10', '2.20'],
          yes: true,
          span: 'P1DT2H',
          nothing: null,
          'quo"ted': 'x',
          forever: 'infinity',
        },
      })
    })

    test('R19 R20 R39 asked as strictly as the document does: in comes one position, out the next and a count', async () => {
      await source().exec(`create table customers (id int primary key, updated_at timestamptz not null);
      insert into customers values (1, '2025-09-30 23:59:59+00'), (2, '2025-10-01 00:00:00+00'), (3, '2025-10-02 08:00:00+00')`)
      const { delta } = sql({ url: source().url }).table('public.customers', { cursor: 'updated_at', strict: true })
      const input = Object.freeze({ cursorField: 'updated_at', cursorValue: '2025-09-30T23:59:59Z' })
      const page = await delta(input, contextOf())
      const output = {
        stream_id: 'jdbc.public.customers',
        cursor_field: page.nextState!.cursorField,
        cursor_value: page.nextState!.cursorValue,
        records_emitted: page.changes.length,
      }
      expect(output).toEqual({
        stream_id: 'jdbc.public.customers',
        cursor_field: 'updated_at',
        cursor_value: '2025-10-02T08:00:00Z',
        records_emitted: 2,
      })
      expect(page.changes.map((change) => change.type === 'upsert' && change.cursor)).toEqual([
        '2025-10-01T00:00:00Z',
        '2025-10-02T08:00:00Z',
      ])
    })

    test('R37 a transaction that is still open holds the horizon back: what it wrote long ago is not missed', async () => {
      await source().exec('create table slow (id int primary key, updated_at timestamptz not null default now())')
      const writer = new pg.Client({ connectionString: source().url })
      await writer.connect()
      const stage = (await DatabaseFixture.open())
        .sync('slow', 'incremental', sql({ url: source().url }).table('slow', { cursor: 'updated_at', lagMs: 0 }).delta)
        .sync('ids', 'incremental', sql({ url: source().url }).table('slow', { cursor: 'id', lagMs: 0 }).delta)
      await source().exec('insert into slow values (1)')
      for (const sync of ['slow', 'ids']) await stage.complete(sync)
      await writer.query('begin; insert into slow values (2)')
      await source().exec('insert into slow values (3)')
      for (const sync of ['slow', 'ids', 'slow', 'ids']) await stage.complete(sync)
      // Not yet by its time; by its number it may be shown, but the position must not pass what is missing below.
      expect(Object.keys(await stage.rows('slow'))).toEqual(['1'])
      expect(Object.keys(await stage.rows('ids'))).toEqual(['1', '3'])
      await writer.query('commit')
      for (const sync of ['slow', 'ids']) await stage.complete(sync)
      expect(Object.keys(await stage.rows('slow'))).toEqual(['1', '2', '3'])
      expect(Object.keys(await stage.rows('ids'))).toEqual(['1', '2', '3'])
      await writer.end()
      await stage.close()
    })

    test("a column without a zone is read by the clock of the server's zone", async () => {
      const name = new URL(source().url).pathname.slice(1)
      await source().exec(`alter database ${name} set timezone to 'America/New_York'`)
      await source().exec(
        "set timezone to 'America/New_York'; create table local (id int primary key, updated_at timestamp not null); insert into local values (1, localtimestamp - interval '1 minute'), (2, localtimestamp + interval '1 minute')",
      )
      const { delta } = sql({ url: source().url }).table('local', { cursor: 'updated_at', lagMs: 0 })
      const { changes } = await delta(undefined, contextOf())
      expect(changes.map(({ key }) => key)).toEqual(['1'])
      // No zone, no instant: the order of reading decides then.
      expect(changes[0]).not.toHaveProperty('upstreamUpdatedAt')
      await source().exec(`alter database ${name} reset timezone; reset timezone`)
    })

    test('keys are compared as the database compares them, whatever its language', async () => {
      await source().exec(
        "create table words (word text primary key); insert into words values ('a'), ('B'), ('ä'), ('Z'), ('zebra'), ('_x'), ('10'), ('9'), ('é'), ('E')",
      )
      const stage = (await DatabaseFixture.open()).sync(
        'words',
        'replace',
        sql({ url: source().url }).listing('words', { pageSize: 1 }).execute,
      )
      expect((await stage.complete('words')).counts).toMatchObject({ created: 10, unchanged: 0 })
      await stage.close()
    })

    test('a privilege, a password and a server that is not there have codes of their own, and no message has the password', async () => {
      await source().exec('create table private (id int primary key); revoke all on private from public')
      const server = new URL(inject('postgresUrl'))
      const admin = new pg.Client({ connectionString: server.href })
      await admin.connect()
      await admin.query(
        "do $$ begin create role tidemark_guest login password 'hunter2-canary'; exception when duplicate_object then null; end $$",
      )
      await admin.end()
      const as = (changes: Partial<URL>): string => Object.assign(new URL(source().url), changes).href
      const asked = async (url: string): Promise<{ code: string; message: string }> => {
        const error = await sql({ url: new Secret(url) })
          .listing('public.private')
          .execute(undefined, contextOf())
          .then(
            () => null,
            (thrown: unknown) => thrown,
          )
        const { code, message, cause } = error as { code: string; message: string; cause?: unknown }
        expect(`${message} ${String((cause as Error | undefined)?.message)}`).not.toContain('canary')
        return { code, message }
      }
      expect(await asked(as({ username: 'tidemark_guest', password: 'hunter2-canary' }))).toMatchObject({
        code: 'SOURCE_FORBIDDEN',
        message: expect.stringContaining('private'),
      })
      expect(await asked(as({ username: 'nobody_of_that_name', password: 'hunter2-canary' }))).toMatchObject({
        code: 'AUTH_REJECTED',
      })
      expect(await asked(as({ pathname: '/no_such_database', password: 'hunter2-canary' }))).toMatchObject({
        code: 'SOURCE_NOT_FOUND',
      })
      expect(await asked(as({ port: '1', password: 'hunter2-canary' }))).toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
      const { delta } = sql({ url: source().url }).table('items1', { cursor: 'updated_at', lagMs: 0 })
      await expect(delta({ cursorField: 'updated_at', cursorValue: 'canary-cursor' }, contextOf())).rejects.toSatisfy(
        (error: Error) =>
          (error as Error & { code: string }).code === 'CURSOR_REJECTED' && !error.message.includes('canary'),
      )
    })

    test('XB15 a cycle that is stopped ends its statement at once', async () => {
      await source().exec('create view slow_view as select 1 as id, pg_sleep(60)::text as nap')
      const controller = new AbortController()
      const asking = sql({ url: source().url })
        .listing('slow_view', { key: ['id'] })
        .execute(undefined, { ...contextOf(), signal: controller.signal })
      const reason = new Error('stopped')
      setTimeout(() => controller.abort(reason), 300)
      await expect(asking).rejects.toBe(reason)
    })
  },
)
