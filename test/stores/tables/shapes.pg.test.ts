import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  SCALAR_TYPES,
  type AuditEntry,
  type ColumnType,
  type CommitShape,
  type JsonObject,
  type JsonValue,
} from '../../../src/contract/index.ts'
import { remove, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { equalsJson, stringifyJson } from '../../../src/values/json.ts'
import { ODD, SAMPLES } from './sample-values.ts'
import { sqlTypeOf as sqlTypeIn } from './sql-types.ts'
import { STORE_FIXTURES, type StoreFixture } from './store-fixture.ts'

describe.each(Object.keys(STORE_FIXTURES))('declared types of the %s store', (kind) => {
  let place: StoreFixture
  beforeEach(async () => {
    place = await STORE_FIXTURES[kind]!()
  })
  afterEach(() => place.close())

  const sqlTypeOf = (type: ColumnType): string => sqlTypeIn(kind, type)

  test('every type has its column before the first value, in the table and its history, and holds its values without `_extra`', async () => {
    const types: ColumnType[] = [
      ...SCALAR_TYPES,
      ...SCALAR_TYPES.filter((type) => type !== 'json').map((type) => `${type}[]` as const),
    ]
    const driver = await SyncDriver.acquire(place.store)
    await driver.cycle([], { shapes: [shapeOf(Object.fromEntries(types.map((type) => [nameOf(type), type])))] })
    const expected = Object.fromEntries(types.map((type) => [nameOf(type), sqlTypeOf(type)]))
    expect(await place.columns()).toEqual(expected)
    expect(await place.columns('things_history')).toEqual(expected)
    const records = [0, 1, 2, 3].map((n) =>
      Object.fromEntries(
        types.map((type) => {
          const samples = SAMPLES[type.replace('[]', '') as 'text']
          return [
            nameOf(type),
            type.endsWith('[]') ? (n === 0 ? [] : [...samples.slice(0, n), null]) : (samples[n] ?? null),
          ]
        }),
      ),
    )
    await driver.cycle(records.map((record, n) => upsert(`k${n}`, record)))
    expect(await place.sql('select _key, _extra from things where _extra is not null')).toEqual([])
    // Changed rows are written in another way than new rows.
    await driver.cycle(records.map((record, n) => upsert(`k${(n + 1) % 4}`, record)))
    expect(await place.sql('select _key, _extra from things where _extra is not null')).toEqual([])
    for (const [n, record] of records.entries()) {
      const text = (await place.store.row('things', `k${(n + 1) % 4}`))!.text
      expect(equalsJson(text, stringifyJson(record)), `${stringifyJson(record)} came back as ${text}`).toBe(true)
    }
    const replaced = (await place.store.changes({ after: 0, limit: 100 })).filter(({ action }) => action === 'created')
    expect(replaced.map(({ text }, n) => equalsJson(text!, stringifyJson(records[n]!)))).toEqual([
      true,
      true,
      true,
      true,
    ])
  })

  test('XD24 every value comes back exactly from a column of every declared type, new and changed', async () => {
    const types: ColumnType[] = [...SCALAR_TYPES, ...SCALAR_TYPES.map((type) => `${type}[]` as const)]
    const values = [...Object.values(SAMPLES).flat(), ...ODD].flatMap((value) => [value, [value]])
    const driver = await SyncDriver.acquire(place.store)
    await driver.cycle([], { shapes: [shapeOf(Object.fromEntries(types.map((type) => [nameOf(type), type])))] })
    for (const turn of [0, 1]) {
      const recordOf = (n: number): JsonObject =>
        Object.fromEntries(types.map((type) => [nameOf(type), values[(n + turn) % values.length]!]))
      await driver.cycle(values.map((_, n) => upsert(`k${n}`, recordOf(n))))
      for (const n of values.keys()) {
        const { text } = (await place.store.row('things', `k${n}`))!
        expect(equalsJson(text, stringifyJson(recordOf(n))), `${stringifyJson(recordOf(n))} came back as ${text}`).toBe(
          true,
        )
      }
    }
  })

  test('every record is rebuilt exactly from columns of declared types, new and changed', async () => {
    const values = fc.oneof(
      fc.constantFrom<JsonValue>(...Object.values(SAMPLES).flat(), ...ODD),
      fc.array(fc.constantFrom<JsonValue>(...Object.values(SAMPLES).flat(), null), { maxLength: 3 }),
    ) as fc.Arbitrary<JsonValue>
    const types: ColumnType[] = [...SCALAR_TYPES, ...SCALAR_TYPES.map((type) => `${type}[]` as const)]
    const record = fc.dictionary(fc.constantFrom(...types.map(nameOf)), values, {
      maxKeys: 26,
      noNullPrototype: true,
    }) as fc.Arbitrary<JsonObject>
    const driver = await SyncDriver.acquire(place.store)
    const { columns } = shapeOf(Object.fromEntries(types.map((type) => [nameOf(type), type])))
    const meanings = [{}, { isOptional: true }, { isEmptyText: true }]
    await driver.cycle([], {
      shapes: [
        { database: 'things', key: [], columns: columns.map((column, n) => ({ ...column, ...meanings[n % 3] })) },
      ],
    })
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 20 }), async (records) => {
        await driver.cycle(records.map((one, n) => upsert(`k${n}`, one)))
        for (const [n, one] of records.entries()) {
          const { text } = (await place.store.row('things', `k${n}`))!
          expect(equalsJson(text, stringifyJson(one)), `${stringifyJson(one)} came back as ${text}`).toBe(true)
        }
      }),
      { numRuns: 60 },
    )
  })

  test('an empty text where records have no value is SQL null, and needs no `_extra`', async () => {
    const types = { at: 'datetime', on: 'date', price: 'decimal', stamp: 'timestamp', note: 'text' } as const
    const full = {
      at: '2026-01-31 12:00:00',
      on: '2026-01-31',
      price: '1.50',
      stamp: '2026-01-31T12:00:00.000+0000',
      note: 'x',
    }
    const none = { at: '', on: '', price: '', stamp: '', note: '' }
    const driver = await SyncDriver.acquire(place.store)
    const shape = {
      database: 'things',
      key: [],
      columns: Object.entries(types).map(
        ([name, type]) => ({ name, type, from: 'source', isEmptyText: true }) as const,
      ),
    }
    const records = { full, none, null: { ...full, on: null, price: null }, absent: { on: full.on } }
    await driver.cycle(
      Object.entries(records).map(([key, record]) => upsert(key, record)),
      { shapes: [shape], schemaModes: { things: 'quarantine' } },
    )
    expect(await place.store.quarantineEntries()).toEqual([])
    expect(await place.sql('select _key from things where _extra is not null order by _key')).toEqual([
      { _key: 'absent' },
      { _key: 'null' },
    ])
    expect(
      await place.sql('select _key from things where at is null and price is null and "on" is null and stamp is null'),
    ).toEqual([{ _key: 'none' }])
    const rotated = { full: none, none: full, null: records.absent, absent: records.null }
    await driver.cycle(Object.entries(rotated).map(([key, record]) => upsert(key, record)))
    const rows = await place.store.rows({ database: 'things', limit: 9 })
    expect(Object.fromEntries(rows.map(({ key, text }) => [key, JSON.parse(text)]))).toEqual(rotated)
    const entries = (await place.store.changes({ after: 0, limit: 100 })).filter(({ action }) => action === 'created')
    expect(Object.fromEntries(entries.map(({ key, text }) => [key, JSON.parse(text!)]))).toEqual(records)
    expect((await place.store.audit(driver.ref)).filter(({ action }) => action === 'drift')).toEqual([])
  })

  test.each([5e-324, -5e-324, 1e-16, -1e-300, 2 ** -52, 1e-15, 0])(
    'a number near zero is rebuilt exactly: %d',
    async (ratio) => {
      const driver = await SyncDriver.acquire(place.store)
      await driver.cycle([upsert('a', { ratio: 0.5 }), upsert('b', { ratio })])
      expect(JSON.parse((await place.store.row('things', 'b'))!.text)).toEqual({ ratio })
    },
  )

  test('a declared type that differs from its column is reported once, and does not fail the cycle', async () => {
    const driver = await SyncDriver.acquire(place.store)
    await driver.cycle([upsert('a', { n: 1, s: 'x' })])
    for (const n of [1.5, 2, 3])
      await driver.cycle([upsert('a', { n, s: 'x' })], { shapes: [shapeOf({ n: 'decimal', s: 'text' })] })
    const drift = (await place.store.audit(driver.ref)).filter(({ action }) => action === 'drift')
    expect(wordsOf(drift)).toEqual(['things.n is declared as decimal, but its column is bigint'])
    await driver.cycle([upsert('b', { n: '1.50', s: 'x' })], { shapes: [shapeOf({ n: 'decimal', s: 'text' })] })
    expect(await place.columns()).toEqual({ n: sqlTypeOf('bigint'), s: sqlTypeOf('text') })
    expect(JSON.parse((await place.store.row('things', 'b'))!.text)).toEqual({ n: '1.50', s: 'x' })
    await driver.cycle([], { shapes: [shapeOf({ n: 'text', s: 'text' })] })
    expect(wordsOf(await place.store.audit(driver.ref)).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      'things.n is declared as decimal, but its column is bigint',
      'things.n is declared as text, but its column is bigint',
    ])
  })

  test('the columns of a compound key are not null and unique', async () => {
    const driver = await SyncDriver.acquire(place.store)
    await driver.cycle([upsert('["1","a"]', { shop: 1, id: 'a', v: 1 })], {
      shapes: [shapeOf({ shop: 'bigint', id: 'text' }, ['shop', 'id'])],
    })
    expect(await place.columns()).toEqual({
      shop: `${sqlTypeOf('bigint')} not null`,
      id: `${sqlTypeOf('text')} not null`,
      v: sqlTypeOf('bigint'),
    })
    await expect(place.sql('update things set shop = null where _key = \'["1","a"]\'')).rejects.toThrow(/null/i)
    await driver.cycle([upsert('["1","b"]', { shop: 1, id: 'b', v: 1 })])
    await expect(place.sql("update things set id = 'a'")).rejects.toThrow(/unique/i)
    // Versions of one row repeat its key.
    await driver.cycle([upsert('["1","b"]', { shop: 1, id: 'b', v: 2 })])
    await driver.cycle([upsert('["1","b"]', { shop: 1, id: 'b', v: 3 })])
    expect(await place.sql('select v from things_history order by v')).toHaveLength(2)
    expect((await place.store.audit(driver.ref)).filter(({ action }) => action === 'drift')).toEqual([])
  })

  test('a key without declared types infers them from its first values', async () => {
    const driver = await SyncDriver.acquire(place.store)
    await driver.cycle([upsert('1', { id: 1, v: 'x' })], { shapes: [shapeOf({}, ['id'])] })
    expect(await place.columns()).toEqual({ id: `${sqlTypeOf('bigint')} not null`, v: sqlTypeOf('text') })
  })

  test.each([
    ['two records share it', { id: 1 }],
    ['a record lacks it', { v: 1 }],
    ['its column cannot hold the value', { id: 'one' }],
  ])('a key that records violate is dropped and reported, and the records land: %s', async (_, record) => {
    const driver = await SyncDriver.acquire(place.store)
    await driver.cycle([upsert('a', { id: 1 })], { shapes: [shapeOf({ id: 'bigint' }, ['id'])] })
    await driver.cycle([upsert('b', record)])
    await driver.cycle([upsert('c', record)], { shapes: [shapeOf({ id: 'bigint' }, ['id'])] })
    expect((await place.store.rows({ database: 'things', limit: 9 })).map(({ text }) => JSON.parse(text))).toEqual([
      { id: 1 },
      record,
      record,
    ])
    expect(await place.columns()).toMatchObject({ id: sqlTypeOf('bigint') })
    const drift = (await place.store.audit(driver.ref)).filter(({ action }) => action === 'drift')
    expect(wordsOf(drift)).toEqual(['the key of things (id) is not enforced: records violate it'])
  })

  test('with soft deletes a record that comes back keeps the key enforced; a record that reuses the key of a deleted row drops it', async () => {
    const driver = await SyncDriver.acquire(place.store)
    const deletes = { things: 'soft' } as const
    await driver.cycle([upsert('a', { id: 1 })], { shapes: [shapeOf({ id: 'bigint' }, ['id'])], deletes })
    await driver.cycle([remove('a')], { deletes })
    await driver.cycle([upsert('a', { id: 1 })], { deletes })
    await driver.cycle([remove('a')], { deletes })
    expect(await place.columns()).toMatchObject({ id: `${sqlTypeOf('bigint')} not null` })
    await driver.cycle([upsert('b', { id: 1 })], { deletes })
    expect(
      (await place.store.rows({ database: 'things', limit: 9 })).map(({ key, text }) => [key, JSON.parse(text)]),
    ).toEqual([['b', { id: 1 }]])
    const drift = (await place.store.audit(driver.ref)).filter(({ action }) => action === 'drift')
    expect(wordsOf(drift)).toEqual(['the key of things (id) is not enforced: records violate it'])
  })

  test('a key that is declared for a table with rows is reported once and not enforced', async () => {
    const driver = await SyncDriver.acquire(place.store)
    await driver.cycle([upsert('a', { id: 1 }), upsert('b', { id: 1 })])
    for (let n = 0; n < 2; n++)
      await driver.cycle([upsert(`c${n}`, { id: 1 })], { shapes: [shapeOf({ id: 'bigint' }, ['id'])] })
    const drift = (await place.store.audit(driver.ref)).filter(({ action }) => action === 'drift')
    expect(wordsOf(drift)).toEqual(['the key of things (id) is not enforced: the table already has rows'])
  })
})

/** Drift of declarations only. Values that do not fit their column are reported separately. */
function wordsOf(entries: readonly AuditEntry[]): string[] {
  return entries
    .filter(({ action }) => action === 'drift')
    .flatMap(({ reason }) => reason.split('; '))
    .filter((word) => /is declared as|the key of/.test(word))
}

function nameOf(type: ColumnType): string {
  return type.replace('[]', '_list')
}

function shapeOf(types: Record<string, ColumnType>, key: string[] = []): CommitShape {
  return {
    database: 'things',
    columns: Object.entries(types).map(([name, type]) => ({ name, type, from: 'schema' })),
    key,
  }
}
