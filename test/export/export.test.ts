import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, Store } from '../../src/contract/index.ts'
import { exportToFile, type ExportResult } from '../../src/export/export-to-file.ts'
import { DATABASE, planOf, remove, EngineFixture, storeWith, upsert } from '../engine/engine-fixture.ts'

let scene: EngineFixture
let folder: string
beforeEach(async () => {
  scene = await EngineFixture.open()
  folder = mkdtempSync(join(tmpdir(), 'tidemark-export-'))
})
afterEach(async () => {
  await scene.close()
  rmSync(folder, { recursive: true, force: true })
})

const land = (...changes: Change[]): Promise<unknown> =>
  scene.run(planOf({ execute: async () => ({ changes, hasMore: false }) }))
const write = (
  name: string,
  more: { sinceLast?: boolean; database?: string | null; store?: Store } = {},
): Promise<ExportResult> =>
  exportToFile(more.store ?? scene.store, {
    database: more.database === undefined ? DATABASE : more.database,
    file: join(folder, name),
    sinceLast: more.sinceLast ?? false,
  })

/** As another program reads it, every value as text beside its type. */
async function duck(query: string): Promise<Record<string, unknown>[]> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  const rows = (await connection.runAndReadAll(query.replaceAll('$', folder))).getRowObjectsJson()
  connection.closeSync()
  instance.closeSync()
  return rows as Record<string, unknown>[]
}

const ODD = [
  upsert('a', {
    big: 9223372036854775807n,
    small: 1,
    huge: 2n ** 70n,
    price: 1,
    wide: 9007199254740993n,
    yes: true,
    txt: 'ünï "q",\n',
    list: [1, { n: 9007199254740993n }],
    mixed: 'x',
    _key: 'own',
    nothing: null,
  }),
  upsert(
    'b',
    { big: -1, small: 2, huge: 1, price: 1.5, wide: 0.5, yes: false, txt: '', list: null, mixed: 7 },
    { at: '2026-01-31T12:00:00.123456Z' },
  ),
]
const EXPECTED = [
  {
    _key: 'a',
    big: '9223372036854775807',
    small: '1',
    huge: '1180591620717411303424',
    price: 1,
    wide: '9007199254740993',
    yes: true,
    txt: 'ünï "q",\n',
    list: '[1,{"n":9007199254740993}]',
    mixed: '"x"',
    _key_: 'own',
    nothing: null,
  },
  {
    _key: 'b',
    big: '-1',
    small: '2',
    huge: '1',
    price: 1.5,
    wide: '0.5',
    yes: false,
    txt: '',
    list: null,
    mixed: '7',
    _key_: null,
    nothing: null,
  },
]

