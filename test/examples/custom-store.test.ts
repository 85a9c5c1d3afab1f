import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { describeStore, type StoreHarness } from 'tidemark/testing'
import { hasMariadb, MARIADB_HINT, startMariadb } from '../setup/mariadb-server.ts'
import { openMariadbStore } from '../../examples/custom-store/store.ts'
import { harnessOn, query } from './mariadb-harness.ts'

const root = resolve(import.meta.dirname, '../..')
const folder = join(root, 'examples/custom-store')

if (!hasMariadb) throw new Error(MARIADB_HINT)
// Server settings that a store must not depend on; the last three only reduce disk writes.
const server = await startMariadb({
  'default-time-zone': '+05:00',
  'sql-mode': 'NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH',
  'character-set-server': 'latin1',
  'transaction-isolation': 'SERIALIZABLE',
  'sync-frm': '0',
  'innodb-flush-method': 'nosync',
  'innodb-doublewrite': '0',
})
afterAll(() => server.stop())
const open = harnessOn(server.url)

describeStore('mariadb', open, { runner: { describe, test } })

describe('the example of a store', () => {
  test('imports the driver and tidemark/store alone', () => {
    const imports = readdirSync(folder)
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) =>
        [...readFileSync(join(folder, name), 'utf8').matchAll(/from '([^']+)'/g)].map(([, from]) => from!),
      )
    expect([...new Set(imports.filter((from) => !from.startsWith('./')))].toSorted()).toEqual([
      'mysql2/promise',
      'node:crypto',
      'tidemark/store',
    ])
  })

  test('a database with the columns of version 1 is upgraded when it is opened', async () => {
    const place = await open()
    onTestFinished(() => place.close())
    for (const statement of [
      'alter table tidemark_cycles rename column end_reason to stop_word',
      'alter table tidemark_webhooks rename column sequence to position, rename column failure_streak to streak',
      'alter table tidemark_webhooks rename column last_response to last_answer',
      'alter table tidemark_deliveries rename column failed to dead, rename column last_response to last_answer',
      'alter table tidemark_requests rename column caller to who',
      'alter table tidemark_tenants drop column store_id',
      'drop table tidemark_destinations',
      'drop table tidemark_partitions',
      'drop table tidemark_column_keys',
      'drop table tidemark_column_rules',
      'alter table tidemark_tenants drop key by_connections, drop column connections_changed',
      'drop table tidemark_connections',
      'drop table tidemark_connect_sessions',
      'drop table tidemark_verifications',
      "insert into tidemark_requests (tenant_id, `window`, who, count) values ('default', 1, 'me', 3)",
      'update tidemark_schema set version = 1',
    ])
      await query(place.url, statement)
    const store = (await place.reopen()).forTenant('default')
    expect(await store.countRequests(1, [['me', 1]])).toEqual([4])
    expect([await store.webhooks(), await store.destinations(), await store.cycles(null)]).toEqual([[], [], []])
    expect([await store.connections(), await store.verifications({ limit: 1 })]).toEqual([[], []])
    expect(await query(place.url, 'select version from tidemark_schema')).toEqual([{ version: 5 }])
  })

  test('is found by the scheme of its URL: the commands of the README run and query a copy', async () => {
    await query(server.url, 'create database copy')
    const url = Object.assign(new URL(server.url), { pathname: '/copy' }).href
    const readme = readFileSync(join(folder, 'README.md'), 'utf8')
    const commands = [...readme.matchAll(/^npx tidemark (.+)$/gm)].map(([, command]) =>
      command!.replace('mariadb://root@127.0.0.1/copy', url),
    )
    expect(commands).toHaveLength(2)
    const run = (command: string): string =>
      execFileSync('sh', ['-c', `${process.execPath} dist/cli/main.js ${command}`], {
        cwd: root,
        encoding: 'utf8',
        env: { ...process.env, TIDEMARK_STORE_MODULE: './examples/custom-store/driver.ts' },
      })
    expect(run(commands[0]!)).toMatch(/created/)
    expect(run(commands[1]!)).toMatch(/MMSI|mmsi|name/i)
  })
})

test('one connection is enough: a transaction that adds a column does not wait for another transaction', async () => {
  const harness = await openOne()
  const store = await openMariadbStore({ url: harness.url, poolMax: 1 })
  onTestFinished(() => store.close())
  const sync = await startSync({ store })
  await Promise.all([sync.land('a', { n: 1 }), store.headSequence(), store.syncs()])
  expect(await store.rows({ database: 'things', limit: 10 })).toHaveLength(1)
})

