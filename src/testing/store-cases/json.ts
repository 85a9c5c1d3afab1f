import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { Landing, Store } from '../../contract/index.ts'
import { equalsJson, parseJson } from '../../values/json.ts'
import { counts, DATABASE, readFeed, type StoreCase, SyncDriver, upsert, rule } from './harness.ts'
import { required } from '../../values/required.ts'

/** Records by key, as texts: the stored value must be equivalent. */
const RECORDS: Record<string, string> = {
  'XD17 integers beyond 2^53':
    '{"id":9007199254740993,"neighbour":9007199254740992,"huge":123456789012345678901234567890,"negative":-9223372036854775809}',
  'numbers of every shape': '{"zero":0,"tiny":1e-7,"fraction":0.1,"long":3.14159265358979,"large":1.5e300}',
  'XD17 negative zeros': '{"zero":-0,"list":[0,-0],"object":{"zero":-0},"id":-0}',
  'XD22 fields that JavaScript treats specially':
    '{"__proto__":{"polluted":true},"constructor":1,"prototype":2,"toString":3,"hasOwnProperty":4}',
  'XD25 fields that contain SQL': `{"\\"; drop table things; --":1,"it's":2,"a\\"b":3,"?":4,"$1":5,":name":6,"%s":7,"a.b[0]":8,"$":9,"\\\\":10}`,
  'fields without a name, with spaces and with line breaks': '{"":1," ":2,"a b":3,"line\\nbreak":4,"tab\\t":5}',
  'texts with quotes, line breaks and every Unicode plane':
    '{"quotes":"\'\\"`","lines":"a\\r\\nb\\u2028c","emoji":"\\ud83c\\udf0a","plain":"日本語 ålesund","controls":"\\u0001\\u001f\\u007f"}',
  'empty and null': '{}',
  'nothing but empty values': '{"null":null,"empty":"","list":[],"object":{},"false":false}',
  'a timestamp and a number as texts': '{"at":"2026-01-31T12:00:00.123456Z","n":"00012","float":"1.0"}',
}

export const jsonCases: readonly StoreCase[] = [
  rule(
    'XD17 XD22 XD25 a record is returned as equivalent JSON, from the row, the feed and the history',
    async ({ store, reopen }) => {
      const driver = await SyncDriver.acquire(store)
      const landings = Object.entries(RECORDS).map(([key, text]) => upsert(key, text))
      await driver.cycle(landings)
      for (const reader of [store, await reopen()]) {
        await assertSame(reader, landings)
        await assertSameValues(reader)
      }
      assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
      assert.deepEqual((await driver.cycle(landings)).counts, counts({ unchanged: landings.length }))
    },
  ),
  rule('XD17 integers that a double cannot distinguish are different contents', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', '{"id":9007199254740992}')])
    assert.deepEqual((await driver.cycle([upsert('a', '{"id":9007199254740993}')])).counts, counts({ updated: 1 }))
    assert.deepEqual((await driver.cycle([upsert('a', '{"id":"9007199254740993"}')])).counts, counts({ updated: 1 }))
  }),
  rule('XD17 zero and negative zero are different contents', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    for (const value of ['0', '-0', '0', '0.5', '-0']) await driver.cycle([upsert('a', `{"n":${value}}`)])
    assert.deepEqual((await driver.cycle([upsert('a', '{"n":-0}')])).counts, counts({ unchanged: 1 }))
    assert.deepEqual((await driver.cycle([upsert('a', '{"n":0}')])).counts, counts({ updated: 1 }))
    assert.deepEqual((await readFeed(store)).at(-1)?.text, '{"n":0}')
  }),
  rule('XD22 a field named __proto__ is content: changing it is a change', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', '{"__proto__":{"x":1}}')])
    assert.deepEqual((await driver.cycle([upsert('a', '{"__proto__":{"x":2}}')])).counts, counts({ updated: 1 }))
    assert.deepEqual((await driver.cycle([upsert('a', '{}')])).counts, counts({ updated: 1 }))
  }),
  rule('XD12 XD13 a deep record and a record of a megabyte land like any other', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const deep = `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`
    const wide = JSON.stringify(Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`member ${n}`, n])))
    const large = JSON.stringify({ text: 'ø'.repeat(500_000), tail: 'x' })
    const landings = [upsert('deep', deep), upsert('large', large), upsert('wide', wide, { database: 'wide' })]
    await driver.cycle(landings)
    await assertSame(store, landings)
    assert.deepEqual((await driver.cycle(landings)).counts, counts({ unchanged: 3 }))
  }),
  rule(
    'XD18 XD21 XD22 keys are compared by their bytes: no case folding, no trimming, no numeric comparison',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.begin()
      for (const [n, key] of KEYS.entries()) await driver.page([upsert(key, { n })])
      await driver.complete([])
      assert.equal((await store.rows({ database: DATABASE, limit: 1_000 })).length, KEYS.length)
      for (const [n, key] of KEYS.entries()) {
        assert.deepEqual(JSON.parse(required(await store.row(DATABASE, key), 'the result of row').text), { n })
        assert.equal((await store.history(DATABASE, key)).length, 1)
      }
      // In one page as well as one by one.
      assert.deepEqual(
        (await driver.cycle(KEYS.map((key, n) => upsert(key, { n })))).counts,
        counts({ unchanged: KEYS.length }),
      )
      assert.deepEqual(
        (await driver.cycle(KEYS.map((key) => upsert(key, { changed: true })).toReversed())).counts,
        counts({ updated: KEYS.length }),
      )
    },
  ),
  rule(
    'XD21 rows are in the order of their UTF-8 bytes, above the surrogates too, and pages of them neither overlap nor skip',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle(KEYS.map((key, n) => upsert(key, { n })))
      const ordered = KEYS.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      const found: string[] = []
      for (let after: string | undefined; ;) {
        const [row] = await store.rows({ database: DATABASE, limit: 1, ...(after === undefined ? {} : { after }) })
        if (row === undefined) break
        found.push((after = row.key))
      }
      assert.deepEqual(found, ordered)
    },
  ),
  rule('XD21 pages of keys above and below the surrogates find the existing rows', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('\u{1f30a}', { n: 1 })])
    // Between '\uff5e' and '\u{1f600}' by bytes, before both by UTF-16 units.
    assert.deepEqual(
      (await driver.cycle(['\uff5e', '\u{1f30a}', '\u{1f600}'].map((key) => upsert(key, { n: 1 })))).counts,
      counts({ created: 2, unchanged: 1 }),
    )
    assert.deepEqual(
      (await driver.cycle(['a', '\u{1f600}', '\uffee'].map((key) => upsert(key, { n: 1 })))).counts,
      counts({ created: 2, unchanged: 1 }),
    )
  }),
]

