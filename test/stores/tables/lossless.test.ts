import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '../../../src/contract/index.ts'
import type { ColumnDialect, TableColumn } from '../../../src/stores/kit/tables/column.ts'
import { RecordDecoder } from '../../../src/stores/kit/tables/decode-record.ts'
import { RecordEncoder, type ColumnValue } from '../../../src/stores/kit/tables/encode-record.ts'
import { growColumns } from '../../../src/stores/kit/tables/grow-columns.ts'
import { parseJson, equalsJson, stringifyJson } from '../../../src/values/json.ts'
import { columnArbitrary, recordArbitrary } from './arbitrary-records.ts'

const DIALECTS: Record<string, ColumnDialect> = {
  'a database that keeps texts': { preservesText: true, preservesJsonText: true, doubleMin: Number.EPSILON },
  'a database with types of its own': { preservesText: false, preservesJsonText: false, doubleMin: 0 },
}
const LIMITS = { reserved: ['_key', '_extra'], nameBytesMax: 63, columnsMax: 6 }

describe.each(Object.entries(DIALECTS))('records in typed columns of %s', (_, dialect) => {
  test('every record is rebuilt exactly, whatever records came before it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(recordArbitrary(), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
        (pages) => {
          let columns: readonly TableColumn[] = []
          let sequence = 0
          const rows: Array<{
            text: string
            sequence: number
            extra: string | null
            values: Map<string, ColumnValue>
          }> = []
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
          // Every row is read with the final columns of the table.
          const decoder = new RecordDecoder<ColumnValue>(columns, writeValue)
          for (const { text, sequence: at, extra, values } of rows) {
            const decoded = decoder.decode(at, extra, (place) => values.get(columns[place]!.name!) ?? null)
            expect(equalsJson(decoded, text), `${text} came back as ${decoded}`).toBe(true)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('every record is rebuilt exactly from columns of any type', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(columnArbitrary(), { selector: ({ member }) => member, maxLength: 6 }),
        fc.array(recordArbitrary(), { minLength: 1, maxLength: 6 }),
        (columns, records) => {
          const encoder = new RecordEncoder(columns, dialect)
          const decoder = new RecordDecoder<ColumnValue>(columns, writeValue)
          for (const [sequence, given] of records.entries()) {
            const record = parseJson(stringifyJson(given)) as JsonObject
            const { values, extra } = encoder.encode(record, sequence)
            const decoded = decoder.decode(sequence, extra, (at) => values[at]!)
            expect(equalsJson(decoded, stringifyJson(record)), `${stringifyJson(record)} came back as ${decoded}`).toBe(
              true,
            )
          }
        },
      ),
      { numRuns: 3_000 },
    )
  })

  test('ordinary records need no `_extra`: a null, a late member, instants in one form, nested values', () => {
    const first: JsonObject[] = [
      { id: 1, at: '2026-01-02T03:04:05Z', on: '2026-01-02', note: null, tags: ['a'], ratio: 0.5, on_sale: true },
      { id: 2, at: '2026-01-02T03:04:06Z', on: '2026-01-03', note: null, tags: [], ratio: 2, on_sale: false },
    ]
    let columns = growColumns([], first, 1, { ...LIMITS, columnsMax: 100 })
    expect(columns.map(({ member, type, name }) => [member, name === null ? null : type])).toEqual([
      ['id', 'bigint'],
      ['at', 'timestamp'],
      ['on', 'date'],
      ['note', null],
      ['tags', 'json'],
      ['ratio', 'double'],
      ['on_sale', 'boolean'],
    ])
    expect(first.map((record) => new RecordEncoder(columns, dialect).encode(record).extra)).toEqual([null, null])
    const second: JsonObject[] = [
      { ...first[0]!, note: 'late', added: null },
      { ...first[1]!, added: 'x' },
    ]
    columns = growColumns(columns, second, 3, { ...LIMITS, columnsMax: 100 })
    expect(second.map((record) => new RecordEncoder(columns, dialect).encode(record).extra)).toEqual([null, null])
  })
})

/** Writes a value as a database returns it for each type. */
function writeValue(value: ColumnValue, { type }: TableColumn): string {
  if (type === 'json' || (type.endsWith('[]') && typeof value === 'string')) return value as string
  return stringifyJson(value as JsonValue)
}
