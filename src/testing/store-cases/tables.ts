import assert from 'node:assert/strict'
import { DATABASE, remove, type StoreCase, type StoreHarness, SyncDriver, upsert, rule } from './harness.ts'
import type { DatabaseInfo, JsonObject, Store } from '../../contract/index.ts'
import { equalsJson, stringifyJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'

export const tableCases: readonly StoreCase[] = [
  rule('a database lists the fields it has met, and their kinds', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([
      upsert('a', { n: 1, s: 'x', none: null }),
      upsert('b', { n: 1.5, o: { deep: 1 }, big: 2n ** 70n }),
    ])
    await driver.cycle([upsert('c', { n: 'text', t: true })])
    const [{ columns, rows, name }] = (await store.databases()) as [Awaited<ReturnType<Store['databases']>>[number]]
    assert.deepEqual({ name, rows }, { name: DATABASE, rows: 3 })
    assert.deepEqual(
      [...columns].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
      [
        { name: 'big', kinds: ['bigint'] },
        { name: 'n', kinds: ['integer', 'number', 'string'] },
        { name: 'none', kinds: [] },
        { name: 'o', kinds: ['json'] },
        { name: 's', kinds: ['string'] },
        { name: 't', kinds: ['boolean'] },
      ],
    )
  }),
  rule(
    'a table has a row per live row and a typed column per field',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      const record = {
        s: 'text',
        i: 42,
        f: 1.5,
        yes: true,
        no: false,
        none: null,
        o: { a: [1, { b: 2 }] },
        list: [1, 2],
        big: 9007199254740993n,
        huge: 123456789012345678901234567890n,
      }
      await driver.cycle([upsert('a', record), upsert('gone', { s: 'x' })])
      await driver.cycle([remove('gone')])
      const rows = await selectRows(harness)
      assert.equal(rows.length, 1)
      const row = required(rows[0], 'rows[0]')
      assert.equal(row['_key'], 'a')
      assert.deepEqual([row['s'], String(row['i']), Number(row['f'])], ['text', '42', 1.5])
      assert.deepEqual([Boolean(row['yes']), Boolean(row['no']), row['none'] ?? null], [true, false, null])
      assert.notEqual(row['no'], null)
      assert.deepEqual([asJson(row['o']), asJson(row['list'])], [record.o, record.list])
      assert.deepEqual([String(row['big']), String(row['huge'])], [String(record.big), String(record.huge)])
    },
    { needs: 'select' },
  ),
  rule(
    'XD24 a new field becomes a column, and rows without it are null',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle([upsert('a', { n: 1 })])
      await driver.cycle([upsert('b', { n: 2, added: 'x' })])
      await driver.cycle([upsert('c', { n: null, added: null }), upsert('d', {})])
      const rows = await selectRows(harness)
      assert.deepEqual(
        rows.map((row) => [row['_key'], row['added']]),
        [
          ['a', null],
          ['b', 'x'],
          ['c', null],
          ['d', null],
        ],
      )
      assert.deepEqual(
        rows.map((row) => row['_extra'] === null),
        [true, true, true, false],
      )
      await assertRecords(harness.store, { a: { n: 1 }, b: { n: 2, added: 'x' }, c: { n: null, added: null }, d: {} })
    },
    { needs: 'select' },
  ),
  rule(
    'XD24 a value that its column cannot hold is kept in _extra: its row is returned exactly, and so are its neighbours',
    async (harness) => {
      const records: Record<string, JsonObject> = {
        a: { n: 1, at: '2026-01-02T03:04:05Z', o: { x: 1 } },
        b: { n: 'two', at: 'soon', o: 'text' },
        c: { n: { three: 3 }, at: null },
        d: { n: true, at: '2026-01-02T03:04:05.1+02:00' },
        e: { n: 2.5, o: [1] },
        f: { n: 2n ** 70n },
        g: { n: 3 },
      }
      const driver = await SyncDriver.acquire(harness.store)
      for (const [key, record] of Object.entries(records)) await driver.cycle([upsert(key, record)])
      await assertRecords(harness.store, records)
      const rows = await selectRows(harness)
      assert.deepEqual(
        rows.map((row) => (row['n'] === null ? null : String(row['n']))),
        ['1', null, null, null, null, null, '3'],
      )
      // Changed back, the value is in its column again, and nothing is left in _extra.
      await driver.cycle([upsert('b', { n: 4, at: '2026-01-02T03:04:05Z', o: { x: 2 } })])
      const back = required(
        (await selectRows(harness)).find((row) => row['_key'] === 'b'),
        'the match in the result of selectRows',
      )
      assert.deepEqual([String(back['n']), back['_extra']], ['4', null])
      await driver.cycle([upsert('g', { n: 'late', added: 1 })])
      await assertRecords(harness.store, {
        ...records,
        b: { n: 4, at: '2026-01-02T03:04:05Z', o: { x: 2 } },
        g: { n: 'late', added: 1 },
      })
    },
    { needs: 'select' },
  ),
  rule(
    'invariant 8: the history holds every replaced version with the range in which it was current',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      for (let n = 1; n <= 3; n++) await driver.cycle([upsert('a', { n }), upsert('b', { n: 0 })])
      await driver.cycle([remove('a')])
      await driver.cycle([upsert('a', { n: 5 })])
      const { table, history } = await readDatabaseInfo(harness.store)
      const versions = (await required(harness.supports, 'harness.supports').select!(history))
        .filter((row) => row['_key'] === 'a')
        .toSorted((x, y) => Number(x['_sequence']) - Number(y['_sequence']))
      const [current] = (await required(harness.supports, 'harness.supports').select!(table)).filter(
        (row) => row['_key'] === 'a',
      )
      const entries = (await harness.store.history(DATABASE, 'a')).map(({ sequence }) => sequence)
      assert.deepEqual(
        versions.map((row) => Number(row['n'])),
        [1, 2, 3],
      )
      assert.deepEqual(
        [...versions.map((row) => Number(row['_sequence'])), Number(required(current, 'current')['_sequence'])],
        [...entries.slice(0, 3), entries[4]],
      )
      assert.deepEqual(
        versions.map((row) => Number(row['_until_sequence'])),
        entries.slice(1, 4),
      )
      assert.equal(entries.length, 5)
    },
    { needs: 'select' },
  ),
  rule(
    'XD23 fields that differ by case or by common name transformations each have their own column',
    (harness) => assertColumns(harness, { 'A b': 'v1', a_b: 'v2', Name: 'v3', name: 'v4', NAME: 'v5', name_2: 'v6' }),
    { needs: 'select' },
  ),
  rule(
    'fields named like the columns of the table itself each have their own column',
    (harness) =>
      assertColumns(harness, { _key: 'v1', _KEY: 'v2', _sequence: 'v3', _synced_at: 'v4', _extra: 'v5', key: 'v6' }),
    { needs: 'select' },
  ),
  rule(
    'fields whose long names begin alike each have their own column',
    (harness) =>
      assertColumns(harness, {
        [`${'m'.repeat(70)}1`]: 'v1',
        [`${'m'.repeat(70)}2`]: 'v2',
        [`${'ø'.repeat(40)}1`]: 'v3',
        [`${'ø'.repeat(40)}2`]: 'v4',
      }),
    { needs: 'select' },
  ),
  rule(
    'fields that are words or signs of SQL each have their own column',
    (harness) =>
      assertColumns(harness, {
        select: 'v1',
        order: 'v2',
        "it's": 'v3',
        'a;b': 'v4',
        $1: 'v5',
        '%s': 'v6',
        'a.b': 'v7',
        ' ': 'v8',
      }),
    { needs: 'select' },
  ),
  rule(
    'XD25 fields that cannot name a column do not break the table',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      const record = {
        '': 'v1',
        '"; drop table things; --': 'v2',
        'a"b': 'v3',
        '\u0001': 'v4',
        'line\nbreak': 'v5',
        '\\': 'v6',
        '\\u0041': 'v7',
        fine: 'yes',
      }
      await driver.cycle([upsert('a', record)])
      const row = required((await selectRows(harness))[0], 'the result of selectRows[0]')
      assert.deepEqual([row['_key'], row['fine']], ['a', 'yes'])
      for (const [name, value] of Object.entries(record))
        if (Object.hasOwn(row, name)) assert.equal(row[name], value, JSON.stringify(name))
    },
    { needs: 'select' },
  ),
  rule(
    'a record with thousands of fields can be selected',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle([upsert('a', Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`m${n}`, n])))])
      const row = required((await selectRows(harness))[0], 'the result of selectRows[0]')
      assert.deepEqual([row['_key'], String(row['m0']), String(row['m500'])], ['a', '0', '500'])
    },
    { needs: 'select' },
  ),
  rule(
    'XD25 databases named like words of SQL, with signs, or alike but for case, each have their own table',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      const names = ['select', 'Order', 'order', 'my-data.v2', 'user', '1st', 'a.b', 'a_b', 'x'.repeat(63)]
      await driver.cycle(names.map((database) => upsert('a', { of: database }, { database })))
      for (const name of names)
        assert.deepEqual(
          (await selectRows(harness, name)).map((row) => row['of']),
          [name],
        )
    },
    { needs: 'select' },
  ),
  rule(
    'invariant 10: tenants whose tables would share a name each have their own, with their own rows',
    async (harness) => {
      const { store } = harness
      const places = [
        [store, 'a.b.c'],
        [store, 'A.b.c'],
        [store.forTenant('a'), 'b.c'],
        [store.forTenant('a.b'), 'c'],
        [store.forTenant('A'), 'b.c'],
      ] as const
      for (const [n, [tenant, database]] of places.entries()) {
        const driver = await SyncDriver.acquire(tenant, { sync: `s${n}` })
        await driver.begin({ databases: [database] })
        await driver.complete([upsert('k', { place: `p${n}` }, { database })])
      }
      // Widening one must not replace another.
      await (
        await SyncDriver.acquire(store, { sync: 'wider' })
      ).cycle([upsert('l', { place: 'p0', wide: 1 }, { database: 'a.b.c' })])
      for (const [n, [tenant, database]] of places.entries()) {
        const rows = await selectRows(harness, database, tenant)
        assert.deepEqual(new Set(rows.map((row) => row['place'])), new Set([`p${n}`]))
      }
      const tables = await Promise.all(
        places.map(async ([tenant, database]) => (await readDatabaseInfo(tenant, database)).table),
      )
      assert.equal(new Set(tables).size, places.length)
    },
    { needs: 'select' },
  ),
]