describe('a database', () => {
  test('to Parquet, with exact types, as DuckDB reads it', async () => {
    await land(...ODD)
    expect(await write('t.parquet')).toEqual({ file: join(folder, 't.parquet'), rows: 2, headSequence: 2 })
    expect(
      await duck("select * exclude (_action, _sequence, _committed_at, _upstream_at) from '$/t.parquet' order by _key"),
    ).toEqual(EXPECTED)
    const types = await duck("select column_name, column_type from (describe select * from '$/t.parquet')")
    expect(Object.fromEntries(types.map((row) => [row['column_name'], row['column_type']]))).toMatchObject({
      big: 'BIGINT',
      small: 'BIGINT',
      huge: 'VARCHAR',
      price: 'DOUBLE',
      wide: 'VARCHAR',
      yes: 'BOOLEAN',
      txt: 'VARCHAR',
      list: 'VARCHAR',
      _sequence: 'BIGINT',
      _committed_at: expect.stringContaining('TIMESTAMP'),
    })
    expect(
      await duck("select _sequence, _upstream_at, epoch_ms(_committed_at) as at from '$/t.parquet' where _key = 'b'"),
    ).toEqual([{ _sequence: '2', _upstream_at: '2026-01-31T12:00:00.123456Z', at: String(scene.clock.now()) }])
    expect(readdirSync(folder)).toEqual(['t.parquet'])
  })

  test('to CSV: nothing is null, the empty text is quoted', async () => {
    await land(...ODD)
    await write('t.csv')
    expect(
      await duck(
        "select _key, big, txt, list, nothing from read_csv('$/t.csv', all_varchar = true, allow_quoted_nulls = false) order by _key",
      ),
    ).toEqual(EXPECTED.map(({ _key, big, txt, list, nothing }) => ({ _key, big, txt, list, nothing })))
  })

  test('to NDJSON: the record is the text that landed', async () => {
    await land(...ODD)
    await write('t.ndjson')
    const [first] = readFileSync(join(folder, 't.ndjson'), 'utf8').split('\n')
    expect(first).toContain(`"record":${(await scene.store.row(DATABASE, 'a'))!.text}}`)
    expect(await duck("select count(*) as n from '$/t.ndjson'")).toEqual([{ n: '2' }])
  })

  test('with soft deletes, of live rows; a deletion is one change since the last time', async () => {
    const softly = (...changes: Change[]): Promise<unknown> =>
      scene.run(
        planOf({
          databases: [{ name: DATABASE, deletes: 'soft' }],
          execute: async () => ({ changes, hasMore: false }),
        }),
      )
    await softly(upsert('a', { n: 1 }), upsert('b', { n: 1 }))
    expect(await write('since.ndjson', { sinceLast: true })).toMatchObject({ rows: 2 })
    await softly(remove('a'))
    expect((await scene.store.schema(DATABASE))!.deletedRows).toBe(1)
    expect(await write('t.ndjson')).toMatchObject({ rows: 1 })
    expect(await duck("select _key from '$/t.ndjson'")).toEqual([{ _key: 'b' }])
    expect(await write('since.ndjson', { sinceLast: true })).toMatchObject({ rows: 1 })
    expect(await duck("select _key, _action from '$/since.2-3.ndjson'")).toEqual([{ _key: 'a', _action: 'deleted' }])
    await write('all.ndjson', { database: null })
    expect((await duck("select _action from '$/all.ndjson'")).map((row) => row['_action'])).toEqual([
      'created',
      'created',
      'deleted',
    ])
  })

  test('of more rows than a page and a group hold', async () => {
    await land(
      ...Array.from({ length: 41_003 }, (_, index) => upsert(`k${String(index).padStart(6, '0')}`, { n: index })),
    )
    expect(await write('t.parquet')).toMatchObject({ rows: 41_003 })
    expect(
      await duck("select count(*) as n, count(distinct _key) as keys, sum(n)::bigint as sum from '$/t.parquet'"),
    ).toEqual([{ n: '41003', keys: '41003', sum: String((41_002 * 41_003) / 2) }])
  })

  test('a file appears atomically, and an unknown database or extension is refused', async () => {
    await land(...ODD)
    writeFileSync(join(folder, 't.csv'), 'before')
    let pages = 0
    const broken = storeWith(scene.store, {
      rows: async (query) => {
        if (++pages > 2) throw new Error('gone')
        return await scene.store.rows({ ...query, limit: 1 })
      },
    })
    await expect(write('t.csv', { store: broken })).rejects.toThrow('gone')
    expect(readFileSync(join(folder, 't.csv'), 'utf8')).toBe('before')
    expect(readdirSync(folder)).toEqual(['t.csv'])
    await expect(write('t.csv', { database: 'nowhere' })).rejects.toMatchObject({ code: 'DATABASE_UNKNOWN' })
    await expect(write('t.xlsx')).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })

  test.each<[string, Change, object]>([
    ['of another type', upsert('b', { n: 'text' }), { n: '"text"' }],
    ['of a new name', upsert('b', { n: 3, more: 1 }), { n: '3', more: '1' }],
  ])('a column %s that comes while it is exported is in it: it begins again', async (_, change, expected) => {
    await land(upsert('a', { n: 1 }), upsert('z', { n: 2 }))
    let looked = 0
    const moving = storeWith(scene.store, {
      databases: async () => {
        const known = await scene.store.databases()
        if (++looked === 1) await land(change)
        return known
      },
    })
    await write('t.parquet', { store: moving })
    expect(looked).toBe(2)
    expect(await duck("select * from '$/t.parquet' where _key = 'b'")).toMatchObject([expected])
  })
})

