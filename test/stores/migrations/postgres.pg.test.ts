import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { LogEntry, Row, Store } from '../../../src/contract/index.ts'
import { Connection } from '../../../src/stores/postgres/connection.ts'
import { migrate } from '../../../src/stores/postgres/migrate.ts'
import { SCHEMA_VERSION } from '../../../src/stores/postgres/schema.ts'
import { openPostgresStore } from '../../../src/stores/postgres/store.ts'
import { readSnapshot, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { parseJson } from '../../../src/values/json.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'

/** A store that the released version wrote, and a snapshot of its content. */
const FIXTURE = join(import.meta.dirname, '../../fixtures/stores/0.1.0')
const DUMP = readFileSync(join(FIXTURE, 'postgres.sql'), 'utf8')
const server = inject('postgresUrl')

interface Shown {
  readonly feed: LogEntry[]
  readonly rows: Row[][]
  readonly databases: Array<{ name: string; columns: unknown; rows: number }>
  readonly checkpoints: object[]
  readonly [member: string]: unknown
}

/** Members of the contract that have another name since the fixture was written. */
const RENAMED_MEMBERS = { stopWord: 'endReason', guard: 'guardState' }
const shown = Object.entries(RENAMED_MEMBERS).reduce(
  (text, [before, now]) => text.replaceAll(`"${before}":`, `"${now}":`),
  readFileSync(join(FIXTURE, 'postgres.json'), 'utf8'),
)
const expected = parseJson(shown) as unknown as Record<string, Shown>
// Its syncs have no partitions.
for (const { checkpoints } of Object.values(expected))
  for (const checkpoint of checkpoints) Object.assign(checkpoint, { partitions: [] })

describe.skipIf(server === '')('a PostgreSQL store of version 0.1.0', () => {
  let url: string
  beforeEach(async () => {
    url = await createDatabase(server)
    await query(DUMP)
  })
  afterEach(() => dropDatabase(server, url))

  async function query(sql: string): Promise<Array<Record<string, unknown>>> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return (await client.query(sql)).rows as Array<Record<string, unknown>>
    } finally {
      await client.end()
    }
  }

  test('shows the same rows, feed, databases, checkpoints and quarantine after the migration, and reports its progress', async () => {
    const progress: Array<{ moved: number; total: number }> = []
    const store = await openPostgresStore({ url, onMigration: (at) => progress.push(at) })
    for (const [tenant, before] of Object.entries(expected)) await expectSame(store.forTenant(tenant), before)
    expect(progress.at(-1)!.moved).toBe(progress.at(-1)!.total)
    await store.close()
    await query(
      'select * from public.things; select * from public.things_history; select id, late from acme.things; select * from acme."my-data.v2"',
    )
  })

  test('is migrated to the same content, wherever the process was killed, and an older program leaves it alone from the first step on', async () => {
    const { write } = Connection.prototype
    const connection = new Connection({ url })
    let interrupted = 0
    for (let done = false; !done;) {
      // Each round commits one more transaction; the next one is lost midway.
      let left = interrupted
      Connection.prototype.write = function (this: Connection, tenant, body) {
        return write.call(this, tenant, async (transaction) => {
          const result = await body(transaction)
          if (left-- <= 0) throw new Error('the process was killed')
          return result
        }) as never
      }
      try {
        await migrate(connection, { chunk: 25 })
        done = true
      } catch (error) {
        expect((error as Error).message).toBe('the process was killed')
        interrupted++
        await query(`do $$ begin assert tidemark.schema_version() = ${interrupted === 1 ? 16 : SCHEMA_VERSION}; end $$`)
      } finally {
        Connection.prototype.write = write
      }
    }
    await connection.close()
    expect(interrupted).toBeGreaterThan(5)
    const store = await openPostgresStore({ url })
    for (const [tenant, before] of Object.entries(expected)) await expectSame(store.forTenant(tenant), before)
    await store.close()
  })

  test('is migrated once when several processes open it at the same time', async () => {
    const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore({ url, poolMax: 2 })))
    for (const [tenant, before] of Object.entries(expected)) await expectSame(stores[2]!.forTenant(tenant), before)
    for (const store of stores) await store.close()
  })

  test('invariant 6: a key that was deleted before the migration is not revived by a page that was read earlier', async () => {
    const store = await openPostgresStore({ url })
    for (const tenant of Object.keys(expected)) {
      const newest = new Map(
        (await store.forTenant(tenant).changes({ after: 0, limit: 10_000 })).map((entry) => [
          `${entry.database}/${entry.key}`,
          entry,
        ]),
      )
      const deleted = [...newest.values()].filter(({ action }) => action === 'deleted')
      if (tenant === 'default') expect(deleted.length).toBeGreaterThan(0)
      const driver = await SyncDriver.acquire(store.forTenant(tenant), { sync: 'late' })
      const late = deleted.map(({ database, key }) => upsert(key, { late: true }, { database }))
      await driver.begin()
      const outcome = await driver.send(await driver.draft(driver.lastPage(), late, { readAtSequence: 0 }))
      expect(outcome.kind === 'overlap' ? outcome.keys.toSorted() : []).toEqual(late.map(({ key }) => key).toSorted())
    }
    await store.close()
  })

  test('continues where it stopped: the unfinished cycle, unchanged records, the sweep', async () => {
    const store = (await openPostgresStore({ url })).forTenant('acme')
    const driver = await SyncDriver.acquire(store, { sync: 'list', mode: 'replace', evict: 'runner-1' })
    await driver.begin({ databases: ['things'] })
    const records = (await store.rows({ database: 'things', limit: 100 })).map(({ key, text }) => upsert(key, text))
    expect((await driver.page(records)).counts).toMatchObject({ created: 0, updated: 0, unchanged: records.length })
    await driver.complete([], { sweep: { maxShare: 1, allowEmpty: true } })
    expect((await driver.cycle(records.slice(1), { sweep: { maxShare: 1, allowEmpty: true } })).counts.swept).toBe(1)
    const newest = new Map(
      (await store.changes({ after: 0, limit: 10_000 })).map(({ database, key, text }) => [`${database}/${key}`, text]),
    )
    const rows = (
      await Promise.all((await store.databases()).map(({ name }) => store.rows({ database: name, limit: 10_000 })))
    ).flat()
    expect(new Map(rows.map(({ database, key, text }) => [`${database}/${key}`, text]))).toEqual(
      new Map([...newest].filter(([, text]) => text !== null)),
    )
    await store.close()
  })

  test('a role that may read a view may read the table that replaces it, and nothing else; the comment of the view stays', async () => {
    // A role that every server has.
    const reader = 'pg_monitor'
    await query(`grant select on public.things to ${reader} with grant option; grant insert, delete on public.things to ${reader}; grant select on acme.things to public;
      grant insert on acme."my-data.v2" to ${reader};
      comment on view public.things is 'as the ''crm'' has it'`)
    await (await openPostgresStore({ url })).close()
    const [given] =
      await query(`select relkind, obj_description(oid, 'pg_class') as comment, has_table_privilege('${reader}', oid, 'select with grant option') as reads,
      has_table_privilege('${reader}', oid, 'insert, delete, update') as writes, has_table_privilege('${reader}', 'acme.things', 'select') as "readsAcme",
      has_table_privilege('${reader}', 'acme.things', 'select with grant option') as "grantsAcme", has_table_privilege('${reader}', 'acme."my-data.v2"', 'select') as "readsOther" from pg_class where oid = 'public.things'::regclass`)
    expect(given).toEqual({
      relkind: 'r',
      comment: "as the 'crm' has it",
      reads: true,
      writes: false,
      readsAcme: true,
      grantsAcme: false,
      readsOther: false,
    })
  })

  test('a user’s additions to a table stay while the records are moved, and while later records land', async () => {
    const { write } = Connection.prototype
    const connection = new Connection({ url })
    const killed = async (transactions: number): Promise<void> => {
      let left = transactions
      Connection.prototype.write = function (this: Connection, tenant, body) {
        if (left-- <= 0) throw new Error('the process was killed')
        return write.call(this, tenant, body) as never
      }
      await expect(migrate(connection, { chunk: 5 }))
        .rejects.toThrow('the process was killed')
        .finally(() => void (Connection.prototype.write = write))
    }
    try {
      for (
        let more = 1;
        (await query("select from pg_class where oid = to_regclass('public.things') and relkind = 'r'")).length === 0;
        more++
      )
        await killed(more)
    } finally {
      await connection.close()
    }
    await query(`alter table public.things add column mine text default 'own'; create index by_mine on public.things (mine); comment on table public.things is 'mine';
      create table notes (thing text references public.things (_key)); create function touched() returns trigger language plpgsql as 'begin new.mine := ''touched''; return new; end';
      create trigger touch before update on public.things for each row execute function touched()`)
    const store = await openPostgresStore({ url })
    for (const [tenant, before] of Object.entries(expected)) await expectSame(store.forTenant(tenant), before)
    const [row] = await store.rows({ database: 'things', limit: 1 })
    await query(`insert into notes values ('${row!.key}')`)
    const driver = await SyncDriver.acquire(store, { sync: 'later' })
    await driver.cycle([upsert(row!.key, { later: 1 }, { database: 'things', at: 1_000_000 })])
    expect(
      await query(
        `select mine, later, obj_description('public.things'::regclass, 'pg_class') as comment, to_regclass('by_mine') is not null as indexed from public.things where _key = '${row!.key}'`,
      ),
    ).toEqual([{ mine: 'touched', later: '1', comment: 'mine', indexed: true }])
    expect(await query("select distinct mine from public.things where mine <> 'touched'")).toEqual([{ mine: 'own' }])
    await expect(query(`delete from public.things where _key = '${row!.key}'`)).rejects.toThrow(/foreign key/)
    await store.close()
  })

  test('a view with dependent objects is named, and the migration continues when they are dropped', async () => {
    await query('create view report as select * from public.things')
    await expect(openPostgresStore({ url })).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringContaining('public.things'),
    })
    await query('drop view report')
    const store = await openPostgresStore({ url })
    for (const [tenant, before] of Object.entries(expected)) await expectSame(store.forTenant(tenant), before)
    await store.close()
  })
})

