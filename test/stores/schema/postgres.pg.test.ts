import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { Store } from '../../../src/contract/index.ts'
import { Connection } from '../../../src/stores/postgres/connection.ts'
import { openPostgresStore } from '../../../src/stores/postgres/store.ts'
import { DATABASE, readLiveRows, START, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'
import { query as asAdministrator } from '../postgres-harness.ts'
import { change, describeSchemaChanges, type SchemaHarness } from './cases.ts'

const server = inject('postgresUrl')

async function open(): Promise<SchemaHarness & { readonly url: string }> {
  const url = await createDatabase(server)
  const opened: Store[] = []
  const reopen = async (): Promise<Store> => {
    const store = await openPostgresStore({ url, poolMax: 4 })
    opened.push(store)
    return store
  }
  const sql = async <Found extends object>(text: string): Promise<Found[]> => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      const answer = (await client.query(text)) as pg.QueryResult | pg.QueryResult[]
      return (Array.isArray(answer) ? answer.at(-1)! : answer).rows as Found[]
    } finally {
      await client.end()
    }
  }
  return {
    store: await reopen(),
    reopen,
    url,
    sql,
    table: `public.${DATABASE}`,
    async close() {
      for (const store of opened) await store.close()
      await dropDatabase(server, url)
    },
    async killNext(body) {
      const { write, runOutsideTransaction } = Connection.prototype
      Connection.prototype.write = function (tenant, inner) {
        return write.call(this, tenant, async (transaction) => {
          await inner(transaction)
          await transaction.settle()
          throw new Error('killed')
        }) as never
      }
      Connection.prototype.runOutsideTransaction = () => Promise.reject(new Error('killed'))
      try {
        return await body()
      } finally {
        Object.assign(Connection.prototype, { write, runOutsideTransaction })
      }
    },
  }
}

describeSchemaChanges('PostgreSQL', open, server === '')

