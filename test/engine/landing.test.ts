import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, ErrorCode, JsonObject, QuarantineEntry } from '../../src/contract/index.ts'
import type { DatabasePlan } from '../../src/engine/sync-plan.ts'
import { parseJson } from '../../src/values/json.ts'
import {
  counts,
  DATABASE,
  planOf,
  remove,
  EngineFixture,
  createScriptedSource,
  storeWith,
  upsert,
} from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

/** One cycle of one page. */
async function land(changes: unknown[], database: Partial<DatabasePlan> = {}): ReturnType<EngineFixture['run']> {
  return scene.run(
    planOf({
      ...createScriptedSource({ changes: changes as Change[], hasMore: false }),
      databases: [{ name: DATABASE, ...database }],
    }),
  )
}

/** Commits the change between two valid ones, which must be committed in any case. */
async function quarantineOf(change: unknown): Promise<QuarantineEntry> {
  const result = await land([upsert('before'), change, upsert('after')])
  expect(result).toMatchObject({ stopReason: 'complete', error: null, counts: counts({ created: 2, quarantined: 1 }) })
  expect(await scene.keys()).toEqual(['after', 'before'])
  const [entry, ...others] = await scene.store.quarantineEntries()
  expect(others).toEqual([])
  return entry!
}

async function textOf(key: string): Promise<string> {
  return (await scene.store.row(DATABASE, key))!.text
}

const nested = (depth: number): JsonObject =>
  parseJson(`${'{"n":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`) as JsonObject

describe('changes', () => {
  test('N13 an upsert creates or updates its key, a delete removes it', async () => {
    expect(await land([upsert('a', { n: 1 }), upsert('b', { n: 1 })])).toMatchObject({ counts: counts({ created: 2 }) })
    expect(await land([upsert('a', { n: 2 }), remove('b')])).toMatchObject({
      counts: counts({ updated: 1, deleted: 1 }),
    })
    expect(await scene.rows()).toEqual({ a: { n: 2 } })
    expect((await scene.feed()).map(({ action, key }) => `${action} ${key}`)).toEqual([
      'created a',
      'created b',
      'updated a',
      'deleted b',
    ])
  })

  test('XC1 invariant 4: the same page again changes nothing and adds no log entry', async () => {
    await land([upsert('a'), upsert('b')])
    expect(await land([upsert('a'), upsert('b')])).toMatchObject({ counts: counts({ unchanged: 2 }) })
    expect(await scene.feed()).toHaveLength(2)
  })

  test('a delete of an unknown key is counted and adds no log entry', async () => {
    expect(await land([remove('ghost'), upsert('a')])).toMatchObject({
      stopReason: 'complete',
      counts: counts({ missing: 1, created: 1 }),
    })
    expect(await scene.feed()).toHaveLength(1)
  })

  test('a change may name another database of the sync', async () => {
    await scene.run(
      planOf({
        ...createScriptedSource({
          changes: [upsert('a'), upsert('a', { of: 'parts' }, { database: 'parts' })],
          hasMore: false,
        }),
        databases: [{ name: DATABASE }, { name: 'parts' }],
      }),
    )
    expect([await scene.rows(), await scene.rows('parts')]).toEqual([{ a: { of: 'a' } }, { a: { of: 'parts' } }])
  })

  test('XD15 if a key is twice on a page the newer one wins, in any order, and the feed has one entry', async () => {
    await land([
      upsert('a', { n: 'new' }, { at: '2026-01-02T00:00:00Z' }),
      upsert('a', { n: 'old' }, { at: '2026-01-01T00:00:00Z' }),
      upsert('b', { n: 'old' }, { at: '2026-01-01T00:00:00Z' }),
      upsert('b', { n: 'new' }, { at: '2026-01-02T00:00:00Z' }),
    ])
    expect(await scene.rows()).toEqual({ a: { n: 'new' }, b: { n: 'new' } })
    expect(await scene.feed()).toHaveLength(2)
  })

  test('XD15 with equal times or none, the later one wins', async () => {
    const at = '2026-01-01T00:00:00Z'
    await land([
      upsert('a', { n: 1 }, { at }),
      upsert('a', { n: 2 }, { at }),
      upsert('b', { n: 1 }),
      upsert('b', { n: 2 }),
      upsert('c', { n: 1 }, { at }),
      upsert('c', { n: 2 }),
    ])
    expect(await scene.rows()).toEqual({ a: { n: 2 }, b: { n: 2 }, c: { n: 2 } })
    expect((await scene.feed()).map(({ key }) => key)).toEqual(['a', 'b', 'c'])
  })

  test('XD15 an upsert and a delete of one key on a page: the later one wins', async () => {
    await land([upsert('kept')])
    expect(await land([remove('kept'), upsert('kept', { n: 2 }), upsert('gone'), remove('gone')])).toMatchObject({
      counts: counts({ updated: 1, missing: 1 }),
    })
    expect(await scene.keys()).toEqual(['kept'])
  })

  test('the envelope has the cursor and the source’s own time', async () => {
    await land([upsert('a', {}, { cursor: '00042', at: '2026-01-01T02:00:00.1234567+02:00' })])
    expect((await scene.feed())[0]).toMatchObject({
      cursor: '00042',
      upstreamAt: '2026-01-01T00:00:00.123456Z',
      page: 1,
      cycle: 1,
      sync: 'sync',
    })
  })
})

