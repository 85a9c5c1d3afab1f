import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import type { ColumnType, JsonObject } from '../../../src/contract/index.ts'
import { files } from '../../../src/sources/files/source.ts'
import { singer } from '../../../src/sources/singer/source.ts'
import { TAP } from '../singer/tap-fixture.ts'
import { DATABASE, type TypeCase } from './type-case.ts'

/** By column: an expression per row, the column type in the copy, and the values. */
const PARQUET: Readonly<
  Record<
    string,
    readonly [type: ColumnType, ...values: ReadonlyArray<readonly [expression: string, value: JsonObject[string]]>]
  >
> = {
  id: ['bigint', ['1::int', 1], ['2::int', 2]],
  big: ['bigint', ['9223372036854775807::bigint', 9_223_372_036_854_775_807n], ['-1::bigint', -1]],
  ubig: ['numeric', ['18446744073709551615::ubigint', 18_446_744_073_709_551_615n], ['0::ubigint', 0]],
  price: ['decimal', ['1.50::decimal(4, 2)', '1.50'], ['-0.05::decimal(4, 2)', '-0.05']],
  exact: [
    'decimal',
    ['12345678901234567890.5::decimal(38, 9)', '12345678901234567890.500000000'],
    ['null::decimal(38, 9)', null],
  ],
  ratio: ['double', ['0.1::double', 0.1], ['3::double', 3]],
  single: ['double', ['0.5::float', 0.5], ['null::float', null]],
  yes: ['boolean', ['true', true], ['false', false]],
  name: ['text', ["'2026-01-31'", '2026-01-31'], ["''", '']],
  file: ['bytes', ["'\\x00\\xFF'::blob", 'AP8='], ["''::blob", '']],
  at: [
    'timestamp',
    ["'2026-01-31 12:00:00.123456+00'::timestamptz", '2026-01-31T12:00:00.123456Z'],
    ["'1969-12-31 23:59:59.5+00'::timestamptz", '1969-12-31T23:59:59.500000Z'],
  ],
  local: ['datetime', ["'2026-01-31 12:00:00'::timestamp", '2026-01-31T12:00:00.000000'], ['null::timestamp', null]],
  day: ['date', ["'2026-01-31'::date", '2026-01-31'], ['null::date', null]],
  doc: ['json', [`'{"a": [1, null]}'::json`, { a: [1, null] }], ["'[]'::json", []]],
}

const parquetCase: TypeCase = {
  name: 'Parquet files',
  types: Object.fromEntries(Object.entries(PARQUET).map(([name, [type]]) => [name, type])),
  key: ['id'],
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-types-'))
    /** One row per entry, with its index as id and the values of that number. */
    let chosen = [0, 1]
    const write = async (): Promise<void> => {
      const selects = chosen.map(
        (value, n) =>
          `select ${Object.entries(PARQUET)
            .map(([name, [, ...values]]) => `${values[name === 'id' ? n : value]![0]} as ${name}`)
            .join(', ')}`,
      )
      const instance = await DuckDBInstance.create(':memory:')
      const connection = await instance.connect()
      await connection.run("set timezone = 'UTC'")
      await connection.run(`copy (${selects.join(' union all ')}) to '${join(folder, 'a.parquet')}' (format parquet)`)
      connection.closeSync()
      instance.closeSync()
    }
    await write()
    return {
      declare(worker) {
        worker.sync('things', { database: worker.database(DATABASE), ...files({ folder, settleMs: 0, key: 'id' }) })
        return { first: 'things', second: 'things' }
      },
      truth: () =>
        Object.fromEntries(
          chosen.map((value, n) => [
            String(n + 1),
            Object.fromEntries(
              Object.entries(PARQUET).map(([name, [, ...values]]) => [name, values[name === 'id' ? n : value]![1]]),
            ),
          ]),
        ),
      async change() {
        chosen = [1, 0]
        await write()
      },
      close: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
}

/** By field: its schema, the column type in the copy, and the values. */
const SINGER: Readonly<
  Record<string, readonly [schema: object, type: ColumnType, first: JsonObject[string], second: JsonObject[string]]>
> = {
  id: [{ type: 'integer' }, 'bigint', 1, 2],
  name: [{ type: ['null', 'string'] }, 'text', '2026-01-31', ''],
  updated_at: [
    { type: 'string', format: 'date-time' },
    'timestamp',
    '2026-01-31T12:00:00.000000Z',
    '2026-01-31T12:00:01.500000Z',
  ],
  day: [{ type: ['null', 'string'], format: 'date' }, 'date', '2026-01-31', null],
  uid: [
    { type: 'string', format: 'uuid' },
    'uuid',
    '7d444840-9dc0-11d1-b245-5ffdce74fad2',
    '00000000-0000-0000-0000-000000000000',
  ],
  price: [{ type: ['null', 'string'], format: 'singer.decimal' }, 'decimal', '1.50', null],
  total: [{ type: ['null', 'number'], format: 'decimal' }, 'numeric', 1.5, 3],
  ratio: [{ type: ['null', 'number'] }, 'double', 0.5, 3],
  yes: [{ type: ['null', 'boolean'] }, 'boolean', true, null],
  file: [{ type: 'string', contentEncoding: 'base64' }, 'bytes', 'AP8=', ''],
  clock: [{ type: 'string', format: 'time-local' }, 'time', '12:00:00', '23:59:59.5'],
  local: [{ type: 'string', format: 'date-time-local' }, 'datetime', '2026-01-31T12:00:00', '1999-12-31T23:59:59'],
  address: [{ type: ['null', 'object'] }, 'json', { city: 'Bergen' }, null],
  tags: [{ type: 'array', items: { type: 'string' } }, 'text[]', ['a', 'b,c'], []],
  lines: [{ type: 'array', items: { type: 'object' } }, 'json', [{ n: 1 }], []],
}

const singerCase: TypeCase = {
  name: 'a Singer tap',
  types: Object.fromEntries(Object.entries(SINGER).map(([name, [, type]]) => [name, type])),
  key: ['id'],
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-types-'))
    const world = join(folder, 'world.json')
    const properties = Object.fromEntries(Object.entries(SINGER).map(([name, [schema]]) => [name, schema]))
    const rowOf = (n: 2 | 3): JsonObject =>
      Object.fromEntries(Object.entries(SINGER).map(([name, sample]) => [name, sample[n]]))
    let rows = [rowOf(2), rowOf(3)]
    const serve = (): void =>
      writeFileSync(
        world,
        JSON.stringify({
          streams: { things: { schema: { type: 'object', required: Object.keys(SINGER), properties }, rows } },
        }),
      )
    serve()
    return {
      declare(worker) {
        worker.sync('things', {
          database: worker.database(DATABASE),
          ...singer({ command: [process.execPath, TAP], config: { world } }).stream('things'),
        })
        return { first: 'things', second: 'things' }
      },
      truth: () => Object.fromEntries(rows.map((row) => [String(row['id']), row])),
      async change() {
        rows = [{ ...rowOf(3), id: 1, updated_at: '2026-02-01T00:00:00.000000Z' }, rowOf(3)]
        serve()
      },
      close: async () => rmSync(folder, { recursive: true, force: true }),
    }
  },
}

export const FILE_CASES: readonly TypeCase[] = [parquetCase, singerCase]
