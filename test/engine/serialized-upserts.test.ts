import { describe, expect, test } from 'vitest'
import type { Change, Column, JsonObject } from '../../src/contract/index.ts'
import { PagePreparer } from '../../src/engine/page-preparer.ts'
import { DEFAULT_LIMITS, type SyncLimits } from '../../src/engine/sync-plan.ts'
import { parseJson, stringifyJson } from '../../src/values/json.ts'
import { getSerializedRecord, serializedUpsert, type SerializedShape } from '../../src/values/serialized-upsert.ts'

const COLUMNS: readonly Column[] = [
  { name: 'id', kinds: ['string'] },
  { name: 'n', kinds: ['integer'] },
  { name: 'gone', kinds: [] },
]

function written(key: string, n: number, columns = COLUMNS, database?: string): Change {
  const text = JSON.stringify({ id: key, n, gone: null })
  return serializedUpsert(key, { text, shape: { columns } }, database === undefined ? {} : { database })
}

function plain(change: Change): Change {
  return { ...change }
}

function preparer(limits: Partial<SyncLimits> = {}, validate?: (record: JsonObject) => string | null): PagePreparer {
  return new PagePreparer('s', [{ name: 'a', ...(validate !== undefined && { validate }) }, { name: 'b' }] as never, {
    ...DEFAULT_LIMITS,
    ...limits,
  })
}

