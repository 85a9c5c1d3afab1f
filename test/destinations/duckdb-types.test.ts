import { describe, expect, onTestFinished, test } from 'vitest'
import type { ColumnType, JsonObject, JsonValue } from '../../src/contract/index.ts'
import { duckdb } from '../../src/destinations/duckdb/destination.ts'
import { stringifyJson } from '../../src/values/json.ts'
import { openDuckdbHarness, queryFile, readRows } from './duckdb-harness.ts'

/** The column, values that it holds exactly with their text in SQL, and values that are only in `_extra`. */
interface TypeCase {
  readonly sql: string
  readonly exact: ReadonlyArray<readonly [value: JsonValue, shown: string]>
  readonly others: readonly JsonValue[]
}

const UUID = '0b5ab5d6-8c1e-4a3e-9d8a-ffffffffffff'
const TYPES: Partial<Record<ColumnType, TypeCase>> = {
  bigint: {
    sql: 'BIGINT',
    exact: [
      [1, '1'],
      [9223372036854775807n, '9223372036854775807'],
      [-9223372036854775808n, '-9223372036854775808'],
    ],
    others: [9223372036854775808n, 0.5, '1', true, [1]],
  },
  double: {
    sql: 'DOUBLE',
    exact: [
      [0.1, '0.1'],
      [1e300, '1e+300'],
      [5e-324, '5e-324'],
      [-1.7976931348623157e308, '-1.7976931348623157e+308'],
    ],
    others: [12345678901234567890n, 'x'],
  },
  boolean: {
    sql: 'BOOLEAN',
    exact: [
      [true, 'true'],
      [false, 'false'],
    ],
    others: ['true', 1],
  },
  text: {
    sql: 'VARCHAR',
    exact: [
      ['', ''],
      ['ü\u{1f600}\n\t"\\\'', 'ü\u{1f600}\n\t"\\\''],
      ['a longer text than twelve bytes', 'a longer text than twelve bytes'],
    ],
    others: [1, true, { a: 1 }],
  },
  timestamp: {
    sql: 'TIMESTAMP WITH TIME ZONE',
    exact: [
      ['2026-01-31T12:00:00.123456Z', '2026-01-31 12:00:00.123456+00'],
      ['0001-01-01T00:00:00.000001Z', '0001-01-01 00:00:00.000001+00'],
      ['9999-12-31T23:59:59.999999Z', '9999-12-31 23:59:59.999999+00'],
      ['1969-12-31T23:59:59.999999Z', '1969-12-31 23:59:59.999999+00'],
    ],
    others: ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.5+02:00', '2016-12-31T23:59:60.000000Z', 'later', 5],
  },
  datetime: {
    sql: 'TIMESTAMP',
    exact: [
      ['2026-01-31 12:00:00.500', '2026-01-31 12:00:00.5'],
      ['0001-01-01 00:00:00.001', '0001-01-01 00:00:00.001'],
    ],
    others: ['2026-01-31T12:00:00.500', '2026-01-31 12:00:00', 'x'],
  },
  date: {
    sql: 'DATE',
    exact: [
      ['2026-01-31', '2026-01-31'],
      ['0001-01-01', '0001-01-01'],
      ['9999-12-31', '9999-12-31'],
      ['1969-12-31', '1969-12-31'],
    ],
    others: ['2026-02-30', '', 1],
  },
  time: {
    sql: 'TIME',
    exact: [
      ['00:00:00', '00:00:00'],
      ['23:59:59.999999', '23:59:59.999999'],
    ],
    others: ['24:00:00', '12:00', 1],
  },
  uuid: {
    sql: 'UUID',
    exact: [
      [UUID, UUID],
      ['00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'],
      ['ffffffff-ffff-ffff-ffff-ffffffffffff', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
    ],
    others: [UUID.toUpperCase(), 'x'],
  },
  bytes: {
    sql: 'BLOB',
    exact: [
      ['', ''],
      ['AP9BQg==', '\\x00\\xFFAB'],
    ],
    others: ['AP9BQg', '!!', 1],
  },
  decimal: {
    sql: 'DECIMAL(38,18)',
    exact: [
      ['1.50', '1.500000000000000000'],
      ['-0.25', '-0.250000000000000000'],
      ['99999999999999999999.99', '99999999999999999999.990000000000000000'],
    ],
    others: ['1.5', '2', '100000000000000000000.00', '0.1234567890123456785', '1e5', '-0.00', 7],
  },
  numeric: {
    sql: 'DECIMAL(38,18)',
    exact: [
      [1, '1.000000000000000000'],
      [0.1, '0.100000000000000000'],
      [0.30000000000000004, '0.300000000000000040'],
      [12345678901234567890n, '12345678901234567890.000000000000000000'],
    ],
    others: [123456789012345678901n, 1e300, 5e-324, '1'],
  },
  json: {
    sql: 'JSON',
    exact: [
      [{ b: 1, a: [null, 'x'] }, '{"b":1,"a":[null,"x"]}'],
      ['text', '"text"'],
      [[], '[]'],
      [{ n: 12345678901234567890123n }, '{"n":12345678901234567890123}'],
    ],
    others: [1e300],
  },
  'bigint[]': {
    sql: 'BIGINT[]',
    exact: [
      [[1, null, -2], '[1, NULL, -2]'],
      [[], '[]'],
    ],
    others: [[1, 'x'], 1, [0.5]],
  },
  'text[]': { sql: 'VARCHAR[]', exact: [[['a', 'b, c', null], "[a, 'b, c', NULL]"]], others: [[1], 'a'] },
  'decimal[]': {
    sql: 'DECIMAL(38,18)[]',
    exact: [[['1.5', null], '[1.500000000000000000, NULL]']],
    others: [['1.50'], ['100000000000000000000']],
  },
  'timestamp[]': {
    sql: 'TIMESTAMP WITH TIME ZONE[]',
    exact: [[['2026-01-31T12:00:00Z', null], "['2026-01-31 12:00:00+00', NULL]"]],
    others: [['2026-01-31']],
  },
  'json[]': { sql: 'JSON[]', exact: [[[{ a: 1 }, 'x'], '[{"a":1}, "x"]']], others: [1] },
  'uuid[]': { sql: 'UUID[]', exact: [[[UUID], `[${UUID}]`]], others: [['x']] },
  'bytes[]': { sql: 'BLOB[]', exact: [[['AA=='], '[\\x00]']], others: [['!']] },
}

describe('values in DuckDB', () => {
  test('have the type of the store, are exact, and show in SQL', async () => {
    const file = await write(
      Object.entries(TYPES).map(([type]) => ({ member: nameOf(type), type: type as ColumnType })),
      Object.entries(TYPES).flatMap(([type, { exact }]) => exact.map(([value]) => ({ [nameOf(type)]: value }))),
      [
        ...Object.entries(TYPES).flatMap(([type, { others }]) => others.map((value) => ({ [nameOf(type)]: value }))),
        ...Object.keys(TYPES).map((type) => ({ [nameOf(type)]: null })),
      ],
    )
    const described = await queryFile(file, 'select column_name, column_type from (describe things)')
    expect(Object.fromEntries(described.map(({ column_name: name, column_type: type }) => [name, type]))).toMatchObject(
      Object.fromEntries(Object.entries(TYPES).map(([type, { sql }]) => [nameOf(type), sql])),
    )
    for (const [type, { exact }] of Object.entries(TYPES)) {
      const name = nameOf(type)
      const shown = await queryFile(
        file,
        `select ${name}::varchar as text from things where ${name} is not null and json_extract(_extra, '$.values.${name}') is null order by _sequence`,
      )
      expect([type, shown.map(({ text }) => text)]).toEqual([type, exact.map(([, text]) => text)])
    }
  })

  test('decimals keep 18 places, or as many as leave room for the first values', async () => {
    const file = await write(
      [
        { member: 'wei', type: 'decimal' },
        { member: 'late', type: 'decimal' },
      ],
      [{ wei: '123456789012345678901234567890' }, { wei: '0.5' }, { wei: '0.123456789' }, { wei: null, late: null }],
      [{ wei: null, late: '1.50' }, { wei: null, late: '2.25' }, { wei: '7' }],
    )
    const rows = await queryFile(
      file,
      'select wei::varchar as wei, late::varchar as late, _extra from things order by _key',
    )
    expect(rows).toEqual([
      { wei: '123456789012345678901234567890.00000000', late: null, _extra: null },
      { wei: '0.50000000', late: null, _extra: null },
      { wei: '0.12345679', late: null, _extra: '{"values":{"wei":"0.123456789"}}' },
      { wei: null, late: null, _extra: expect.stringContaining('late') },
      { wei: null, late: '1.500000000000000000', _extra: null },
      { wei: null, late: '2.250000000000000000', _extra: null },
      { wei: '7.00000000', late: null, _extra: null },
    ])
  })

  test('a table of 2,500 fields has 2,000 columns, and the rest in _extra', async () => {
    const wide = Object.fromEntries(Array.from({ length: 2_500 }, (_, n) => [`f${n}`, n]))
    const columns = Object.keys(wide).map((member) => ({ member, type: 'bigint' as const }))
    const file = await write(columns, [wide])
    const [row] = await queryFile(file, 'select f1999, _extra from things')
    expect(row?.['f1999']).toBe('1999')
    expect(JSON.parse(row?.['_extra'] as string)).toMatchObject({ values: { f2000: 2000, f2499: 2499 } })
  })

  test('many new fields leave the rows of a table as they are', async () => {
    const more = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}`, n]))
    const columns = ['n', ...Object.keys(more)].map((member) => ({ member, type: 'bigint' as const }))
    const file = await write(columns.slice(0, 1), [{ n: 1 }, { n: 2 }], { columns, records: [{ n: 3, ...more }] })
    expect(await queryFile(file, 'select n, f29 from things order by _key')).toEqual([
      { n: '1', f29: null },
      { n: '2', f29: null },
      { n: '3', f29: '29' },
    ])
  })
})

/** Applies batches of records, and compares the rows with them. */
async function write(
  columns: ReadonlyArray<{ member: string; type: ColumnType }>,
  ...batches: ReadonlyArray<readonly JsonObject[] | { columns: typeof columns; records: readonly JsonObject[] }>
): Promise<string> {
  const harness = await openDuckdbHarness()
  onTestFinished(() => harness.close())
  const file = `${harness.folder}/types.duckdb`
  const session = await duckdb({ file }).open({ tenant: 'default', signal: new AbortController().signal })
  const token = (sequence: number) => ({ storeId: 's', epoch: 1, sequence, committedAt: 1, after: null })
  let sequence = 0
  const expected: Array<{ key: string; sequence: number; record: JsonObject }> = []
  for (const [at, batch] of batches.entries()) {
    const from = sequence
    const { records, ...given } = 'records' in batch ? batch : { columns, records: batch }
    const schema = { database: 'things', mode: 'mirror' as const, ...given }
    const changes = records.map((record) => {
      const key = `k${String(++sequence).padStart(5, '0')}`
      expected.push({ key, sequence, record })
      return { key, action: 'created' as const, sequence, committedAt: 1, record, text: stringifyJson(record) }
    })
    const isFirst = at === 0
    const outcome = await session.apply(
      { schema, target: isFirst ? 'loading' : 'live', isFirst, isLast: isFirst, changes },
      { previous: isFirst ? null : token(from), next: token(sequence) },
    )
    expect(outcome).toBe('applied')
  }
  await session.close()
  expect(await readRows(file, 'things', 'main')).toEqual(expected)
  return file
}

function nameOf(type: string): string {
  return `c_${type.replace('[]', '_list')}`
}
