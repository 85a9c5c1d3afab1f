import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterEach, expect, test } from 'vitest'
import { files } from '../../../src/sources/files/source.ts'
import { contextOf } from '../sql/cases.ts'
import { FilesFixture } from './files-fixture.ts'

let box: FilesFixture
afterEach(() => box.close())

/** A file as another program writes it. */
async function writeParquet(query: string, name: string, options = ''): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run("set timezone = 'UTC'")
  await connection.run(`copy (${query}) to '${join(box.folder, name)}' (format parquet${options})`)
  connection.closeSync()
  instance.closeSync()
}

test('R28 values of Parquet come as they are: large integers, decimals, moments with every digit, bytes, lists', async () => {
  box = await FilesFixture.open()
  await writeParquet(
    `select 9223372036854775807::bigint as big, 18446744073709551615::ubigint as ubig, -7::int as small, 1.10::decimal(4, 2) as price, -0.05::decimal(4, 2) as cost,
    12345678901234567890123456789.012345678::decimal(38, 9) as exact, 0.1::double as f, 'nan'::double as nan, true as yes, 'ünï' as txt, '\\x00\\xFF'::blob as b, null::int as nothing,
    '2026-01-31 12:00:00.123456+00'::timestamptz as at, '1969-12-31 23:59:59.999999'::timestamp as plain, '2026-01-31 12:00:00.123456789'::timestamp_ns as ns, '2026-01-31'::date as day,
    [1, 9007199254740993]::bigint[] as list, {'a': 1, 'b': 'x'} as obj, '7d444840-9dc0-11d1-b245-5ffdce74fad2'::uuid as id`,
    'a.parquet',
  )
  expect(await box.counts()).toEqual({ created: 1 })
  expect((await box.rows())['a.parquet#1']).toEqual({
    big: 9223372036854775807n,
    ubig: 18446744073709551615n,
    small: -7,
    price: '1.10',
    cost: '-0.05',
    exact: '12345678901234567890123456789.012345678',
    f: 0.1,
    nan: 'NaN',
    yes: true,
    txt: 'ünï',
    b: 'AP8=',
    nothing: null,
    at: '2026-01-31T12:00:00.123456Z',
    plain: '1969-12-31T23:59:59.999999',
    ns: '2026-01-31T12:00:00.123456789',
    day: '2026-01-31',
    list: [1, 9007199254740993n],
    obj: { a: 1, b: 'x' },
    id: '7d444840-9dc0-11d1-b245-5ffdce74fad2',
  })
})

test.each(['snappy', 'zstd', 'gzip'])(
  'a Parquet file packed with %s is read in pages, in the middle of its groups of rows too',
  async (codec) => {
    box = await FilesFixture.open()
    await writeParquet(
      'select i, (i::decimal(9, 2) / 100)::decimal(9, 2) as d from range(5000) t(i) order by i',
      'a.parquet',
      `, compression ${codec}, row_group_size 2048`,
    )
    const { execute } = files({ folder: box.folder, settleMs: 0, pageSize: 999 })
    const seen: unknown[] = []
    let page = await execute(undefined, contextOf())
    for (;;) {
      seen.push(...page.changes.map((change) => change.type === 'upsert' && change.record['i']))
      if (!page.hasMore) break
      page = await execute(page.nextState, contextOf())
    }
    expect(seen).toEqual(Array.from({ length: 5_000 }, (_, index) => index))
  },
)

test('decimals inside lists are refused instead of rounded', async () => {
  box = await FilesFixture.open()
  await writeParquet('select [0.1::decimal(30, 20)] as list', 'a.parquet')
  expect(await box.counts()).toEqual({ quarantined: 1 })
  expect((await box.stage.store.quarantineEntries())[0]!.message).toContain('"list" has decimals inside a list')
})

test('R28 values of JSON lines are exact, those of CSV stay the texts that they are, and no column is special', async () => {
  box = await FilesFixture.open({ csv: { delimiter: ';' } })
  box.put('a.ndjson', '{"n":9007199254740993,"d":"0.10","__proto__":1}\n')
  box.put('b.csv', 'id;__proto__;n\r\n007;x;9007199254740993\r\n')
  box.put('c.tsv', 'id;n\n1;2\n')
  await box.counts()
  const rows = await box.rows()
  expect(rows['a.ndjson#1']).toEqual(
    JSON.parse('{"n":0,"d":"0.10","__proto__":1}', (key, value: unknown) => (key === 'n' ? 9007199254740993n : value)),
  )
  expect(new Map(Object.entries(rows['b.csv#1']))).toEqual(
    new Map([
      ['id', '007'],
      ['__proto__', 'x'],
      ['n', '9007199254740993'],
    ]),
  )
})

test('columns may be named where no line names them', async () => {
  box = await FilesFixture.open({ csv: { columns: ['id', 'name'] }, pageSize: 1 })
  box.put('a.tsv', '1\tAnn\n2\tBo\n')
  await box.counts()
  expect(await box.rows()).toEqual({ 'a.tsv#1': { id: '1', name: 'Ann' }, 'a.tsv#2': { id: '2', name: 'Bo' } })
})
