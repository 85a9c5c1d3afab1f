import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/contract/index.ts'
import type { ColumnType, TableColumn } from '../../../src/stores/kit/tables/column.ts'
import { RecordEncoder } from '../../../src/stores/kit/tables/encode-record.ts'
import { BinaryWriter, sqlTypeOf } from '../../../src/stores/postgres/binary-values.ts'
import { COLUMN_DIALECT } from '../../../src/stores/postgres/table.ts'
import { RecordTranscoder } from '../../../src/stores/postgres/transcode-record.ts'
import { parseJson, stringifyJson } from '../../../src/values/json.ts'
import { columnArbitrary, recordArbitrary } from './arbitrary-records.ts'

describe('a record that is written from its text', () => {
  test('has the columns of the parsed record, or is left to the parser', () => {
    let accepted = 0
    fc.assert(
      fc.property(
        fc.uniqueArray(columnArbitrary(), { selector: ({ member }) => member, maxLength: 6 }),
        fc.array(recordArbitrary(), { minLength: 1, maxLength: 6 }),
        (columns, records) => {
          for (const record of records) {
            const text = stringifyJson(record)
            if (compare(columns, text) !== null) accepted++
            // Fields that all have a column.
            const known = Object.fromEntries(Object.entries(record).filter(([name]) => hasMember(columns, name)))
            if (compare(columns, stringifyJson(known as JsonObject)) !== null) accepted++
          }
        },
      ),
      { numRuns: 3_000 },
    )
    expect(accepted).toBeGreaterThan(500)
  })

  test.each<[ColumnType, string[], string[]]>([
    [
      'text',
      ['"plain"', '"é 𝄞 漢字"', '"a\\"b\\\\"', '"line\\nbreak"', '"\\u00e9"', '""', `"${'x'.repeat(100)}"`],
      ['1', '{}'],
    ],
    ['bigint', ['0', '-5', '999999999999999'], ['1.0', '1e3', '-0', '9007199254740993', '9007199254740992', '"1"']],
    ['double', ['0', '0.1', '-1.5', '123456.789', '0.000001', '1.0'], ['-0', '-0.0', '1e300', '0.30000000000000004']],
    ['boolean', ['true', 'false'], ['0', '"true"']],
    [
      'json',
      ['{"a":[1,-2,0.5,"x\\n"],"b":null}', '[]', '"text"', 'true', '{"a":"1.0"}'],
      ['[1.0]', '[1e2]', '[-0]', '[9007199254740993]', '["\\u0041"]'],
    ],
    [
      'timestamp',
      ['"2026-01-02T03:04:05.678Z"', '"2026-12-31T03:04:05.678Z"', '"0001-01-01T00:00:00.000Z"'],
      [
        '"2026-13-02T03:04:05.678Z"',
        '"2026-01-02T03:04:05Z"',
        '"0000-01-02T03:04:05.678Z"',
        '"2026-01-02T24:04:05.678Z"',
      ],
    ],
    ['uuid', ['"6f9619ff-8b86-d011-b42d-00c04fc964ff"'], ['"6F9619FF-8B86-D011-B42D-00C04FC964FF"']],
    ['numeric', ['1.5', '-3'], ['1e30', '12345678901234567890']],
    ['text[]', ['["a",null]', '[]'], ['[1]', '"a"']],
  ])('as %s', (type, accepted, refused) => {
    const format = type === 'timestamp' ? { format: '3Z' } : {}
    const columns = [columnOf('a', 'text'), { ...columnOf('v', type), ...format }, columnOf('z', 'bigint')]
    const write = (value: string): Buffer | null => compare(columns, `{"a":"first","v":${value},"z":7}`)
    expect(accepted.filter((value) => write(value) === null)).toEqual([])
    expect(refused.filter((value) => write(value) !== null)).toEqual([])
  })

  test('may have its fields in any order, and lack some', () => {
    const columns = [
      columnOf('a', 'text'),
      columnOf('b', 'bigint'),
      { ...columnOf('c', 'text'), none: 'absent' as const },
    ]
    expect(compare(columns, '{"b":1,"a":"x"}')).not.toBeNull()
    expect(compare(columns, '{"c":"y","b":null,"a":null}')).not.toBeNull()
    // In `b`, SQL null means that the field is null.
    expect(compare(columns, '{"a":"x"}')).toBeNull()
    expect(compare(columns, '{"b":1,"a":"x","c":null}')).toBeNull()
    expect(compare(columns, '{"b":1,"a":"x","d":1}')).toBeNull()
  })

  test('is left to the parser when it is long, or not as JSON.stringify writes it', () => {
    const columns = [columnOf('a', 'text')]
    expect(compare(columns, `{"a":"${'é'.repeat(16_000)}"}`)).not.toBeNull()
    expect(compare(columns, `{"a":"${'é'.repeat(20_000)}"}`)).toBeNull()
    for (const text of ['{ "a":"x"}', '{"a": "x"}', '{"a":"x" }', '{"\\u0061":"x"}'])
      expect(compare(columns, text), text).toBeNull()
    // A shorter text after a longer one.
    for (const text of ['{"a":"x', '{"a":"x"', '{"a"', '{', '', '{"a":"x"}}', '{"a":"x"},'])
      expect(write(columns, text), text).toBeNull()
  })
})

function columnOf(member: string, type: ColumnType): TableColumn {
  return { member, name: member, type, none: 'null', since: 0 }
}

function hasMember(columns: readonly TableColumn[], name: string): boolean {
  return columns.some(({ member }) => member === name)
}

/** Returns the bytes of the columns, which must be those of the parsed record; null when they were refused. */
function compare(columns: readonly TableColumn[], text: string): Buffer | null {
  const written = write(columns, text)
  if (written === null) return null
  const { values, extra, needsColumns, misfits } = new RecordEncoder(columns, COLUMN_DIALECT).encode(
    parseJson(text) as JsonObject,
  )
  expect({ text, extra, needsColumns, misfits }).toEqual({ text, extra: null, needsColumns: false, misfits: null })
  const writer = new BinaryWriter(1_000)
  for (const [at, { type }] of columns.entries()) writer.value(sqlTypeOf(type), values[at] ?? null)
  expect(written.toString('hex'), text).toBe(writer.toBuffer().toString('hex'))
  return written
}

function write(columns: readonly TableColumn[], text: string): Buffer | null {
  const writer = new BinaryWriter(10)
  writer.int32(7)
  const isWritten = new RecordTranscoder(columns, new RecordEncoder(columns, COLUMN_DIALECT)).write(writer, text)
  expect(writer.length > 4).toBe(isWritten && columns.length > 0)
  return isWritten ? writer.toBuffer().subarray(4) : null
}
