import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '../../../src/contract/index.ts'
import type { ColumnDialect, TableColumn } from '../../../src/stores/kit/tables/column.ts'
import { RecordDecoder } from '../../../src/stores/kit/tables/decode-record.ts'
import { RecordEncoder, type ColumnValue } from '../../../src/stores/kit/tables/encode-record.ts'
import { growColumns } from '../../../src/stores/kit/tables/grow-columns.ts'
import { parseJson, sameJson, stringifyJson } from '../../../src/values/json.ts'

const DIALECTS: Record<string, ColumnDialect> = {
  'a database that keeps texts': { keepsTimestampText: true, keepsJsonText: true },
  'a database with types of its own': { keepsTimestampText: false, keepsJsonText: false },
}
const LIMITS = { reserved: ['_key', '_extra'], nameBytesMax: 63, columnsMax: 6 }

describe.each(Object.entries(DIALECTS))('records in typed columns of %s', (_, dialect) => {
  test('every record is rebuilt exactly, whatever records came before it', () => {
    fc.assert(fc.property(fc.array(fc.array(recordArbitrary(), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }), (pages) => {
      let columns: readonly TableColumn[] = []
      let sequence = 0
      const rows: Array<{ text: string; sequence: number; extra: string | null; values: Map<string, ColumnValue> }> = []
      for (const page of pages) {
        const records = page.map((record) => parseJson(stringifyJson(record)) as JsonObject)
        columns = growColumns(columns, records, sequence + 1, LIMITS)
        const encoder = new RecordEncoder(columns, dialect)
        for (const record of records) {
          const { values, extra } = encoder.encode(record)
          const named = columns.flatMap(({ name }, at) => (name === null ? [] : [[name, values[at]!] as const]))
          rows.push({ text: stringifyJson(record), sequence: ++sequence, extra, values: new Map(named) })
        }
      }
      // Every row is read with the columns the table has in the end.
      const decoder = new RecordDecoder<ColumnValue>(columns, writeValue)
      for (const { text, sequence: at, extra, values } of rows) {
        const decoded = decoder.decode(at, extra, (place) => values.get(columns[place]!.name!) ?? null)
        expect(sameJson(decoded, text), `${text} came back as ${decoded}`).toBe(true)
      }
    }), { numRuns: 2_000 })
  })

  test('ordinary records need no `_extra`: a null, a late member, instants in one form, nested values', () => {
    const first: JsonObject[] = [
      { id: 1, at: '2026-01-02T03:04:05Z', on: '2026-01-02', note: null, tags: ['a'], ratio: 0.5, on_sale: true },
      { id: 2, at: '2026-01-02T03:04:06Z', on: '2026-01-03', note: null, tags: [], ratio: 2, on_sale: false },
    ]
    let columns = growColumns([], first, 1, { ...LIMITS, columnsMax: 100 })
    expect(columns.map(({ member, type, name }) => [member, name === null ? null : type])).toEqual([
      ['id', 'bigint'], ['at', 'timestamp'], ['on', 'date'], ['note', null], ['tags', 'json'], ['ratio', 'double'], ['on_sale', 'boolean'],
    ])
    expect(first.map((record) => new RecordEncoder(columns, dialect).encode(record).extra)).toEqual([null, null])
    const second: JsonObject[] = [{ ...first[0]!, note: 'late', added: null }, { ...first[1]!, added: 'x' }]
    columns = growColumns(columns, second, 3, { ...LIMITS, columnsMax: 100 })
    expect(second.map((record) => new RecordEncoder(columns, dialect).encode(record).extra)).toEqual([null, null])
  })
})

function recordArbitrary(): fc.Arbitrary<JsonObject> {
  const scalar = fc.oneof(
    fc.constantFrom<JsonValue>(null, true, false, 0, -1, 0.1, 1e21, 1e-7, 5e-324, 2 ** 53, -(2n ** 63n), 2n ** 63n, 10n ** 30n, ''),
    fc.constantFrom('2026-01-02T03:04:05Z', '2026-01-02T03:04:05.678Z', '2026-01-02T05:04:05+02:00', '2016-12-31T23:59:60Z'),
    fc.constantFrom('2026-02-30', '0000-01-01', '2026-01-02', '9999-12-31T23:59:59.9999999Z', 'null', '{"a":1}'),
    fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.bigInt(), fc.string(),
  ) as fc.Arbitrary<JsonValue>
  const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(nameArbitrary(), scalar, { maxKeys: 3 })) as fc.Arbitrary<JsonValue>
  return fc.dictionary(nameArbitrary(), value, { maxKeys: 8, noNullPrototype: true }) as fc.Arbitrary<JsonObject>
}

function nameArbitrary(): fc.Arbitrary<string> {
  return fc.constantFrom('a', 'A', 'b', 'c', 'd', 'e', 'f', 'g', '__proto__', 'toString', 'constructor', '', '_key', 'x y')
}

/** What a database gives back of each type. */
function writeValue(value: ColumnValue, { type }: TableColumn): string {
  if (type === 'json') return value as string
  return stringifyJson(value)
}