async function selectRows(
  { store, supports }: StoreHarness,
  database = DATABASE,
  tenant = store,
): Promise<Array<Record<string, unknown>>> {
  const rows = await required(supports, 'supports').select!((await readDatabaseInfo(tenant, database)).table)
  return rows.toSorted((a, b) => (String(a['_key']) < String(b['_key']) ? -1 : 1))
}

async function readDatabaseInfo(store: Store, database = DATABASE): Promise<DatabaseInfo> {
  const found = (await store.databases()).find(({ name }) => name === database)
  assert.ok(found, `databases() lists ${database}`)
  return found
}

async function assertRecords(store: Store, records: Record<string, JsonObject>): Promise<void> {
  for (const [key, record] of Object.entries(records)) {
    const found = await store.row(DATABASE, key)
    const text = stringifyJson(record)
    assert.ok(found !== null && equalsJson(found.text, text), `${key}: ${found?.text} is not ${text}`)
  }
}

function asJson(value: unknown): unknown {
  return typeof value === 'string' ? JSON.parse(value) : value
}

async function assertColumns(harness: StoreHarness, record: JsonObject): Promise<void> {
  const driver = await SyncDriver.acquire(harness.store)
  await driver.cycle([upsert('the key', record)])
  const row = required((await selectRows(harness))[0], 'the result of selectRows[0]')
  assert.equal(row['_key'], 'the key')
  for (const value of Object.values(record)) {
    assert.equal(Object.values(row).filter((other) => other === value).length, 1, `${String(value)} is in one column`)
  }
  // Assigned names stay, whatever comes later.
  await driver.cycle([upsert('later', { nAME: 'late', _Key: 'late', 'a B': 'late', [`${'m'.repeat(70)}3`]: 'late' })])
  const again = required(
    (await selectRows(harness)).find((other) => other['_key'] === 'the key'),
    'the match in the result of selectRows',
  )
  for (const [name, value] of Object.entries(row)) assert.deepEqual(again[name], value, name)
}