describe('keys', () => {
  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['empty', ''],
    ['a number', 1],
    ['an object', {}],
    ['an array', ['a']],
    ['a boolean', true],
    ['a bigint', 1n],
    ['text with NUL', 'a\0b'],
    ['half a surrogate pair', 'a\ud800'],
    ['longer than 1024 bytes', 'é'.repeat(513)],
  ])('XD16 a key that is %s is quarantined and never converted to text', async (_, key) => {
    const entry = await quarantineOf({ type: 'upsert', key, record: { a: 1 } })
    expect(entry).toMatchObject({ code: 'KEY_INVALID', key: null, database: DATABASE, sync: 'sync', page: 1 })
    expect(entry.text).toContain('{"a":1}')
  })

  test('XD16 a missing key is quarantined, for a delete too', async () => {
    expect(await quarantineOf({ type: 'delete' })).toMatchObject({
      code: 'KEY_INVALID',
      message: 'the key is undefined, not a string',
    })
  })

  test('XD16 a key of exactly 1024 bytes lands', async () => {
    await land([upsert('é'.repeat(512))])
    expect(await scene.keys()).toEqual(['é'.repeat(512)])
  })

  test('XD18 the number 1 is not a valid key, and the text "1" is not "1.0", "01" or "+1"', async () => {
    expect(await quarantineOf({ type: 'upsert', key: 1, record: {} })).toMatchObject({
      code: 'KEY_INVALID',
      message: 'the key is a number, not a string',
    })
    await land(['1', '1.0', '01', '+1', ' 1'].map((key) => upsert(key)))
    expect(await scene.rows()).toMatchObject({
      '1': { of: '1' },
      '1.0': { of: '1.0' },
      '01': { of: '01' },
      '+1': { of: '+1' },
      ' 1': { of: ' 1' },
    })
  })

  test('XD20 lone surrogates are not valid keys, so that two of them cannot become one', async () => {
    expect(await land([upsert('\ud800'), upsert('\udc00'), upsert('\ud83c\udf0a')])).toMatchObject({
      counts: counts({ created: 1, quarantined: 2 }),
    })
    expect(await scene.keys()).toEqual(['\u{1f30a}'])
  })

  test('XD21 keys that look alike are different: composed and decomposed, upper and lower case, full-width, zero-width', async () => {
    const alike = ['é', 'e\u0301', 'É', 'ｅ́', 'e', 'E', 'е', 'e\u200b', 'ß', 'ss', 'ı', 'i']
    await land(alike.map((key) => upsert(key)))
    expect(Object.keys(await scene.rows()).toSorted()).toEqual(alike.toSorted())
  })

  test('XD22 names of Object.prototype are ordinary keys and fields, and no prototype changes', async () => {
    const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf']
    const before = Object.getOwnPropertyNames(Object.prototype)
    const record = parseJson(
      `{${names.map((name) => `${JSON.stringify(name)}:{"polluted":"${name}"}`).join()}}`,
    ) as JsonObject
    expect(await land(names.map((key) => upsert(key, record)))).toMatchObject({
      counts: counts({ created: names.length }),
    })
    for (const key of names) expect(Object.keys(parseJson(await textOf(key)) as JsonObject)).toEqual(names)
    expect((await scene.store.databases())[0]!.columns.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
    expect(await land(names.map((key) => upsert(key, record)))).toMatchObject({
      counts: counts({ unchanged: names.length }),
    })
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  test('XD25 keys and fields that look like SQL are text', async () => {
    const nasty = `x'); drop table tidemark_rows; --"`
    await land([upsert(nasty, { [nasty]: nasty })])
    expect(await scene.rows()).toEqual({ [nasty]: { [nasty]: nasty } })
  })
})

describe('records', () => {
  test('XD12 a record nested 200,000 deep is quarantined, and one at the limit lands', async () => {
    const entry = await quarantineOf(upsert('deep', nested(200_000)))
    expect(entry).toMatchObject({ key: 'deep', code: 'RECORD_TOO_DEEP' })
    expect(await land([upsert('64', nested(64)), upsert('65', nested(65))])).toMatchObject({
      counts: counts({ created: 1, quarantined: 1 }),
    })
    expect(await textOf('64')).toContain('{"n":{"n":')
  })

  test('XD12 a circular record is quarantined', async () => {
    const record: JsonObject = {}
    record['self'] = record
    expect(await quarantineOf(upsert('loop', record))).toMatchObject({ key: 'loop', code: 'RECORD_TOO_DEEP' })
  })

  test.each<[string, JsonObject, ErrorCode, string]>([
    [
      'of more than 5 MB',
      { list: Array.from({ length: 60_000 }, (_, n) => `${n}${'x'.repeat(90)}`) },
      'RECORD_TOO_LARGE',
      '5868900 bytes',
    ],
    ['with one giant string', { text: 'x'.repeat(5_000_000) }, 'RECORD_TOO_LARGE', '5000011 bytes'],
    ['with a giant string of three bytes each', { text: '€'.repeat(1_700_000) }, 'RECORD_TOO_LARGE', '5100011 bytes'],
    [
      'with 100,000 fields',
      Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`m${n}`, n])),
      'RECORD_TOO_WIDE',
      'more than 10000 fields',
    ],
    [
      'with 100,000 fields further down',
      { deep: [Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`m${n}`, n]))] },
      'RECORD_TOO_WIDE',
      'more than 10000 fields',
    ],
    [
      'with 12,000 fields in objects of two',
      { list: Array.from({ length: 6_000 }, (_, n) => ({ n, m: n })) },
      'RECORD_TOO_WIDE',
      'more than 10000 fields',
    ],
  ])('XD13 one %s is quarantined with its key and size', async (_, record, code, size) => {
    const entry = await quarantineOf(upsert('giant', record))
    expect(entry).toMatchObject({ key: 'giant', code, message: expect.stringContaining(size) })
    expect(entry.text.length).toBeLessThanOrEqual(65_536)
  })

  test('XD13 XD20 the stored text of a giant record is truncated, and never in the middle of a character', async () => {
    const kept: string[] = []
    const store = storeWith(scene.store, {
      commit(commit) {
        kept.push(...commit.quarantined.map(({ text }) => text))
        return scene.store.commit(commit)
      },
    })
    const giant = { text: '\u{1f30a}'.repeat(2_000_000) }
    await scene.run(
      planOf(createScriptedSource({ changes: [upsert('even', giant), upsert('odd', giant)], hasMore: false })),
      { store },
    )
    expect(kept.map((text) => text.length)).toEqual([65_536, 65_536])
    expect(kept.every((text) => text.isWellFormed())).toBe(true)
  })

  test('XD14 a duplicate field is reported, and the last one is committed', async () => {
    const twice: string[] = []
    const record = parseJson('{"a":1,"b":{"c":1,"c":2},"a":3}', {
      onDuplicate: (name) => twice.push(name),
    }) as JsonObject
    expect(twice).toEqual(['c', 'a'])
    await land([upsert('k', record)])
    expect(await textOf('k')).toBe('{"a":3,"b":{"c":2}}')
  })

  test('XD17 integers beyond 2^53 keep every digit, and neighbours stay distinct', async () => {
    const text =
      '{"id":9007199254740993,"big":-123456789012345678901234567890,"list":[18446744073709551615],"safe":9007199254740991}'
    await land([upsert('a', parseJson(text) as JsonObject)])
    expect(await textOf('a')).toBe(text)
    expect(parseJson(await textOf('a'))).toEqual(parseJson(text))
    const neighbour = text.replace('9007199254740993', '9007199254740992')
    expect(await land([upsert('a', parseJson(neighbour) as JsonObject)])).toMatchObject({
      counts: counts({ updated: 1 }),
    })
    expect(await textOf('a')).toBe(neighbour)
  })

  test.each<[string, JsonObject]>([
    ['in a value', { text: 'a\0b' }],
    ['in a member’s name', { 'a\0b': 1 }],
    ['far down', { list: [{ text: '\0' }] }],
    ['beside a backslash', { text: '\\\0' }],
  ])('XD19 NUL %s is quarantined, on every store alike', async (_, record) => {
    const entry = await quarantineOf(upsert('nul', record))
    expect(entry).toMatchObject({ key: 'nul', code: 'TEXT_UNSTORABLE', message: 'the record contains NUL' })
    expect(entry.text).not.toContain('\0')
  })

  test.each<[string, JsonObject]>([
    ['first half', { text: 'a\ud83c' }],
    ['second half', { text: '\udf0aa' }],
    ['halves the wrong way round', { text: '\udf0a\ud83c' }],
    ['half in a name', { '\ud800': 1 }],
  ])('XD20 the %s of a surrogate pair is quarantined', async (_, record) => {
    const entry = await quarantineOf(upsert('half', record))
    expect(entry).toMatchObject({ key: 'half', code: 'TEXT_UNSTORABLE', message: 'the record has a lone surrogate' })
    expect(entry.text.isWellFormed()).toBe(true)
  })

  test('XD19 XD20 text that only looks like an escape lands', async () => {
    const record = { a: '\\u0000', b: '\\\\ud800', c: '\u{1f30a}', d: '\u0001\u2028' }
    await land([upsert('a', record)])
    expect(await scene.rows()).toEqual({ a: record })
  })

  test.each<[string, unknown]>([
    ['NaN', { n: Number.NaN }],
    ['Infinity', { n: [Number.POSITIVE_INFINITY] }],
    ['a function', { f: () => 1 }],
    ['a symbol', { s: Symbol('s') }],
    ['an invalid Date', { d: new Date(Number.NaN) }],
    ['a Map', { m: new Map() }],
    ['a Set', { s: new Set() }],
    ['bytes', { b: new Uint8Array(2) }],
  ])('a record with %s inside is quarantined', async (_, record) => {
    expect(await quarantineOf({ type: 'upsert', key: 'odd', record })).toMatchObject({
      key: 'odd',
      code: 'RECORD_INVALID',
    })
  })

  test.each<[string, unknown, string | null]>([
    ['a key', 'odd', 'odd'],
    ['no key', null, null],
    ['an invalid key', '', null],
    ['a key of another type', 7, null],
  ])('RX7 an invalid change with %s is quarantined with its reason', async (_, key, stored) => {
    const entry = await quarantineOf({ type: 'invalid', key, reason: 'a.csv ends\0early', raw: ['1', 'b'] })
    expect(entry).toMatchObject({ key: stored, code: 'RECORD_INVALID', message: 'a.csv ends\u2400early' })
    expect(JSON.parse(entry.text)).toEqual({ key, raw: ['1', 'b'] })
  })

  test('an error in place of a record is not stored as an empty record', async () => {
    expect(await quarantineOf({ type: 'upsert', key: 'odd', record: new Error('late') })).toMatchObject({
      key: 'odd',
      code: 'RECORD_INVALID',
    })
  })

  test('the message for a record that is an array says so', async () => {
    expect(await quarantineOf({ type: 'upsert', key: 'odd', record: [] })).toMatchObject({
      code: 'RECORD_INVALID',
      message: 'the record is an array, not an object',
    })
  })

  test.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['text', 'text'],
    ['a Date', new Date(0)],
    ['an object that writes itself as text', { toJSON: () => 'text' }],
    ['an object that writes itself as nothing', { toJSON: () => undefined }],
    [
      'an object that refuses to be written',
      {
        toJSON: () => {
          throw new Error('no')
        },
      },
    ],
    ['an object with a part that refuses to be written', { part: { toJSON: () => 1n } }],
  ])('a record that is %s is quarantined', async (_, record) => {
    expect(await quarantineOf({ type: 'upsert', key: 'odd', record })).toMatchObject({
      key: 'odd',
      code: 'RECORD_INVALID',
    })
  })

  test('a Date is stored as its text, undefined fields are absent, and an empty record is a record', async () => {
    await land([upsert('a', { at: new Date(0), none: undefined, list: [undefined] } as never), upsert('b', {})])
    expect(await scene.rows()).toEqual({ a: { at: '1970-01-01T00:00:00.000Z', list: [null] }, b: {} })
  })

  test.each([
    '2026-01-01',
    '2026-01-01T00:00:00',
    'yesterday',
    'infinity',
    '',
    '2026-02-30T00:00:00Z',
    1_767_225_600_000,
    new Date(0),
  ])('XC22 XC23 the time %s of a change goes to quarantine: it could not be compared', async (at) => {
    expect(await quarantineOf({ ...upsert('a'), upstreamUpdatedAt: at })).toMatchObject({
      key: 'a',
      code: 'TIMESTAMP_INVALID',
    })
  })
})

