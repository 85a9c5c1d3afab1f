import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  SCALAR_TYPES,
  type ColumnType,
  type DestinationBatch,
  type DestinationSchema,
  type JsonObject,
  type JsonValue,
  type ScalarType,
  type Store,
} from '../../src/contract/index.ts'
import { DuckdbTables } from '../../src/destinations/duckdb/tables.ts'
import { fieldsOfBatch } from '../../src/destinations/kit/batch-fields.ts'
import { extendColumns } from '../../src/destinations/kit/extend-columns.ts'
import type { SqlTables } from '../../src/destinations/kit/sql-tables.ts'
import { toTableRows } from '../../src/destinations/kit/table-rows.ts'
import { extendLakeColumns, fieldsOf } from '../../src/destinations/lake/columns.ts'
import { encodeBatch } from '../../src/destinations/lake/encode-batch.ts'
import { readRows } from '../../src/destinations/loop/read-batches.ts'
import { MariadbTables } from '../../src/destinations/mariadb/tables.ts'
import { PostgresTables } from '../../src/destinations/postgres/tables.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { ODD, SAMPLES } from '../stores/tables/sample-values.ts'
import { STORE_FIXTURES, type StoreFixture } from '../stores/tables/store-fixture.ts'

const TYPES: ColumnType[] = [...SCALAR_TYPES, ...SCALAR_TYPES.map((type) => `${type}[]` as const)]
const LIMITS = { rowsMax: 50_000, bytesMax: 8_000_000 }
const SERVER = {
  isMariadb: true,
  allowsLoadData: true,
  foldsTableNames: false,
  packetBytesMax: 1 << 24,
  allowsWideTables: true,
}
/** Encoding needs no connection. */
const SQL_TABLES: Record<string, SqlTables> = {
  postgres: new PostgresTables(undefined as never, 'copy'),
  mariadb: new MariadbTables(undefined as never, 'copy', SERVER),
  duckdb: new DuckdbTables(undefined as never, 'copy'),
}

describe.each(Object.keys(STORE_FIXTURES))('rows of the %s store, by value and by record', (kind) => {
  let place: StoreFixture
  let driver: SyncDriver
  beforeEach(async () => {
    place = await STORE_FIXTURES[kind]!()
    driver = await SyncDriver.acquire(place.store, { mode: 'replace' })
  })
  afterEach(() => place.close())

  test('are the same changes, and are encoded alike for every destination', async () => {
    const meanings = [{}, { isOptional: true }, { isEmptyText: true }]
    const columns = TYPES.map((type, n) => ({ name: nameOf(type), type, from: 'schema' as const, ...meanings[n % 3] }))
    await driver.cycle([], { shapes: [{ database: 'things', key: [], columns }] })
    const counts = { values: 0, texts: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(recordArbitrary(), { minLength: 1, maxLength: 12 }), async (records) => {
        await driver.cycle(records.map((record, n) => upsert(`k${n}`, record)))
        const byRecord = await readBatch(place.store, false)
        const byValues = await readBatch(place.store, true)
        for (const { values } of byValues.changes) counts[values === undefined ? 'texts' : 'values']++
        expect(byValues.changes.map(readChange)).toEqual(byRecord.changes.map(readChange))
        for (const encode of [...Object.values(SQL_TABLES).map(encodeWith), encodeForLake])
          expect(encode(byValues)).toEqual(encode(byRecord))
      }),
      { numRuns: 30 },
    )
    expect(Math.min(counts.values, counts.texts)).toBeGreaterThan(10)
  })

  test('a long record, a field without a column and a table with a thousand fields are read as well', async () => {
    const wide = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`member ${n}`, n]))
    await driver.cycle([
      upsert('a', { text: 'x'.repeat(70_000), none: null }),
      upsert('b', { text: 'short', none: null }),
      upsert('w', wide, { database: 'wide' }),
    ])
    const { changes } = await readBatch(place.store, true)
    expect(changes.map(({ values }) => values !== undefined)).toEqual([false, true])
    expect(changes.map(readChange)).toEqual((await readBatch(place.store, false)).changes.map(readChange))
    const part = await readRows(place.store, { database: 'wide', byValues: true }, Infinity, '', LIMITS)
    expect(part.changes.map(({ record }) => record)).toEqual([wide])
  })

  test('pages end at their bytes, neither overlap nor skip, and leave out rows that changed later', async () => {
    await driver.cycle(Array.from({ length: 1_100 }, (_, n) => upsert(`k${n}`, { n, at: '2026-01-31T12:00:00Z' })))
    const keys: string[] = []
    let pages = 0
    for (let after: string | undefined; ; pages++) {
      const page = (await place.store.rowValues!({
        database: 'things',
        limit: 700,
        bytesMax: 9_000,
        ...(after !== undefined && { after }),
      }))!
      if (page.length === 0) break
      expect(page.bytes).toBeLessThan(9_100)
      keys.push(...Array.from({ length: page.length }, (_, index) => page.key(index)))
      after = keys.at(-1)
    }
    const rows = await place.store.rows({ database: 'things', limit: 2_000 })
    expect(keys).toEqual(rows.map(({ key }) => key))
    expect(pages).toBeGreaterThan(2)
    const whole = (await place.store.rowValues!({ database: 'things', limit: 2_000 }))!
    expect(Array.from({ length: whole.length }, (_, index) => whole.key(index))).toEqual(keys)
    const part = await readRows(place.store, { database: 'things', byValues: true }, 500, '', LIMITS)
    expect(part.changes.map(({ sequence }) => sequence).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 500 }, (_, n) => n + 1),
    )
  })
})

