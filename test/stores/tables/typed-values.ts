import { expect } from 'vitest'
import type { JsonObject, JsonValue, Landing, Store } from '../../../src/contract/index.ts'
import { readFeed, remove, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { canonicalizeInstant } from '../../../src/values/instant.ts'
import { equalsJson, stringifyJson } from '../../../src/values/json.ts'

/** Values of one field. The first ones decide the type of its column, the later ones are stored in that column. */
export interface ValueCase {
  readonly type: 'bigint' | 'boolean' | 'date' | 'double' | 'json' | 'numeric' | 'text' | 'timestamp'
  readonly first: readonly JsonValue[]
  readonly later: readonly JsonValue[]
}

const INT64 = 2n ** 63n

export const VALUE_CASES: Readonly<Record<string, ValueCase>> = {
  'whole numbers': {
    type: 'bigint',
    first: [
      0,
      1,
      -1,
      Number.MAX_SAFE_INTEGER,
      Number.MIN_SAFE_INTEGER,
      2 ** 32,
      -(2 ** 32) - 1,
      9_007_199_254_740_993n,
      INT64 - 1n,
      -INT64,
    ],
    later: [INT64, -INT64 - 1n, 0.5, 1e21, 1e-18, '1', true, [1]],
  },
  'numbers beyond 64 bits': {
    type: 'numeric',
    first: [INT64, -INT64 - 1n, 10n ** 40n, -(10n ** 30n), 0, 7, 10_000, 99_990_000n],
    later: [0.5, -0.25, 1e-7, 1.5e300, 'x', null],
  },
  fractions: {
    type: 'double',
    first: [
      0.1,
      -0.1,
      5e-324,
      2.2250738585072014e-308,
      1.1e-18,
      -1e-18,
      2.220446049250313e-16,
      1 + 2 ** -52,
      1.7976931348623157e308,
      1e21,
      2,
      0,
      -3,
    ],
    later: [9_007_199_254_740_993n, INT64, 'x', false],
  },
  booleans: { type: 'boolean', first: [true, false], later: [0, 1, 'true', 'f'] },
  'texts with ASCII and others, short and long': {
    type: 'text',
    first: [
      '',
      'a',
      'ø',
      '\u{1f30a}',
      'a'.repeat(40),
      'a'.repeat(41),
      `${'a'.repeat(39)}ø`,
      'ø'.repeat(300_000),
      '2026-01-02',
      'null',
      "'",
    ],
    later: [1, 1.5, true, { a: 1 }, INT64],
  },
  'instants in milliseconds': {
    type: 'timestamp',
    first: [
      '2026-01-02T03:04:05.678Z',
      '2026-01-02T03:04:05.000Z',
      '1970-01-01T00:00:00.000Z',
      '1999-12-31T23:59:59.999Z',
      '0001-01-01T00:00:00.000Z',
      '9999-12-31T23:59:59.999Z',
      '2024-02-29T12:30:45.120Z',
    ],
    later: [
      '2026-01-02T03:04:05Z',
      '2026-01-02T03:04:05.678901Z',
      '2026-01-02T03:04:05.6789019Z',
      '2026-01-02T05:04:05.678+02:00',
      '2016-12-31T23:59:60Z',
      '2026-01-02t03:04:05.678z',
      'soon',
      5,
    ],
  },
  'instants in seconds, with an offset of zero': {
    type: 'timestamp',
    first: ['2026-01-02T03:04:05+00:00', '1900-03-01T00:00:00+00:00', '2000-02-29T23:59:59+00:00'],
    later: [
      '2026-01-02T03:04:05Z',
      '2026-01-02T03:04:05.100+00:00',
      '2026-01-02T03:04:05-00:00',
      '2016-12-31T23:59:60+00:00',
    ],
  },
  dates: {
    type: 'date',
    first: ['2026-01-02', '0001-01-01', '9999-12-31', '2000-02-29', '1900-02-28'],
    later: ['2026-02-30', '0000-01-01', 'x', '2026-01-02T00:00:00Z'],
  },
  'nested values': {
    type: 'json',
    first: [{ a: 1 }, [], {}, [1, [2, { b: null }]], { text: '\u{1f30a}"\\' }],
    later: [[1e21], { big: INT64 }, [5e-324], 'text', 3, { x: 1.5e300 }],
  },
}

/** The value of a column as text: an instant in its canonical form, and null for SQL null. */
export type ReadColumn = (database: string, type: ValueCase['type']) => Promise<Map<string, string | null>>

/** The column of rows without a value. */
const NOTHING = [
  ['none', null],
  ['null', null],
] as const

/** Inserts, updates, deletes and restores every value, and compares rows, history and feed with the sent records. */
export async function checkValues(
  store: Store,
  database: string,
  { type, first, later }: ValueCase,
  column: ReadColumn,
): Promise<void> {
  const driver = await SyncDriver.acquire(store, { sync: database })
  const values = [...first, ...later]
  const sent = new Map<string, string[]>()
  const land = (records: ReadonlyArray<readonly [string, JsonObject]>): Promise<unknown> => {
    for (const [key, record] of records) sent.set(key, [...(sent.get(key) ?? []), stringifyJson(record)])
    return driver.cycle(records.map(([key, record]) => upsert(key, record, { database })))
  }
  await land(first.map((value, at) => [`k${at}`, { m: value, same: at }]))
  await land([
    ...later.map((value, at) => [`k${first.length + at}`, { m: value, same: at }] as const),
    ['none', { same: 1 }],
    ['null', { m: null, same: 1 }],
  ])
  await expectSent(store, database, sent)
  expect(await columnOf(column, database, type)).toEqual(
    new Map([...values.map((value, at) => [`k${at}`, shown(type, value)] as const), ...NOTHING]),
  )
  // Each row gets the next row's value: values from the column move to `_extra`, and the other way round.
  await land([
    ...values.map((_, at) => [`k${at}`, { m: values[(at + 1) % values.length]!, same: at }] as const),
    ['none', { m: null, same: 1 }],
    ['null', { same: 1 }],
  ])
  await expectSent(store, database, sent)
  expect(await columnOf(column, database, type)).toEqual(
    new Map([
      ...values.map((_, at) => [`k${at}`, shown(type, values[(at + 1) % values.length]!)] as const),
      ...NOTHING,
    ]),
  )
  const gone: Landing[] = values.map((_, at) => remove(`k${at}`, { database }))
  await driver.cycle(gone)
  await land(values.map((value, at) => [`k${at}`, { m: value, added: at }]))
  await expectSent(store, database, sent)
}

async function expectSent(store: Store, database: string, sent: ReadonlyMap<string, readonly string[]>): Promise<void> {
  const rows = new Map((await store.rows({ database, limit: 1_000 })).map(({ key, text }) => [key, text]))
  const entries = (await readFeed(store)).filter((entry) => entry.database === database && entry.text !== null)
  expect([...rows.keys()].toSorted()).toEqual([...sent.keys()].toSorted())
  for (const [key, texts] of sent) {
    const versions = (await store.history(database, key)).flatMap(({ text }) => text ?? [])
    const logged = entries.filter((entry) => entry.key === key).map(({ text }) => text!)
    const one = (await store.row(database, key))!.text
    for (const found of [[rows.get(key)!], [one]]) expectSame(found, texts.slice(-1), key)
    for (const found of [versions, logged]) expectSame(found, texts, key)
  }
}

function expectSame(found: readonly string[], texts: readonly string[], key: string): void {
  expect(found.length, `versions of ${key}`).toBe(texts.length)
  for (const [at, text] of texts.entries()) {
    expect(equalsJson(found[at]!, text), `${key}: ${found[at]!.slice(0, 200)} is not ${text.slice(0, 200)}`).toBe(true)
  }
}

async function columnOf(
  column: ReadColumn,
  database: string,
  type: ValueCase['type'],
): Promise<Map<string, string | null>> {
  return new Map(
    [...(await column(database, type))].map(([key, text]) => [key, text === null ? null : normal(type, text)]),
  )
}

/** The column's text for a value: the nearest one that the type can show, null where there is none. */
function shown(type: ValueCase['type'], value: JsonValue): string | null {
  if (value === null) return null
  switch (type) {
    case 'text':
      return typeof value === 'object' ? null : String(value)
    case 'bigint':
      return isWhole(value) && BigInt.asIntN(64, BigInt(value)) === BigInt(value) ? String(value) : null
    case 'numeric':
      return typeof value === 'bigint' ? String(value) : typeof value === 'number' ? normal(type, plain(value)) : null
    case 'double':
      return typeof value === 'number' || typeof value === 'bigint' ? normal(type, String(Number(value))) : null
    case 'boolean':
      return typeof value === 'boolean' ? String(value) : null
    case 'date':
      return typeof value === 'string' && isDay(value) ? value : null
    case 'timestamp':
      return typeof value === 'string' ? canonicalizeInstant(value) : null
    case 'json':
      return null
  }
}

function isWhole(value: JsonValue): value is number | bigint {
  return typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))
}

function isDay(text: string): boolean {
  return !text.startsWith('0000') && canonicalizeInstant(`${text}T00:00:00Z`) !== null
}

/** Writes a number without an exponent. */
function plain(value: number): string {
  const [, whole, fraction = '', exponent] = /^(-?\d+)(?:\.(\d+))?(?:e\+(\d+))?$/.exec(String(value)) ?? []
  if (whole === undefined) return value.toFixed(20)
  return exponent === undefined ? String(value) : whole + fraction + '0'.repeat(Number(exponent) - fraction.length)
}

function normal(type: ValueCase['type'], text: string): string {
  if (type === 'double') return String(Number(text) + 0)
  // SQLite shows a number of this type as it was written.
  if (type === 'numeric' && text.includes('e')) return normal(type, plain(Number(text)))
  if (type === 'numeric') return text.includes('.') ? text.replace(/\.?0+$/, '') : text
  return text
}
