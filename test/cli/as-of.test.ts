import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runSelect } from '../../src/stores/run-select.ts'
import { START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { locateStore } from '../../src/stores/drivers.ts'
import { describeAsOf, type AsOfStore } from './as-of-cases.ts'
import { people, Project } from './project.ts'

async function open(): Promise<AsOfStore> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-as-of-'))
  const file = join(folder, 'store.db')
  const store = await openSqliteStore({ file, synchronous: 'off' })
  onTestFinished(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const table = (tenant: string, database: string): string => {
    const name = tenant === 'default' ? database : `${tenant}__${database}`
    return /^\w+$/.test(name) ? name : `"${name}"`
  }
  return {
    store,
    location: locateStore(`sqlite:${file}`, '/'),
    table,
    qualified: (tenant, database) => `main.${table(tenant, database)}`,
    async run(sql) {
      const db = new DatabaseSync(file)
      db.exec(sql)
      db.close()
    },
  }
}

describe('as of, on SQLite', () => {
  describeAsOf(open)

  test('a schema-qualified table is refused, also in a CTE with its name', async () => {
    const { store, location } = await open()
    await (await SyncDriver.acquire(store)).cycle([upsert('a', { name: 'Ada' })], { at: START })
    for (const sql of [
      'select * from main.things',
      'with things as (select * from main.things) select * from things',
      "select * from main.'things'",
      'select count(*) from main.things',
    ]) {
      await expect(runSelect(location, sql, { limit: 0, tenant: 'default', asOf: START })).rejects.toMatchObject({
        code: 'ARGUMENT_INVALID',
        message: expect.stringContaining('reads current data of things'),
      })
    }
    expect(
      (await runSelect(location, "select name from 'things'", { limit: 0, tenant: 'default', asOf: START })).rows,
    ).toEqual([['Ada']])
  })
})

test('tidemark query --as-of shows the tables as they were; a time in the future, or without a statement, is refused', async () => {
  const project = Project.withWorker()
  expect(await project.json('run')).toMatchObject({ ok: true })
  const [{ at }] = (await project.json('query', 'select max(_synced_at) as at from people')).rows as [{ at: string }]
  project.source({ people: [{ id: 'p0001', name: 'Somebody else' }, ...people(5).slice(1)] })
  expect(await project.json('run', 'people-list')).toMatchObject({ ok: true })
  const now = await project.json('query', 'select name from people order by _key limit 1')
  const then = await project.json('query', '--as-of', at, 'select name from people order by _key limit 1')
  expect([now.rows, then.rows, then.as_of]).toEqual([[{ name: 'Somebody else' }], [{ name: 'Person 1' }], at])
  expect(await project.ask('query', '--as-of', '2999-01-01T00:00:00Z', 'select * from people')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('in the future'),
  })
  expect(await project.ask('query', '--as-of', '2001-01-01T00:00:00Z', 'select * from people')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('it begins at'),
  })
  expect(await project.ask('query', '--as-of', 'yesterday', 'select * from people')).toMatchObject({ code: 2 })
  expect(await project.ask('query', '--as-of', at)).toMatchObject({ code: 2 })
})