describe.skipIf(server === '')('the columns of a PostgreSQL store', () => {
  let harness: Awaited<ReturnType<typeof open>>
  beforeEach(async () => {
    harness = await open()
  })
  afterEach(() => harness.close())

  test('invariant 14: indexes, grants, comments, triggers, foreign keys and columns of the user survive a change of their column', async () => {
    const { store, sql } = harness
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(Array.from({ length: 50 }, (_, at) => upsert(`k${at}`, { age: at, name: `n${at}` })))
    const reader = `reader_${process.pid}`
    await asAdministrator(harness.url, `create role ${reader} nologin`)
    await sql(`create index by_age on things (age desc nulls last) include (name); create unique index by_both on things (name, age) with (fillfactor = 80);
      create index old_ages on things_history (age); create index by_name on things (name);
      comment on column things.age is 'it''s in years'; comment on table things is 'people';
      grant select (age, name) on things to ${reader}; grant select on things to public;
      alter table things add column mine text default 'm'; create table orders (customer text references things (_key)); insert into orders values ('k1');
      create table seen (key text); create function note() returns trigger language plpgsql as $$ begin insert into public.seen values (new._key); return new; end $$;
      create trigger noting after insert on things for each row execute function note()`)
    const facts = `select (select array_agg(replace(pg_get_indexdef(indexrelid), ' NULLS LAST', '') order by indexrelid::regclass::text) from pg_index
        where indrelid in ('things'::regclass, 'things_history'::regclass)) as indexes,
      (select relacl::text from pg_class where oid = 'things'::regclass) as acl, obj_description('things'::regclass) as comment,
      (select attacl::text from pg_attribute where attrelid = 'things'::regclass and attname = 'age') as "columnAcl",
      (select col_description(attrelid, attnum) from pg_attribute where attrelid = 'things'::regclass and attname = 'age') as "columnComment",
      (select count(*) from pg_trigger where tgrelid = 'things'::regclass and not tgisinternal) as triggers`
    const before = await sql(facts)
    await change(store, [{ member: 'age', type: 'text' }])
    expect(await sql(facts)).toEqual(before)
    await driver.cycle([upsert('z', { age: 'old', name: 'Zed' })])
    expect(await sql('select * from seen')).toEqual([{ key: 'z' }])
    expect(await sql("select age, mine from things where _key in ('k7', 'z') order by _key")).toEqual([
      { age: '7', mine: 'm' },
      { age: 'old', mine: 'm' },
    ])
    expect(
      await sql("set enable_seqscan = off; explain (format json) select name from things where age = 'old'").then(
        (rows) => JSON.stringify(rows),
      ),
    ).toContain('by_age')
    await expect(sql("insert into orders values ('absent')")).rejects.toThrow('foreign key')
    await asAdministrator(harness.url, `drop owned by ${reader}; drop role ${reader}`)
  })

  test('objects that would be dropped with their column are named first, and dropped only when the loss is allowed', async () => {
    const { store, sql } = harness
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { age: 1, name: 'Ann' })])
    await sql(
      'create view ages as select age from things; create index by_sum on things ((age + 1)); alter table things add constraint adult check (age > 0)',
    )
    for (const wanted of [
      { member: 'age', type: 'text' },
      { member: 'age', drop: true as const },
    ]) {
      const refused = await change(store, [wanted]).catch((error: unknown) => error as Error)
      expect(refused).toMatchObject({
        code: 'SCHEMA_CHANGE_INVALID',
        message: expect.stringMatching(/(?=.*view public.ages)(?=.*by_sum)(?=.*adult)/),
      })
    }
    // A rename drops no dependents.
    await change(store, [{ member: 'age', column: 'years' }])
    expect(await sql('select age from ages')).toEqual([{ age: '1' }])
    await change(store, [{ member: 'age', type: 'text' }], true)
    expect(await sql("select to_regclass('ages') as view, to_regclass('by_sum') as index")).toEqual([
      { view: null, index: null },
    ])
    expect(await readLiveRows(store)).toEqual([['a', { age: 1, name: 'Ann' }]])
  })

  test('an object created on a column during its change stops the last step, and nothing is lost', async () => {
    const { store, sql } = harness
    await (await SyncDriver.acquire(store)).cycle([upsert('a', { age: 1 })])
    await store.beginSchemaChange(DATABASE, {
      changes: [{ member: 'age', type: 'text' }],
      actor: 'ana',
      reason: '',
      at: START,
    })
    await store.advanceSchemaChange(DATABASE, { at: START, rowsMax: 10 })
    await sql('create view ages as select age from things')
    await expect(finish(store)).rejects.toMatchObject({
      code: 'SCHEMA_CHANGE_INVALID',
      message: expect.stringContaining('view public.ages'),
    })
    expect(await sql('select age from ages')).toEqual([{ age: '1' }])
    await sql('drop view ages')
    await finish(store)
    expect(await sql('select age from things')).toEqual([{ age: '1' }])
  })

  test('an index whose build was interrupted is built again', async () => {
    const { store, sql } = harness
    await (await SyncDriver.acquire(store)).cycle([upsert('a', { age: 1 }), upsert('b', { age: 2 })])
    await sql('create unique index by_age on things (age)')
    const [{ id }] = (await sql<{ id: string }>("select 'by_age'::regclass::oid as id")) as [{ id: string }]
    await store.beginSchemaChange(DATABASE, {
      changes: [{ member: 'age', type: 'text' }],
      actor: 'ana',
      reason: '',
      at: START,
    })
    while ((await store.schema(DATABASE))!.change!.phase !== 'indexes')
      await store.advanceSchemaChange(DATABASE, { at: START, rowsMax: 10 })
    // A unique index over equal values is left behind as invalid.
    await expect(sql(`create unique index concurrently tidemark_new_${id} on things ((1))`)).rejects.toThrow(
      'could not create unique index',
    )
    await finish(store)
    expect(
      await sql(
        "select indisvalid, pg_get_indexdef(indexrelid) as sql from pg_index where indexrelid = 'by_age'::regclass",
      ),
    ).toEqual([{ indisvalid: true, sql: 'CREATE UNIQUE INDEX by_age ON public.things USING btree (age)' }])
    expect(await sql("select from pg_class where relname like 'tidemark_new%'")).toEqual([])
  })

  test('a long reader delays a change for a bounded time, and records land meanwhile', async () => {
    const { store, url } = harness
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { age: 1 })])
    const reader = new pg.Client({ connectionString: url })
    await reader.connect()
    await store.beginSchemaChange(DATABASE, {
      changes: [{ member: 'age', type: 'text' }],
      actor: 'ana',
      reason: '',
      at: START,
    })
    for (const phase of ['add', 'swap']) {
      while ((await store.schema(DATABASE))!.change!.phase !== phase)
        await store.advanceSchemaChange(DATABASE, { at: START, rowsMax: 10 })
      await reader.query('begin; select * from things')
      expect(await store.advanceSchemaChange(DATABASE, { at: START, rowsMax: 10 })).toMatchObject({
        isLocked: true,
        isDone: false,
        change: { phase },
      })
      await driver.cycle([upsert('a', { age: `during ${phase}` })])
      await reader.query('rollback')
    }
    await finish(store)
    expect(await readLiveRows(store)).toEqual([['a', { age: 'during swap' }]])
    await reader.end()
  })

  test('a reader that read the columns before they were replaced reads again', async () => {
    const { store } = harness
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { age: 1, at: '2026-01-01T00:00:00Z' })])
    const { read } = Connection.prototype
    for (const changes of [
      [{ member: 'age', type: 'text' }],
      [{ member: 'age', column: 'years' }],
      [{ member: 'age', drop: true as const }],
      [{ member: 'at', type: 'json' }],
    ]) {
      let tries = 0
      Connection.prototype.read = function (tenant, body) {
        return read.call(this, tenant, async (transaction) => {
          // By now the columns were read from the snapshot of the transaction.
          await transaction.all('select from tidemark.databases')
          if (tries++ === 0) {
            Connection.prototype.read = read
            await change(await harness.reopen(), changes)
          }
          return body(transaction)
        }) as never
      }
      expect(
        (await store.rows({ database: DATABASE, limit: 10 })).map(({ text }) => JSON.parse(text) as unknown),
      ).toEqual([{ age: 1, at: '2026-01-01T00:00:00Z' }])
      expect(tries).toBe(2)
    }
  })

  test('a new column does not rewrite the table, nor does the end of a change', async () => {
    const { store, sql } = harness
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(Array.from({ length: 100 }, (_, at) => upsert(`k${at}`, { age: at })))
    const files =
      "select 'things'::regclass::oid::int as id, pg_relation_filenode('things') as rows, pg_relation_filenode('things_history') as versions"
    const before = await sql(files)
    await driver.cycle([upsert('new', { age: 1, late: 'x' })])
    await change(store, [
      { member: 'age', type: 'numeric' },
      { member: 'late', column: 'later' },
    ])
    expect(await sql(files)).toEqual(before)
    expect(await sql("select age, later from things where _key = 'new'")).toEqual([{ age: '1', later: 'x' }])
  })
})

async function finish(store: Store): Promise<void> {
  while (!(await store.advanceSchemaChange(DATABASE, { at: START, rowsMax: 10 }))!.isDone);
}
