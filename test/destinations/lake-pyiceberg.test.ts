import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ColumnType, JsonObject } from '../../src/contract/index.ts'
import { seededRandom } from '../../src/testing/store-cases/harness.ts'
import { required } from '../../src/values/required.ts'
import { openLakeHarness, tableOf } from './lake-harness.ts'
import { readRows } from './lake-reader.ts'
import { LakeWriter } from './lake-writer.ts'

/** A Python with the package pyiceberg, which is not part of the test machine: see CONTRIBUTING.md. */
const python = required(process.env['TIDEMARK_PYICEBERG_PYTHON'], '`TIDEMARK_PYICEBERG_PYTHON`')

const TYPES: Record<string, ColumnType> = {
  n: 'bigint',
  ok: 'boolean',
  raw: 'bytes',
  day: 'date',
  local: 'datetime',
  price: 'decimal',
  x: 'double',
  nested: 'json',
  t: 'text',
  clock: 'time',
  at: 'timestamp',
  id: 'uuid',
  tags: 'text[]',
}

describe('pyiceberg', () => {
  test.each(['mirror', 'append', 'history'] as const)(
    'reads the same rows as DuckDB in mode %s',
    async (mode) => {
      const harness = await openLakeHarness({ partitionBy: { things: { field: 'day', by: 'month' } } })
      const random = seededRandom(11)
      const pick = (count: number): number => Math.floor(random() * count)
      const record = (n: number): JsonObject => ({
        n,
        ok: n % 2 === 0,
        raw: Buffer.from([n % 256, 0]).toString('base64'),
        day: `20${10 + (n % 3)}-0${1 + (n % 4)}-0${1 + (n % 9)}`,
        local: `2026-01-31T12:00:00.${String(n % 1_000).padStart(3, '0')}`,
        price: `${n - 500}.25`,
        x: n / 7,
        nested: { n },
        t: n % 5 === 0 ? null : `\u{1f600}${n}`,
        clock: '12:34:56.5',
        at: `2026-01-31T12:00:00.${String(n % 1_000).padStart(3, '0')}Z`,
        id: randomUUID(),
        tags: n % 3 === 0 ? [] : ['a', null, `${n}`],
      })
      const rows = Array.from({ length: 500 }, (_, n) => [`k${String(n).padStart(4, '0')}`, record(n)] as const)
      const writer = await LakeWriter.load(harness.destination, TYPES, rows, mode)
      for (let batch = 0; batch < 30; batch++)
        await writer.change(
          ...new Map(
            Array.from({ length: 40 }, () => [
              `k${String(pick(600)).padStart(4, '0')}`,
              random() < 0.2 ? null : record(pick(10_000)),
            ]),
          ),
        )
      const table = (await tableOf(harness.folder, 'things'))!
      const metadata = join(harness.folder, 'things/metadata')
      const hint = readFileSync(join(metadata, 'version-hint.text'), 'utf8')
      const out = join(harness.folder, 'out.parquet')
      execFileSync(python, [
        join(import.meta.dirname, 'read-iceberg.py'),
        join(metadata, `v${hint}.metadata.json`),
        out,
      ])
      const expected = await readRows(table)
      expect(expected.length).toBeGreaterThan(400)
      expect(await readRows({ ...table, data: [out], deletes: [] })).toEqual(expected)
      await harness.close()
    },
    120_000,
  )
})
