import { describe, expect, test } from 'vitest'
import type { SqlColumn, SqlTable } from '../../../src/sources/sql/database.ts'
import { subtractMs, laterInstant } from '../../../src/sources/sql/column-instants.ts'
import { mysqlDialect } from '../../../src/sources/sql/mysql.ts'
import { postgresDialect } from '../../../src/sources/sql/postgres.ts'
import { sqliteDialect } from '../../../src/sources/sql/sqlite.ts'
import { buildSelect } from '../../../src/sources/sql/statements.ts'
import { parseDurationMs } from '../../../src/values/duration.ts'

const updatedAt: SqlColumn = {
  name: 'updated_at',
  kind: 'instant',
  type: 'timestamptz',
  columnType: null,
  nullable: false,
  isUtc: true,
}
const id: SqlColumn = { name: 'id', kind: 'integer', type: 'int8', columnType: null, nullable: false, isUtc: true }
const table = (quoted: string): SqlTable => ({
  id: 't',
  quoted,
  isView: false,
  columns: [updatedAt, id],
  key: ['id'],
  unique: [['id']],
})

describe('what is asked', () => {
  test('R13 R23 R39 R40 newer than the position, by the cursor and then by the key, in pages', () => {
    const statement = buildSelect(
      {
        table: table('"public"."customers"'),
        lower: { columns: [updatedAt], values: ['2025-09-30T23:59:59Z'], bound: '>' },
        upper: null,
        order: [updatedAt, id],
        limit: 10_000,
      },
      postgresDialect,
    )
    expect(statement).toEqual({
      text: 'SELECT * FROM "public"."customers" WHERE "updated_at" > $1 ORDER BY "updated_at", "id" LIMIT 10000',
      values: ['2025-09-30 23:59:59+00'],
    })
  })

  test('R24 by an integer alone where no two rows share it', () => {
    const statement = buildSelect(
      {
        table: table('"orders"'),
        lower: { columns: [id], values: ['9007199254740993'], bound: '>' },
        upper: null,
        order: [id],
        limit: 1_000,
      },
      postgresDialect,
    )
    expect(statement).toEqual({
      text: 'SELECT * FROM "orders" WHERE "id" > $1 ORDER BY "id" LIMIT 1000',
      values: ['9007199254740993'],
    })
  })

  test('F4 within a cycle above the last row, by cursor and key, up to a fixed bound', () => {
    const selection = {
      table: table('t'),
      columns: ['id', 'updated_at'],
      lower: { columns: [updatedAt, id], values: ['2026-01-31T12:00:00.123456Z', '7'], bound: '>' as const },
      upper: { columns: [updatedAt], values: ['2026-01-31T13:00:00Z'] },
      order: [updatedAt, id],
      limit: 5,
    }
    expect(buildSelect(selection, postgresDialect)).toEqual({
      text: 'SELECT "id", "updated_at" FROM t WHERE ("updated_at", "id") > ($1, $2) AND "updated_at" <= $3 ORDER BY "updated_at", "id" LIMIT 5',
      values: ['2026-01-31 12:00:00.123456+00', '7', '2026-01-31 13:00:00+00'],
    })
    expect(buildSelect(selection, sqliteDialect).values).toEqual([
      '2026-01-31T12:00:00.123456Z',
      7n,
      '2026-01-31T13:00:00Z',
    ])
    expect(buildSelect({ ...selection, upper: null }, mysqlDialect)).toEqual({
      text: 'SELECT `id`, `updated_at` FROM t WHERE `updated_at` >= CAST(? AS DATETIME(6)) AND (`updated_at` > CAST(? AS DATETIME(6)) OR (`updated_at` = CAST(? AS DATETIME(6)) AND `id` > CAST(? AS SIGNED))) ORDER BY `updated_at`, `id` LIMIT 5',
      values: ['2026-01-31 12:00:00.123456', '2026-01-31 12:00:00.123456', '2026-01-31 12:00:00.123456', '7'],
    })
  })

  test('F4 a lookup by a key of several columns includes the row of that key, however the database compares rows', () => {
    const part: SqlColumn = { ...id, name: 'part' }
    const lower = { columns: [id, part], values: ['7', '2'], bound: '>=' as const }
    const selection = { table: table('t'), lower, upper: null, order: [id, part], limit: 1 }
    expect(buildSelect(selection, postgresDialect).text).toBe(
      'SELECT * FROM t WHERE ("id", "part") >= ($1, $2) ORDER BY "id", "part" LIMIT 1',
    )
    expect(buildSelect(selection, mysqlDialect)).toEqual({
      text: 'SELECT * FROM t WHERE `id` >= CAST(? AS SIGNED) AND (`id` > CAST(? AS SIGNED) OR (`id` = CAST(? AS SIGNED) AND `part` >= CAST(? AS SIGNED))) ORDER BY `id`, `part` LIMIT 1',
      values: ['7', '7', '7', '2'],
    })
  })

  test('a range of a key of several columns includes its last key, however the database compares rows', () => {
    const part: SqlColumn = { ...id, name: 'part' }
    const upper = { columns: [id, part], values: ['7', '2'] }
    const selection = { table: table('t'), lower: null, upper, order: [id, part], limit: 1, offset: 4 }
    expect(buildSelect(selection, postgresDialect).text).toBe(
      'SELECT * FROM t WHERE ("id", "part") <= ($1, $2) ORDER BY "id", "part" LIMIT 1 OFFSET 4',
    )
    expect(buildSelect(selection, mysqlDialect).text).toBe(
      'SELECT * FROM t WHERE `id` <= CAST(? AS SIGNED) AND (`id` < CAST(? AS SIGNED) OR (`id` = CAST(? AS SIGNED) AND `part` <= CAST(? AS SIGNED))) ORDER BY `id`, `part` LIMIT 1 OFFSET 4',
    )
  })

  test('XD25 no name and no value ends its own quotes', () => {
    const nasty: SqlColumn = {
      name: 'a"`; drop table t; --',
      kind: 'other',
      type: 'text',
      columnType: null,
      nullable: false,
      isUtc: true,
    }
    for (const [dialect, name] of [
      [postgresDialect, '"a""`; drop table t; --"'],
      [mysqlDialect, '`a"``; drop table t; --`'],
      [sqliteDialect, '"a""`; drop table t; --"'],
    ] as const) {
      const { text, values } = buildSelect(
        {
          table: table('t'),
          lower: { columns: [nasty], values: ["x'; drop table t; --"], bound: '>' },
          upper: null,
          order: [nasty],
          limit: 1,
        },
        dialect,
      )
      expect(text).toBe(
        `SELECT * FROM t WHERE ${name} > ${dialect === postgresDialect ? '$1' : '?'} ORDER BY ${name} LIMIT 1`,
      )
      expect(values).toEqual(["x'; drop table t; --"])
    }
  })
})