function nameOf(type: ColumnType): string {
  return type.replace('[]', '_list')
}

/** Most values fit their column: a record with one that does not is read as text. */
function recordArbitrary(): fc.Arbitrary<JsonObject> {
  const fields = TYPES.map((type) => {
    const scalar = type.replace('[]', '') as ScalarType
    const fitting: fc.Arbitrary<JsonValue> = fc.oneof(fc.constantFrom(...SAMPLES[scalar]), generated(scalar))
    const list = fc.array(fc.oneof(fitting, fc.constant(null)), { maxLength: 3 }) as fc.Arbitrary<JsonValue>
    return [nameOf(type), type === scalar ? fitting : list] as const
  })
  const fitting = fc.record(Object.fromEntries(fields), { requiredKeys: [], noNullPrototype: true })
  const odd = fc.dictionary(fc.constantFrom(...TYPES.map(nameOf), 'other'), fc.constantFrom<JsonValue>(...ODD), {
    maxKeys: 3,
    noNullPrototype: true,
  })
  const full = fc
    .tuple(fc.record(Object.fromEntries(fields), { noNullPrototype: true }), fitting)
    .map(([all, some]) =>
      Object.fromEntries(Object.entries(all).map(([name, value], n) => [name, noneOf(name, n, value, some)])),
    )
    .map(
      (record) => Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as JsonObject,
    )
  return fc.oneof(
    { weight: 4, arbitrary: full },
    { weight: 1, arbitrary: fc.tuple(full, odd).map(([record, more]) => ({ ...record, ...more })) },
  )
}

/** The value, or what SQL null means in the column: null, nothing, or an empty text. */
function noneOf(name: string, n: number, value: JsonValue, some: Record<string, unknown>): JsonValue | undefined {
  if (Object.hasOwn(some, name)) return value
  return [null, undefined, ''][n % 3]
}

function generated(type: ScalarType): fc.Arbitrary<JsonValue> {
  switch (type) {
    case 'bigint':
      return fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(toNumber))
    case 'double':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'text':
      return fc.string({ unit: 'binary' }).filter((text) => !text.includes('\0') && text.isWellFormed())
    case 'bytes':
      return fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64'))
    default:
      return fc.constantFrom(...SAMPLES[type])
  }
}

/** As parsing returns it. */
function toNumber(value: bigint): JsonValue {
  return Number.isSafeInteger(Number(value)) ? Number(value) : value
}

async function readBatch(store: Store, byValues: boolean): Promise<DestinationBatch> {
  const schema = await store.schema('things')
  const columns = schema!.columns.filter(({ column }) => column !== null) as unknown as DestinationSchema['columns']
  const { changes, members } = await readRows(store, { database: 'things', byValues }, Infinity, '', LIMITS)
  return {
    schema: { database: 'things', mode: 'mirror', columns: columns.map(({ member, type }) => ({ member, type })) },
    target: 'loading',
    isFirst: false,
    isLast: false,
    changes,
    members,
  }
}

function readChange({ key, action, sequence, committedAt, record, text }: DestinationBatch['changes'][number]) {
  return { key, action, sequence, committedAt, record, parsed: JSON.parse(text!) as unknown }
}

function encodeWith(tables: SqlTables): (batch: DestinationBatch) => unknown {
  return (batch) => {
    const columns = extendColumns([], batch.schema, fieldsOfBatch(batch), 0, tables.columnLimits)
    const { rows } = toTableRows('mirror', batch.changes, columns, tables.encoder(columns, batch.members!))
    return { columns, rows: [...rows] }
  }
}

function encodeForLake(batch: DestinationBatch): unknown {
  const { columns } = extendLakeColumns([], batch.schema, fieldsOfBatch(batch), 0, [], 4)
  const layout = { mode: 'mirror', fields: fieldsOf('mirror', columns), spec: null } as const
  return { columns, encoded: encodeBatch(batch, columns, layout) }
}