describe('records that arrive serialized', () => {
  test('are prepared like ordinary records, in every database they go to', async () => {
    const changes = [written('1', 1), written('2', 2), written('1', 3, COLUMNS, 'b'), written('', 4)]
    const prepared = await preparer().prepare(changes)
    expect(prepared.columns).toEqual({ a: COLUMNS, b: COLUMNS })
    expect(changes.slice(0, 3).every((change) => getSerializedRecord(change) !== null)).toBe(true)
    expect(prepared).toEqual(await preparer().prepare(changes.map(plain)))
    expect(prepared.quarantined).toMatchObject([{ code: 'KEY_INVALID' }])
  })

  test.each([
    ['that is not JSON', '{"id":"2",'],
    ['that is a list', '["2"]'],
    ['that is a string', '"2"'],
    ['that is empty', ''],
    ['with another field', '{"id":"2","n":1,"gone":null,"more":true}'],
    ['with another kind', '{"id":"2","n":"1","gone":null}'],
    ['with a nested value', '{"id":"2","n":{"a":[1]},"gone":null}'],
    ['nested too deep', `{"id":"2","n":${'['.repeat(80)}${']'.repeat(80)},"gone":null}`],
    ['with too many fields', `{${Array.from({ length: 60 }, (_, n) => `"f${n}":1`).join()}}`],
    ['with spaces', '{ "id": "2", "n": 1, "gone": null }'],
    ['with a number in another form', '{"id":"2","n":1.0,"gone":null}'],
    ['with a number that no double holds', '{"id":"2","n":1e400,"gone":null}'],
    ['with a field twice', '{"id":"1","id":"2","n":1,"gone":null}'],
  ])('a later record of a shape has the result of an ordinary upsert: a text %s', async (_, text) => {
    const shape = { columns: COLUMNS }
    const first = serializedUpsert('1', { text: '{"id":"1","n":1,"gone":null}', shape })
    const prepare = (change: Change) => preparer({ recordMembersMax: 50 }).prepare([first, change])
    const prepared = await prepare(serializedUpsert('2', { text, shape }))
    const ordinary = parseOrNull(text)
    if (ordinary === null) expect(prepared.quarantined).toMatchObject([{ key: '2', code: 'RECORD_INVALID' }])
    else expect(prepared).toEqual(await prepare({ type: 'upsert', key: '2', record: ordinary }))
    expect(prepared.landings[0]).toMatchObject({ key: '1' })
  })

  test('a record with the 33rd shape of a page whose text is not JSON is quarantined', async () => {
    const texts = Array.from({ length: 33 }, (_, n) => (n < 32 ? `{"id":"${n}","n":1,"gone":null}` : '{"id":"32",'))
    const changes = texts.map((text, n) => serializedUpsert(String(n), { text, shape: { columns: [...COLUMNS] } }))
    expect((await preparer().prepare(changes)).quarantined).toMatchObject([{ key: '32' }])
  })

  test('a shape is compared with its first record, however many shapes the page has', async () => {
    const changes = Array.from({ length: 40 }, (_, n) => {
      const columns: Column[] = [{ name: 'n', kinds: [n === 39 ? 'string' : 'integer'] }]
      return serializedUpsert(String(n), { text: '{"n":1}', shape: { columns } })
    })
    expect((await preparer().prepare(changes)).columns).toEqual({ a: [{ name: 'n', kinds: ['integer'] }] })
  })

  test('a page reports the kinds that are not committed yet', async () => {
    const pages = preparer()
    const first = await pages.prepare([written('1', 1)])
    expect((await pages.prepare([written('2', 1)])).columns).toEqual(first.columns)
    pages.recordLanded(first)
    expect((await pages.prepare([written('2', 1)])).columns).toEqual({})
  })

  test.each<[string, Partial<SyncLimits>, ((record: JsonObject) => string | null)?]>([
    ['RECORD_TOO_WIDE', { recordMembersMax: 2 }],
    ['RECORD_TOO_LARGE', { recordBytesMax: 10 }],
    ['SCHEMA_MISMATCH', {}, ({ n }) => (n === 1 ? 'n is 1' : null)],
  ])('%s is found in them too', async (code, limits, validate) => {
    const prepared = await preparer(limits, validate).prepare([written('1', 1)])
    expect(prepared.quarantined).toMatchObject([{ code, key: '1' }])
    expect(prepared).toEqual(await preparer(limits, validate).prepare([plain(written('1', 1))]))
  })

  test.each<[string, JsonObject]>([
    ['no field', {}],
    ['an integer beyond 2^53', { v: 9007199254740993n }],
    ['an integer beyond 64 bits', { v: 2n ** 70n }],
    ['the largest double', { v: Number.MAX_VALUE }],
    ['a negative zero', { v: -0 }],
    ['a tiny double', { v: 5e-324 }],
    ['null', { v: null }],
    ['booleans', { a: true, b: false }],
    ['an empty text and an empty name', { '': '' }],
    ['quotes, control characters and line separators', { 'a"b\\': '\u0001\t\u2028\u007f' }],
    ['an emoji', { v: '🌊' }],
    ['NUL', { v: 'a\0b' }],
    ['a lone surrogate', { v: '\ud800' }],
    ['the text of an escape', { v: '\\u0000' }],
    ['a field named __proto__', JSON.parse('{"__proto__":1,"a":2}') as JsonObject],
    ['a field named like an index', { 1: 'a', b: 'c' }],
    ['a nested object', { v: { a: [1] } }],
    ['text that looks like a time', { v: '2026-01-01T00:00:00Z' }],
  ])('a record with %s has the result of an ordinary upsert', async (_, record) => {
    const ordinary = await preparer().prepare([{ type: 'upsert', key: 'k', record }])
    const columns = Object.keys(record).map((name) => ({ name, kinds: kindsOf(ordinary.columns['a'], name) }))
    const fields = { cursor: 'c', upstreamUpdatedAt: '2026-01-01T00:00:00Z', asOf: 'read' } as const
    const change = serializedUpsert('k', { text: stringifyJson(record), shape: { columns } }, fields)
    expect(await preparer().prepare([change])).toEqual(
      await preparer().prepare([{ type: 'upsert', key: 'k', record, ...fields }]),
    )
  })

  test.each<[string, string, readonly Column[]]>([
    ['has another kind', '{"n":1}', [{ name: 'n', kinds: ['string'] }]],
    ['omits a field', '{"n":1,"m":2}', [{ name: 'n', kinds: ['integer'] }]],
    ['hides a nested value', '{"n":[1]}', [{ name: 'n', kinds: ['json'] }]],
    ['comes with spaces in the text', '{ "n": 1 }', [{ name: 'n', kinds: ['integer'] }]],
    ['comes with a number in another form', '{"n":1.0}', [{ name: 'n', kinds: ['integer'] }]],
    ['comes with a list', '[1]', [{ name: '0', kinds: ['integer'] }]],
  ])('a shape that %s is not used', async (_, text, columns) => {
    const record = JSON.parse(text) as JsonObject
    const prepared = await preparer().prepare([serializedUpsert('k', { text, shape: { columns } })])
    expect(prepared).toEqual(await preparer().prepare([{ type: 'upsert', key: 'k', record }]))
  })

  test('a text that is not JSON is quarantined with its key and the text', async () => {
    const shape: SerializedShape = { columns: [{ name: 'n', kinds: ['integer'] }] }
    const prepared = await preparer().prepare([
      serializedUpsert('k', { text: '{"n":', shape }, { database: 'b' }),
      serializedUpsert('m', { text: '{"n":1}', shape }),
    ])
    expect(prepared.quarantined).toEqual([
      {
        database: 'b',
        key: 'k',
        code: 'RECORD_INVALID',
        message: 'the text of the record is not valid JSON',
        text: '{"key":"k","raw":"{\\"n\\":"}',
      },
    ])
    expect(prepared.landings).toMatchObject([{ key: 'm', text: '{"n":1}' }])
  })
})

function parseOrNull(text: string): JsonObject | null {
  try {
    return parseJson(text) as JsonObject
  } catch {
    return null
  }
}

function kindsOf(columns: readonly Column[] = [], field: string): Column['kinds'] {
  return columns.find(({ name }) => name === field)?.kinds ?? []
}