describe('quarantine', () => {
  test('keeps the reason, the sync, the cycle and the page, and one entry per record', async () => {
    const bad = upsert('bad', { n: Number.NaN })
    await scene.run(
      planOf(
        createScriptedSource(
          { changes: [upsert('a')], hasMore: true, nextState: 1 },
          { changes: [bad], hasMore: false },
        ),
      ),
    )
    await land([bad])
    expect(await scene.store.quarantineEntries()).toMatchObject([
      {
        key: 'bad',
        code: 'RECORD_INVALID',
        message: 'the record contains NaN',
        database: DATABASE,
        worker: 'shop',
        sync: 'sync',
        cycle: 2,
        page: 1,
        at: scene.clock.now(),
      },
    ])
  })

  test('a key that is committed or deleted later is removed from it', async () => {
    await land([upsert('a', { n: Number.NaN }), upsert('b', { n: Number.NaN }), upsert('c', { n: Number.NaN })])
    await land([upsert('a', { n: 1 }), remove('b')])
    expect((await scene.store.quarantineEntries()).map(({ key }) => key)).toEqual(['c'])
  })

  test('the existing row stays unchanged', async () => {
    await land([upsert('a', { n: 1 })])
    await land([upsert('a', { n: Number.NaN })])
    expect(await scene.rows()).toEqual({ a: { n: 1 } })
  })

  test('a quarantined record does not advance the tidemark', async () => {
    await land([
      upsert('a', {}, { at: '2026-01-01T00:00:00Z' }),
      upsert('b', { n: Number.NaN }, { at: '2027-01-01T00:00:00Z' }),
    ])
    expect((await scene.checkpoint()).tidemark).toBe('2026-01-01T00:00:00.000000Z')
  })
})

