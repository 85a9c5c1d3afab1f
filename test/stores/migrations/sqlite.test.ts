import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { LogEntry, Row, Store } from '../../../src/contract/index.ts'
import { Connection, type Rollback } from '../../../src/stores/sqlite/connection.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { readSnapshot, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { parseJson } from '../../../src/values/json.ts'

/** A store that the released version wrote, and a snapshot of its content. */
const FIXTURE = join(import.meta.dirname, '../../fixtures/stores/0.1.0')

interface Shown {
  readonly position: number
  readonly floor: number
  readonly feed: LogEntry[]
  readonly rows: Row[][]
  readonly databases: unknown[]
  readonly quarantined: unknown[]
}

const expected = JSON.parse(readFileSync(join(FIXTURE, 'expected.json'), 'utf8')) as Record<string, Shown>

test('every new store of a process has the tables of the first one, without the tables that the user added to its file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-migration-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const userTables =
    'create table mine (a); create index mine_by_a on mine (a); create view view_of_mine as select a from mine'
  const first = new DatabaseSync(join(folder, 'first.db'))
  first.exec(userTables)
  first.close()

  vi.resetModules()
  const { Connection } = await import('../../../src/stores/sqlite/connection.ts')
  const schemas = ['first', 'second', 'third'].map((name) => {
    new Connection({ file: join(folder, `${name}.db`) }).close()
    const db = new DatabaseSync(join(folder, `${name}.db`), { readOnly: true })
    const schema = db.prepare('select type, name, tbl_name, sql from sqlite_schema order by type, name').all()
    db.close()
    return schema
  })
  const withoutUserTables = schemas[0]!.filter(({ name }) => !/mine/.test(String(name)))
  expect(schemas[0]).toHaveLength(withoutUserTables.length + 3)
  expect(withoutUserTables.length).toBeGreaterThan(30)
  expect(schemas.slice(1)).toEqual([withoutUserTables, withoutUserTables])
})

