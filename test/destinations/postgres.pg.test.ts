import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { postgres } from '../../src/destinations/postgres/destination.ts'
import { describeDestination } from '../../src/testing/describe-destination.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { OPERATOR } from '../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { openPostgresHarness } from './postgres-harness.ts'
import { SmallDisk } from './small-disk.ts'

const server = inject('postgresUrl')
const suite = server === '' ? describe.skip : describe

suite('PostgreSQL', () => {
  describeDestination('PostgreSQL', openPostgresHarness, { runner: { describe, test } })

  test('columns have the types of the store, and the table is an ordinary one', async () => {
    const harness = await openPostgresHarness()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1, at: '2026-01-31T12:00:00.123Z', ok: true, x: 0.5, list: { a: 1 }, t: 'x' }])
    await bench.run()
    const { rows } = await harness.client.query<{ name: string; type: string }>(
      `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = '${harness.schema}.things'::regclass and attnum > 0 order by attnum`,
    )
    expect(Object.fromEntries(rows.map(({ name, type }) => [name, type]))).toEqual({
      _key: 'text',
      _sequence: 'bigint',
      _committed_at: 'timestamp with time zone',
      _extra: 'json',
      n: 'bigint',
      at: 'timestamp with time zone',
      ok: 'boolean',
      x: 'double precision',
      list: 'jsonb',
      t: 'text',
    })
    await bench.store.close()
    await harness.close()
  })

  test('a full disk is reported, and the load continues when there is space again', async () => {
    const harness = await openPostgresHarness()
    const bench = await DestinationBench.open(harness)
    const [{ folder } = { folder: '' }] = (
      await harness.client.query<{ folder: string }>("select current_setting('data_directory') as folder")
    ).rows
    const disk = SmallDisk.mount(3, statSync(folder))
    const url = await createDatabase(server)
    const space = `small_${process.pid}`
    await harness.client.query(`create tablespace ${space} location '${disk.folder}'`)
    await harness.client.query(`grant create on tablespace ${space} to public`)
    await harness.client.query(`alter database ${new URL(url).pathname.slice(1)} set default_tablespace = ${space}`)
    const destination = postgres({ url })
    const run = async () => (await bench.run({ destination })).report?.error ?? null
    await bench.commit(['first', { n: 1 }])
    expect(await run()).toBeNull()
    for (let part = 0; part < 40; part++)
      await bench.commit([`k${part}`, { text: randomBytes(50_000).toString('hex') }])
    expect(await run()).toMatchObject({ code: 'DESTINATION_FULL' })
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    const count = async () => (await client.query<{ n: number }>('select count(*)::int as n from things')).rows[0]!.n
    expect(await count()).toBeGreaterThan(1)
    expect(await count()).toBeLessThan(41)
    disk.grow(64)
    expect(await run()).toBeNull()
    expect(await count()).toBe(41)
    await client.end()
    await dropDatabase(server, url)
    await harness.client.query(`drop tablespace ${space}`)
    await bench.store.close()
    await harness.close()
  })

  test('a resync keeps the indexes, constraints, grants, comments, row security and triggers of the user', async () => {
    const harness = await openPostgresHarness()
    const bench = await DestinationBench.open(harness)
    const { client, schema } = harness
    const things = `${schema}.things`
    const reader = `"reader ${process.pid}"`
    await bench.commit(['a', { n: 1, t: 'x', gone: 1 }], ['b', { n: 2, t: 'y' }])
    await bench.run()
    await client.query(
      `create role ${reader}; create function ${schema}.note() returns trigger language plpgsql as 'begin return new; end'`,
    )
    await client.query(`alter default privileges in schema ${schema} grant insert on tables to public`)
    await client.query(
      `create index "by ON t" on ${things} (lower(t), n desc) where n > 0; create unique index on ${things} (n);
       create index on ${things} (gone); alter table ${things} add constraint positive check (n > 0), add unique (t);
       grant select on ${things} to ${reader} with grant option; grant update (n) on ${things} to public;
       comment on table ${things} is 'it''s mine'; comment on column ${things}.n is 'a number'; comment on column ${things}.gone is 'x';
       alter table ${things} enable row level security; create policy own on ${things} for select to ${reader} using (n > 1);
       create trigger noted after insert on ${things} for each row execute function ${schema}.note()`,
    )
    const read = async () => (await client.query<{ line: string }>(DEFINITIONS, [things])).rows.map(({ line }) => line)
    const before = await read()
    // The field is gone from the store, so the new table has no column for it.
    await bench.commit(['a', null])
    await bench.run()
    await bench.store.close()
    const other = await DestinationBench.open(harness)
    await other.commit(['b', { n: 2, t: 'y' }], ['c', { n: 3, t: 'z' }])
    await other.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
    expect((await other.run()).report?.error).toBeNull()
    expect(await read()).toEqual(before.filter((line) => !line.includes('gone')))
    expect(before.length).toBeGreaterThan(13)
    await client.query(`create view ${schema}.mine as select n from ${things}`)
    await other.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
    expect((await other.run()).report?.error?.code).toBe('DESTINATION_FOREIGN')
    expect((await harness.rows('things')).length).toBe(2)
    await other.store.close()
    await harness.close()
    const after = new pg.Client({ connectionString: server })
    await after.connect()
    await after.query(`drop role ${reader}`)
    await after.end()
  })

  test('a table that is not ours stops the destination, and stays', async () => {
    const harness = await openPostgresHarness()
    const bench = await DestinationBench.open(harness)
    await harness.client.query(`create schema ${harness.schema}; create table ${harness.schema}.things (mine integer)`)
    await bench.commit(['a', { n: 1 }])
    const { report } = await bench.run()
    expect(report?.error).toMatchObject({ code: 'DESTINATION_FOREIGN', message: expect.stringContaining('things') })
    await harness.client.query(`select mine from ${harness.schema}.things`)
    await bench.store.close()
    await harness.close()
  })

  test('wrong credentials and an unreachable server have their own codes', async () => {
    const harness = await openPostgresHarness()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    const wrong = Object.assign(new URL(server), { username: 'no_such_role', password: 'x' }).href
    expect((await bench.run({ destination: postgres({ url: wrong }) })).report?.error?.code).toBe('DESTINATION_REFUSED')
    const closed = postgres({ url: 'postgres://a@127.0.0.1:1/b' })
    expect((await bench.run({ destination: closed })).report?.error?.code).toBe('DESTINATION_UNAVAILABLE')
    await bench.store.close()
    await harness.close()
  })
})

const DEFINITIONS = `
  select pg_get_indexdef(indexrelid) as line from pg_index where indrelid = to_regclass($1) and not indisprimary
  union all select conname || ' ' || pg_get_constraintdef(oid) from pg_constraint where conrelid = to_regclass($1) and contype in ('c', 'u')
  union all select pg_get_triggerdef(oid) from pg_trigger where tgrelid = to_regclass($1)
  union all select concat_ws(' ', polname, polcmd, polroles::regrole[], pg_get_expr(polqual, polrelid)) from pg_policy where polrelid = to_regclass($1)
  union all select concat_ws(' ', 'grant', grantee::regrole, privilege_type, is_grantable)
    from pg_class, aclexplode(relacl) where oid = to_regclass($1) and grantee <> relowner
  union all select concat_ws(' ', 'grant on', attname, grantee, privilege_type) from pg_attribute, aclexplode(attacl) where attrelid = to_regclass($1)
  union all select concat_ws(' ', 'comment', attname, description) from pg_description left join pg_attribute on attrelid = objoid and attnum = objsubid
    where objoid = to_regclass($1)
  union all select concat_ws(' ', 'row security', relrowsecurity, relforcerowsecurity) from pg_class where oid = to_regclass($1)
  order by 1`