describe('since the last time', () => {
  const parts = (): string[] =>
    readdirSync(folder)
      .filter((name) => !name.endsWith('.position'))
      .toSorted()

  test('every change is in exactly one file', async () => {
    await land(upsert('a', { n: 1 }), upsert('b', { n: 1 }))
    expect(await write('t.ndjson', { sinceLast: true })).toMatchObject({ rows: 2, headSequence: 2 })
    expect(await write('t.ndjson', { sinceLast: true })).toEqual({ file: null, rows: 0, headSequence: 2 })
    await land(upsert('a', { n: 2 }), remove('b'), upsert('c', { n: 3 }))
    expect(await write('t.ndjson', { sinceLast: true })).toMatchObject({ rows: 3, headSequence: 5 })
    expect(parts()).toEqual(['t.0-2.ndjson', 't.2-5.ndjson'])
    const changes = await duck(
      "select _key, _action, _sequence, record.n as n from read_json('$/t.*.ndjson') order by _sequence",
    )
    expect(changes.map((row) => Object.values(row).join(' '))).toEqual([
      'a row 1 1',
      'b row 2 1',
      'a updated 3 2',
      'b deleted 4 ',
      'c created 5 3',
    ])
  })

  test('a row that changes during the first export is in the next one, and in no other', async () => {
    await land(upsert('a', { n: 1 }), upsert('b', { n: 1 }))
    let pages = 0
    const moving = storeWith(scene.store, {
      rows: async (query) => {
        if (++pages === 1) await land(upsert('b', { n: 2 }), upsert('c', { n: 1 }))
        return await scene.store.rows(query)
      },
    })
    await write('t.csv', { sinceLast: true, store: moving })
    await write('t.csv', { sinceLast: true })
    expect(await duck("select _key, n::int as n from read_csv('$/t.*.csv') order by _sequence")).toEqual([
      { _key: 'a', n: 1 },
      { _key: 'b', n: 2 },
      { _key: 'c', n: 1 },
    ])
  })

  test('killed between writing the file and its cursor, it does not export twice', async () => {
    await land(upsert('a', { n: 1 }))
    await write('t.ndjson', { sinceLast: true })
    const note = readFileSync(join(folder, 't.ndjson.position'))
    await land(upsert('b', { n: 1 }))
    await write('t.ndjson', { sinceLast: true })
    writeFileSync(join(folder, 't.ndjson.position'), note)
    await land(upsert('c', { n: 1 }))
    expect(await write('t.ndjson', { sinceLast: true })).toMatchObject({ rows: 1 })
    // Nor when the note is lost: the file names contain the sequences.
    rmSync(join(folder, 't.ndjson.position'))
    await land(upsert('d', { n: 1 }))
    expect(await write('t.ndjson', { sinceLast: true })).toMatchObject({ rows: 1 })
    expect(parts()).toEqual(['t.0-1.ndjson', 't.1-2.ndjson', 't.2-3.ndjson', 't.3-4.ndjson'])
  })

  test('a restored store, the cursor of another export and a damaged cursor are refused', async () => {
    await land(upsert('a', { n: 1 }))
    await write('t.ndjson', { sinceLast: true })
    const note = join(folder, 't.ndjson.position')
    const place = JSON.parse(readFileSync(note, 'utf8')) as object
    for (const [changed, code] of [
      [{ sequence: 9 }, 'HISTORY_LOST'],
      [{ committedAt: 1 }, 'HISTORY_LOST'],
      [{ database: 'other' }, 'ARGUMENT_INVALID'],
    ] as const) {
      writeFileSync(note, JSON.stringify({ ...place, ...changed }))
      await expect(write('t.ndjson', { sinceLast: true }), JSON.stringify(changed)).rejects.toMatchObject({ code })
    }
    writeFileSync(note, '{')
    await expect(write('t.ndjson', { sinceLast: true })).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
  })

  test('compacted log entries cause an error', async () => {
    await land(upsert('a', { n: 1 }), upsert('b', { n: 1 }))
    await write('t.ndjson', { sinceLast: true })
    await land(remove('b'))
    const compacted = storeWith(scene.store, {
      feed: async (query) => ({ ...(await scene.store.feed(query)), floor: 3 }),
    })
    await expect(write('t.ndjson', { sinceLast: true, store: compacted })).rejects.toMatchObject({
      code: 'HISTORY_LOST',
    })
  })
})

test('the log of all databases, record by record as it landed', async () => {
  await land(upsert('a', { n: 9007199254740993n }))
  await land(remove('a'))
  await write('log.parquet', { database: null })
  expect(await duck("select _database, _key, _action, record from '$/log.parquet' order by _sequence")).toEqual([
    { _database: DATABASE, _key: 'a', _action: 'created', record: '{"n":9007199254740993}' },
    { _database: DATABASE, _key: 'a', _action: 'deleted', record: null },
  ])
})