describe('moments', () => {
  test('R38 a safety window is an ISO 8601 duration', () => {
    expect(['PT5M', 'PT1H30M', 'P1D', 'PT0.5S', 'P1DT2H'].map(parseDurationMs)).toEqual([
      300_000, 5_400_000, 86_400_000, 500, 93_600_000,
    ])
    for (const text of ['5m', 'P', 'PT', 'P1DT', '', 'P1M', 'PT-5M']) expect(parseDurationMs(text), text).toBeNull()
  })

  test('R37 an earlier moment is written as the given one, at the beginning of its second', () => {
    expect(subtractMs('2026-03-01T00:00:03.900000Z', 5_000)).toBe('2026-02-28T23:59:58Z')
    expect(subtractMs('2026-03-01 00:05:00', 300_000)).toBe('2026-03-01 00:00:00')
    expect(subtractMs('2026-03-01', 86_400_000)).toBe('2026-02-28')
    expect(subtractMs('2026-03-01T00:00:03.900000Z', 0)).toBe('2026-03-01T00:00:03.900000Z')
    expect(subtractMs('-infinity', 5_000)).toBe('-infinity')
  })

  test('R47 of two moments the later counts, to the microsecond; what is none comes before all', () => {
    expect(laterInstant('2026-01-01T00:00:00.000001Z', '2026-01-01T00:00:00Z')).toBe('2026-01-01T00:00:00.000001Z')
    expect(laterInstant('-infinity', '2026-01-01T00:00:00Z')).toBe('2026-01-01T00:00:00Z')
    expect(laterInstant(null, '2026-01-01')).toBe('2026-01-01')
  })
})