const KEYS = [
  '1',
  '01',
  '1.0',
  '1e0',
  ' 1',
  '1 ',
  '+1',
  '-0',
  '0',
  'true',
  'null',
  'undefined',
  '[object Object]',
  '10',
  '9',
  '\u00e9',
  'e\u0301',
  'E\u0301',
  '\u00c9',
  'stra\u00dfe',
  'strasse',
  'STRASSE',
  'I',
  '\u0131',
  '\u0130',
  'i',
  'K',
  '\u212a',
  'k',
  '\ufffd',
  '\uff5e',
  '\ufb01',
  'fi',
  '\u{1f30a}',
  '\u{1f600}',
  '\u{10ffff}',
  '\ud7ff',
  '\ue000',
  '\u200b',
  'a\u200b',
  'a',
  '__proto__',
  'constructor',
  'toString',
  'prototype',
  `'; drop table things; --`,
  '"',
  '\\',
  '%',
  '_',
  '*',
  '?',
  '$1',
  '{"a":1}',
  'a/b',
  '../a',
  'line\nbreak',
  'tab\t',
  '\u0001',
  'k'.repeat(1024),
  `${'k'.repeat(1023)}l`,
  '\u00f8'.repeat(512),
  '\u{1f30a}'.repeat(256),
]

async function assertSame(store: Store, landings: readonly Landing[]): Promise<void> {
  const entries = await readFeed(store)
  for (const landing of landings) {
    if (landing.type === 'delete') continue
    const { database, key, text } = landing
    const row = await store.row(database, key)
    const history = await store.history(database, key)
    const entry = entries.find((other) => other.database === database && other.key === key)
    for (const found of [
      required(row, 'row').text,
      required(required(history[0], 'history[0]').text, 'text'),
      required(required(entry, 'entry').text, 'text'),
    ]) {
      assert.ok(isSame(found, text), `${key}: ${found.slice(0, 200)} is not ${text.slice(0, 200)}`)
    }
  }
}

/** A store that returns rows as values returns those of `rows`. */
async function assertSameValues(store: Store): Promise<void> {
  const page = (await store.rowValues?.({ database: DATABASE, limit: 1_000 })) ?? null
  if (page === null) return
  const found = Array.from({ length: page.length }, (_, index) => {
    const text = page.text(index)
    const values = text === null ? page.values(index) : []
    const members = page.members.flatMap((member, at) => (values[at] === undefined ? [] : [[member, values[at]]]))
    const record: unknown = text === null ? Object.fromEntries(members) : parseJson(text)
    return [page.key(index), page.sequence(index), page.committedAt(index), record]
  })
  const rows = await store.rows({ database: DATABASE, limit: 1_000 })
  assert.deepEqual(
    found,
    rows.map(({ key, sequence, committedAt, text }) => [key, sequence, committedAt, parseJson(text)]),
  )
}

/** A store may write 1.5e300 with all its digits; only integers that were written in full must keep each of them. */
function isSame(found: string, text: string): boolean {
  return equalsJson(found, text) || (!/\d{16}/.test(text) && isDeepStrictEqual(JSON.parse(found), JSON.parse(text)))
}
