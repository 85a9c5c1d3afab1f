import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { DuckdbClient } from '../../src/destinations/duckdb/client.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Destination, DestinationSession } from '../../src/contract/index.ts'
import { duckdb } from '../../src/destinations/duckdb/destination.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { openDuckdbHarness, queryFile } from './duckdb-harness.ts'
import { SmallDisk } from './small-disk.ts'

describe('a DuckDB file', () => {
  test('is refused while another process has it open, and continues when it is closed', async () => {
    const { bench, harness } = await openBench()
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    await bench.commit(['a', { n: 2 }])
    const other = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, harness.file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(other.stdout, 'data')
    expect((await bench.run()).report?.error).toEqual({
      code: 'DESTINATION_UNAVAILABLE',
      message: expect.stringMatching(/Another process has the DuckDB file .*copy\.duckdb open \(PID \d+\)/),
    })
    other.kill('SIGKILL')
    await once(other, 'exit')
    expect((await bench.run()).report?.error).toBeNull()
    expect(await harness.rows('things')).toMatchObject([{ record: { n: 2 } }])
  })

  test('can be opened by another process after every run, with nothing beside it', async () => {
    const { bench, harness } = await openBench()
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    expect(readdirSync(harness.folder)).toEqual(['copy.duckdb'])
    const sql = `select n from "dest ""x""".things`
    const reader = `import { DuckDBInstance } from '@duckdb/node-api'
      const instance = await DuckDBInstance.create(process.argv[1], { access_mode: 'READ_ONLY' })
      const connection = await instance.connect()
      console.log((await connection.runAndReadAll(process.argv[2])).getRowsJson())`
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', reader, harness.file, sql])
    expect(String(printed)).toContain("[ [ '1' ] ]")
  })

  test.each([
    ['a text', Buffer.from('not a database\n'.repeat(2_000))],
    ['an empty file', Buffer.alloc(0)],
    ['a SQLite database', Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4_096)])],
  ])('that is %s is refused and stays as it is', async (_, content) => {
    const { bench, harness } = await openBench()
    await bench.commit(['a', { n: 1 }])
    writeFileSync(harness.file, content)
    expect((await bench.run()).report?.error).toEqual({
      code: 'DESTINATION_FOREIGN',
      message: expect.stringContaining('is not a DuckDB database. The file was not changed.'),
    })
    expect(readFileSync(harness.file).equals(content)).toBe(true)
    expect(readdirSync(harness.folder)).toEqual(['copy.duckdb'])
  })

  test('that is a folder, or below a file, is refused; a missing folder is created', async () => {
    const { bench, harness } = await openBench()
    await bench.commit(['a', { n: 1 }])
    const runIn = async (...path: string[]) =>
      (await bench.run({ destination: duckdb({ file: join(harness.folder, ...path) }) })).report?.error?.code
    mkdirSync(join(harness.folder, 'folder'))
    writeFileSync(join(harness.folder, 'text'), '')
    expect(await runIn('folder')).toBe('DESTINATION_FOREIGN')
    expect(await runIn('text', 'copy.duckdb')).toBe('DESTINATION_FOREIGN')
    expect(await runIn('a', 'b', 'copy.duckdb')).toBeUndefined()
    expect(existsSync(join(harness.folder, 'a', 'b', 'copy.duckdb'))).toBe(true)
  })

  test('on a full disk keeps its rows, and continues when there is space', async () => {
    const { bench } = await openBench()
    const disk = SmallDisk.mount(2)
    const file = join(disk.folder, 'copy.duckdb')
    const run = async () => (await bench.run({ destination: duckdb({ file }) })).report?.error ?? null
    await bench.commit(['a', { n: 1 }])
    expect(await run()).toBeNull()
    const fill = join(disk.folder, 'fill')
    writeFileSync(fill, Buffer.alloc(1_000_000))
    for (let part = 0; part < 20; part++)
      await bench.commit([
        `k${part}`,
        { text: Array.from({ length: 8_000 }, (_, n) => (n * 7919 + part).toString(36)).join() },
      ])
    expect(await run()).toMatchObject({ code: 'DESTINATION_FULL' })
    const before = await queryFile(file, 'select _key from things')
    expect(before.length).toBeGreaterThan(0)
    disk.grow(64)
    expect(await run()).toBeNull()
    expect(
      await queryFile(file, 'select count(*)::integer as n, count(distinct _key)::integer as keys from things'),
    ).toEqual([{ n: 21, keys: 21 }])
  })

  test('can be used again after an error within a transaction', async () => {
    const { harness } = await openBench()
    const client = await DuckdbClient.open(harness.file, 'the test')
    onTestFinished(() => client.close())
    const failing = client.transaction(async () => {
      await client.run('create table half (n integer)')
      throw new Error('the batch is refused')
    })
    await expect(failing).rejects.toThrow()
    await client.transaction(() => client.run('create table whole (n integer)'))
    expect(await client.query('select table_name from duckdb_tables()')).toEqual([{ table_name: 'whole' }])
  })

  test('has one owner in a process: sessions share it, and their transactions follow one another', async () => {
    const { bench, harness } = await openBench()
    await bench.commit(['a', { n: 1 }])
    const { file } = harness
    const copies = Array.from({ length: 4 }, (_, at) => duckdb({ file, schema: `s${at}` }))
    const sessions = await Promise.all(copies.map(openSession))
    const token = { storeId: 's', epoch: 1, sequence: 1, committedAt: 1, after: null }
    const schema = { database: 'things', mode: 'mirror' as const, columns: [] }
    const batch = { schema, target: 'loading' as const, isFirst: true, isLast: true, changes: [] }
    const applied = await Promise.all(sessions.map((session) => session.apply(batch, { previous: null, next: token })))
    expect(applied).toEqual(copies.map(() => 'applied'))
    // Two appliers of one table at once: the second sees the token of the first.
    const next = { ...token, sequence: 2 }
    const live = { ...batch, target: 'live' as const, isFirst: false, isLast: false }
    const twin = await openSession(duckdb({ file, schema: 's0' }))
    const outcomes = await Promise.all(
      [sessions[0]!, twin].map((session) => session.apply(live, { previous: token, next })),
    )
    expect(outcomes).toEqual(['applied', 'refused'])
    for (const session of [...sessions, twin]) await session.close()
    expect(readdirSync(harness.folder)).toEqual(['copy.duckdb'])
  })
})