describe('columns are added outside of the landing transaction', () => {
  test('a column of a rolled-back commit is empty, and the next commit gives it the type it needs', async () => {
    const harness = await openOne()
    const sync = await startSync(harness)
    await sync.land('a', { n: 1 })
    // A duplicate key fails when the rows are written, after the column was added.
    await expect(
      sync.landAll([
        ['b', { n: 2, added: 1 }],
        ['b', { n: 3, added: 2 }],
      ]),
    ).rejects.toThrow(/Duplicate entry/)
    expect(await columnType(harness.url, 'added')).toBe('bigint')
    expect((await harness.store.schema('things'))!.columns.map(({ member }) => member)).toEqual(['n'])
    await sync.land('b', { n: 2, added: 'text' })
    expect(await columnType(harness.url, 'added')).toBe('longtext')
    expect(JSON.parse((await harness.store.row('things', 'b'))!.text)).toEqual({ n: 2, added: 'text' })
  })

  test('a reader that holds the table does not delay the landing: the field waits in _extra, and a later commit gives it a column', async () => {
    const harness = await openOne()
    const sync = await startSync(harness)
    await sync.land('a', { n: 1 })
    const reader = await createConnection({ uri: harness.url.replace('mariadb:', 'mysql:') })
    onTestFinished(() => reader.destroy())
    await reader.query('set session transaction isolation level repeatable read')
    await reader.query('start transaction')
    await reader.query('select * from things')
    await sync.land('b', { n: 2, added: 'x' })
    expect(await columnType(harness.url, 'added')).toBeUndefined()
    expect(JSON.parse((await harness.store.row('things', 'b'))!.text)).toEqual({ n: 2, added: 'x' })
    await reader.query('rollback')
    await sync.land('c', { n: 3, added: 'y' })
    expect(await columnType(harness.url, 'added')).toBe('longtext')
    expect(JSON.parse((await harness.store.row('things', 'b'))!.text)).toEqual({ n: 2, added: 'x' })
  })

  test('a column of the user keeps its values, and a field of its name gets another column', async () => {
    const harness = await openOne()
    const sync = await startSync(harness)
    await sync.land('a', { n: 1 })
    await query(harness.url, "alter table things add column note varchar(20) default 'mine'")
    await sync.land('a', { n: 2, note: 'theirs' })
    const [row] = await query(harness.url, 'select * from things')
    expect(row).toMatchObject({ n: 2, note: 'mine', note_2: 'theirs' })
  })
})

async function openOne(): Promise<Awaited<ReturnType<typeof open>>> {
  const harness = await open()
  onTestFinished(() => harness.close())
  return harness
}

interface Sync {
  land(key: string, record: object): Promise<void>
  landAll(records: ReadonlyArray<readonly [key: string, record: object]>): Promise<void>
}

/** A sync that lands records in the database `things`, one page each. */
async function startSync({ store }: Pick<StoreHarness, 'store'>): Promise<Sync> {
  const acquired = await store.acquire({ worker: 'crm', sync: 'delta' }, { holder: 'test', ttlMs: 3_600_000, at: 0 })
  if (acquired.kind !== 'acquired') throw new Error('The sync is held.')
  const { lease } = acquired
  const begun = (await store.beginCycle(lease, {
    at: 1,
    mode: 'incremental',
    trigger: 'manual',
    fresh: false,
    databases: ['things'],
  }))!
  let { page } = begun.inflight
  const landAll: Sync['landAll'] = async (records) => {
    const outcome = await store.commit({
      lease,
      version: 0,
      at: page + 2,
      owner: 'crm/delta',
      quarantined: [],
      columns: {},
      readAtSequence: await store.headSequence(),
      upstreamToleranceMs: 0,
      transition: {
        kind: 'continue',
        cycle: begun.inflight.cycle,
        page: page + 1,
        state: null,
        tidemark: null,
        scope: null,
        guardState: null,
      },
      landings: records.map(([key, record]) => ({
        type: 'upsert',
        database: 'things',
        key,
        text: JSON.stringify(record),
        hash: JSON.stringify(record).slice(0, 64),
        cursor: null,
        upstreamAt: null,
      })),
    })
    expect(outcome.kind).toBe('landed')
    page++
  }
  return { landAll, land: (key, record) => landAll([[key, record]]) }
}

async function columnType(url: string, column: string): Promise<unknown> {
  const [found] = await query(
    url,
    `select data_type as type from information_schema.columns where table_schema = database() and table_name = 'things' and column_name = '${column}'`,
  )
  return found?.['type']
}