async function expectSame(store: Store, before: Shown): Promise<void> {
  const { floor, floorCommittedAt } = await store.feed({ after: 0, limit: 0, scanMax: 1 })
  const found = { floor, floorCommittedAt, ...(await readSnapshot(store)) } as unknown as Shown
  const entry = ({ text, ...rest }: LogEntry): unknown => ({ ...rest, record: text === null ? null : parseJson(text) })
  const row = ({ text, ...rest }: Row): unknown => ({ ...rest, record: parseJson(text) })
  const counts = (shown: Shown): unknown => shown.databases.map(({ name, columns, rows }) => ({ name, columns, rows }))
  // The entry of a current row has the row's time, even where the change itself had none.
  const timed = before.feed.map((old, at) =>
    old.upstreamAt === null ? { ...old, upstreamAt: found.feed[at]?.upstreamAt ?? null } : old,
  )
  expect(found.feed.map(entry)).toEqual(timed.map(entry))
  expect(found.rows.map((rows) => rows.map(row))).toEqual(before.rows.map((rows) => rows.map(row)))
  expect(counts(found)).toEqual(counts(before))
  for (const [member, value] of Object.entries(before)) {
    if (!['feed', 'rows', 'databases'].includes(member)) expect(found[member], member).toEqual(value)
  }
}