describe('a table of the user', () => {
  test('stops the destination and stays, also a view and a name in capitals', async () => {
    const { bench, harness } = await openBench()
    await bench.commit(['a', { n: 1 }])
    for (const sql of ['create table "Things" (mine integer)', 'create view things as select 1 as mine']) {
      const file = join(harness.folder, `${sql.length}.duckdb`)
      await queryFile(await createDatabase(file), sql)
      expect((await bench.run({ destination: duckdb({ file }) })).report?.error).toEqual({
        code: 'DESTINATION_FOREIGN',
        message: expect.stringContaining('already has a table things'),
      })
      expect(await queryFile(file, 'select mine from things')).toHaveLength(sql.includes('view') ? 1 : 0)
    }
  })

  test('may have columns of its own: they keep their values, and new rows get their defaults', async () => {
    const { bench, harness } = await openBench()
    const things = '"dest ""x""".things'
    await bench.commit(['a', { n: 1 }], ['b', { n: 2 }])
    await bench.run()
    await queryFile(harness.file, `alter table ${things} add column note varchar default 'none'`)
    await bench.commit(['b', { n: 3, note: 'theirs' }], ['c', { n: 4 }])
    expect((await bench.run()).report?.error).toBeNull()
    expect(await queryFile(harness.file, `select _key, n, note, note_2 from ${things} order by _key`)).toEqual([
      { _key: 'a', n: '1', note: 'none', note_2: null },
      { _key: 'b', n: '3', note: 'none', note_2: 'theirs' },
      { _key: 'c', n: '4', note: 'none', note_2: null },
    ])
  })

  test('may have an index, which stays through updates and new columns; a unique one stops the destination', async () => {
    const { bench, harness } = await openBench()
    await bench.commit(['a', { n: 1 }], ['b', { n: 1 }])
    await bench.run()
    await queryFile(harness.file, `create index mine on "dest ""x""".things (_key)`)
    for (const more of [{ n: 2 }, { n: 3, more: 1 }, { n: 4 }]) {
      await bench.commit(['a', more])
      expect((await bench.run()).report?.error).toBeNull()
    }
    expect(await harness.rows('things')).toMatchObject([{ key: 'b' }, { key: 'a', record: { n: 4 } }])
    expect(await queryFile(harness.file, 'select index_name from duckdb_indexes()')).toEqual([{ index_name: 'mine' }])
    await queryFile(harness.file, `create unique index strict on "dest ""x""".things (_key)`)
    await bench.commit(['a', { n: 5 }])
    expect((await bench.run()).report?.error).toEqual({
      code: 'DESTINATION_FOREIGN',
      message: expect.stringContaining('Drop the unique index or the constraint that you added'),
    })
    await queryFile(harness.file, 'drop index "dest ""x""".strict')
    expect((await bench.run()).report?.error).toBeNull()
    expect(await harness.rows('things')).toMatchObject([{ key: 'b' }, { key: 'a', record: { n: 5 } }])
  })
})

const HOLDER = `import { DuckDBInstance } from '@duckdb/node-api'
  await DuckDBInstance.create(process.argv[1])
  console.log('open')
  setInterval(() => {}, 1_000)`

async function openBench() {
  const harness = await openDuckdbHarness()
  const bench = await DestinationBench.open(harness)
  onTestFinished(async () => {
    await bench.store.close()
    await harness.close()
  })
  return { bench, harness }
}

function openSession(destination: Destination): Promise<DestinationSession> {
  return destination.open({ tenant: 'default', signal: new AbortController().signal })
}

async function createDatabase(file: string): Promise<string> {
  const instance = await DuckDBInstance.create(file)
  instance.closeSync()
  return file
}