describe('schemas and drift', () => {
  const validate = (record: JsonObject): string | null =>
    typeof record['n'] === 'number' ? null : '`n` is not a number'

  test('XD24 with a schema, an invalid record is quarantined with the reason, and the rest lands', async () => {
    expect(await land([upsert('a', { n: 1 }), upsert('b', { n: '1' }), remove('c')], { validate })).toMatchObject({
      counts: counts({ created: 1, quarantined: 1, missing: 1 }),
    })
    expect(await scene.store.quarantineEntries()).toMatchObject([
      { key: 'b', code: 'SCHEMA_MISMATCH', message: '`n` is not a number' },
    ])
  })

  test('XD24 a schema may be asynchronous', async () => {
    await land([upsert('a', { n: 1 }), upsert('b', {})], {
      validate: async (record) => {
        await scene.clock.sleep(10)
        return validate(record)
      },
    })
    expect(await scene.keys()).toEqual(['a'])
  })

  test('XD24 without a schema nothing is refused: new, missing and retyped fields land, and the columns show it', async () => {
    await land([upsert('a', { id: 1, name: 'x', at: null })])
    expect(
      await land([upsert('a', { id: '1', extra: { deep: true } }), upsert('b', { id: 2.5, name: false })]),
    ).toMatchObject({ counts: counts({ updated: 1, created: 1 }) })
    expect((await scene.store.databases())[0]).toMatchObject({
      rows: 2,
      columns: [
        { name: 'id', kinds: ['integer', 'number', 'string'] },
        { name: 'name', kinds: ['boolean', 'string'] },
        { name: 'at', kinds: [] },
        { name: 'extra', kinds: ['json'] },
      ],
    })
    expect(await scene.rows()).toEqual({ a: { id: '1', extra: { deep: true } }, b: { id: 2.5, name: false } })
  })

  test('XD24 a field first seen on a later page becomes a column', async () => {
    await scene.run(
      planOf(
        createScriptedSource(
          { changes: [upsert('a', { one: 1 })], hasMore: true, nextState: 1 },
          { changes: [upsert('b', { one: 1, two: 2 })], hasMore: false },
        ),
      ),
    )
    expect((await scene.store.databases())[0]!.columns.map(({ name }) => name)).toEqual(['one', 'two'])
  })

  test('a field is reported to the store once in a cycle, and again with another kind', async () => {
    const told: unknown[] = []
    const store = storeWith(scene.store, {
      commit(commit) {
        told.push(commit.columns[DATABASE]?.map(({ name, kinds }) => `${name}: ${kinds.join(' or ')}`))
        return scene.store.commit(commit)
      },
    })
    // One page is read ahead, so a field is known from the page after the next.
    const page = (at: number, record: JsonObject) => ({
      changes: [upsert(`${at}`, record)],
      hasMore: at < 5,
      nextState: at,
    })
    await scene.run(
      planOf(
        createScriptedSource(
          page(1, { n: 1 }),
          page(2, { n: 1 }),
          page(3, { n: 2 }),
          page(4, { n: 'two', m: null }),
          page(5, { n: 3 }),
        ),
      ),
      { store },
    )
    expect(told).toEqual([['n: integer'], ['n: integer'], undefined, ['n: integer or string', 'm: '], undefined])
  })

  test('XD24 a quarantined record adds no column', async () => {
    await land([upsert('a', { n: 1 }), upsert('b', { m: 1 })], { validate })
    expect((await scene.store.databases())[0]!.columns.map(({ name }) => name)).toEqual(['n'])
  })
})