describe('a SQLite store of version 0.1.0', () => {
  let folder: string
  let file: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tidemark-migration-'))
    file = join(folder, 'store.db')
    copyFileSync(join(FIXTURE, 'sqlite.db'), file)
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  test('shows the same rows, feed, databases and quarantine after the migration', async () => {
    const store = await openSqliteStore({ file })
    for (const [tenant, before] of Object.entries(expected)) expectSame(await show(store.forTenant(tenant)), before)
    await store.close()
  })

  test('is migrated to the same content, wherever the process was killed', async () => {
    for (let step = 0; ; step++) {
      copyFileSync(join(FIXTURE, 'sqlite.db'), file)
      const isInterrupted = crashAt(step, () => new Connection({ file }).close())
      const store = await openSqliteStore({ file })
      for (const [tenant, before] of Object.entries(expected)) expectSame(await show(store.forTenant(tenant)), before)
      await store.close()
      if (!isInterrupted) break
      expect(step, 'the migration ends').toBeLessThan(100)
    }
  })

  test('user objects stay: a view on ours, and additions to a table while the records are moved', async () => {
    const sql = (text: string): Array<Record<string, unknown>> => {
      const db = new DatabaseSync(file)
      try {
        return text.startsWith('select')
          ? (db.prepare(text).all() as Array<Record<string, unknown>>)
          : (db.exec(text), [])
      } finally {
        db.close()
      }
    }
    sql('create view report as select count(*) as n from things')
    const [before] = sql('select n from report')
    const isMade = (): boolean =>
      sql("select 1 from sqlite_master where type = 'table' and name = 'things'").length === 1
    for (let step = 0; !isMade(); step++)
      expect(
        crashAt(step, () => new Connection({ file }).close()),
        'a table before the migration ends',
      ).toBe(true)
    sql(`alter table things add column mine text default 'own'; create index by_mine on things (mine); create table notes (thing text references things (_key));
      create trigger touch after update on things begin insert into notes (thing) values (new._key); end`)
    const store = await openSqliteStore({ file })
    for (const [tenant, shown] of Object.entries(expected)) expectSame(await show(store.forTenant(tenant)), shown)
    const [row] = await store.rows({ database: 'things', limit: 1 })
    const driver = await SyncDriver.acquire(store, { sync: 'later' })
    await driver.cycle([upsert(row!.key, { later: 1 }, { database: 'things', at: 1_000_000 })])
    expect(
      sql(
        `select mine, later, (select count(*) from notes where thing = _key) > 0 as noted from things where _key = '${row!.key}'`,
      ),
    ).toEqual([{ mine: 'own', later: 1, noted: 1 }])
    expect(
      sql("select name from sqlite_master where name in ('by_mine', 'touch', 'notes', 'report') order by name").map(
        ({ name }) => name,
      ),
    ).toEqual(['by_mine', 'notes', 'report', 'touch'])
    expect(sql('select n from report')).toEqual([before])
    await store.close()
  })

  test('a view of the user that refers to a missing table is named, and the migration continues when it is dropped', async () => {
    const sql = (text: string): void => {
      const db = new DatabaseSync(file)
      db.exec(text)
      db.close()
    }
    sql('create view report as select * from missing')
    await expect(openSqliteStore({ file })).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringContaining('error in the view report: no such table: main.missing. Drop or correct it'),
    })
    sql('drop view report')
    const store = await openSqliteStore({ file })
    for (const [tenant, before] of Object.entries(expected)) expectSame(await show(store.forTenant(tenant)), before)
    await store.close()
  })

  test('invariant 6: a key that was deleted before the migration is not revived by a page that was read earlier', async () => {
    const store = await openSqliteStore({ file })
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

  test('continues where it stopped: the unfinished cycle and unchanged records', async () => {
    const store = await openSqliteStore({ file })
    const driver = await SyncDriver.acquire(store, { sync: 'list', mode: 'replace', evict: 'runner-1' })
    await driver.begin({ databases: ['things'] })
    const { counts } = await driver.page([upsert('k1', { v: 1 })])
    expect(counts).toMatchObject({ created: 0, updated: 0, unchanged: 1 })
    await driver.abandon()
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
})

async function show(store: Store): Promise<Shown> {
  const { floor } = await store.feed({ after: 0, limit: 0, scanMax: 1 })
  const { databases, ...rest } = (await readSnapshot(store)) as Record<string, unknown> & {
    databases: Array<{ name: string; columns: unknown; rows: number }>
  }
  return {
    ...rest,
    floor,
    databases: databases.map(({ name, columns, rows }) => ({ name, columns, rows })),
  } as unknown as Shown
}

function expectSame(found: Shown, before: Shown): void {
  const entry = ({ text, ...rest }: LogEntry): unknown => ({ ...rest, record: text === null ? null : parseJson(text) })
  // The entry of a current row has the row's time, even where the change itself had none.
  const timed = before.feed.map((old, at) =>
    old.upstreamAt === null ? { ...old, upstreamAt: found.feed[at]?.upstreamAt ?? null } : old,
  )
  const row = ({ text, ...rest }: Row): unknown => ({ ...rest, record: parseJson(text) })
  expect(found.feed.map(entry)).toEqual(timed.map(entry))
  expect(found.rows.map((rows) => rows.map(row))).toEqual(before.rows.map((rows) => rows.map(row)))
  for (const member of ['position', 'floor', 'databases', 'quarantined'] as const)
    expect(found[member]).toEqual(before[member])
}

/** True when the process was killed before its transaction number `step` was complete. */
function crashAt(step: number, body: () => void): boolean {
  const { write } = Connection.prototype
  let left = step
  Connection.prototype.write = function <T>(this: Connection, run: () => T | Rollback<T>): T {
    return write.call(this, () => {
      const result = run()
      if (left-- <= 0) throw new Error('the process was killed')
      return result
    }) as T
  }
  try {
    body()
    return false
  } catch (error) {
    if ((error as Error).message !== 'the process was killed') throw error
    return true
  } finally {
    Connection.prototype.write = write
  }
}
