import assert from 'node:assert/strict'
import type {
  ColumnStatistics,
  ColumnStatisticsRequest,
  JsonObject,
  RowFilter,
  RowPosition,
  RowSearch,
  RowSearchPage,
  Store,
} from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { DATABASE, remove, rule, seededRandom, SyncDriver, upsert, type StoreCase } from './harness.ts'

const NEEDS_SEARCH = { needs: 'searchRows' } as const
const BY_KEY = { by: 'key', descending: false } as const

/** Only for stores with `searchRows`: every order, filter and search returns what a reader of all rows would choose. */
export const rowSearchCases: readonly StoreCase[] = [
  rule(
    'rows are read in the order of any field, in both directions: each once, and rows without a value last',
    async ({ store }) => {
      await land(store, ITEMS)
      const orders: Record<string, (record: JsonObject) => unknown> = {
        n: ({ n }) => n,
        price: ({ price }) => price,
        at: ({ at }) => (at == null ? at : Date.parse(at as string)),
        vip: ({ vip }) => (vip == null ? vip : Number(vip)),
        exact: ({ exact }) => (exact == null ? exact : Number(exact)),
      }
      for (const [field, valueOf] of Object.entries(orders)) {
        for (const descending of [false, true]) {
          const expected = Object.entries(ITEMS)
            .toSorted(compareBy(valueOf, descending))
            .map(([key]) => key)
          for (const limit of [1, 3, 100])
            assert.deepEqual(
              await readKeys(store, { order: { by: 'field', field, descending }, limit }),
              expected,
              `${field} ${descending ? 'descending' : 'ascending'}, pages of ${limit}`,
            )
        }
      }
      // Texts are in the order of the database.
      const [up, down] = await Promise.all(
        [false, true].map((descending) =>
          readKeys(store, { order: { by: 'field', field: 'name', descending }, limit: 2 }),
        ),
      )
      assert.deepEqual([up?.length, up?.at(-1), up?.slice(0, -1).toReversed()], [7, 'd', down?.slice(0, -1)])
    },
    NEEDS_SEARCH,
  ),
  rule(
    'rows are read by key and by change, in both directions, and a page ends with its bytes',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle(['a', 'b', 'c', 'd'].map((key) => upsert(key, { text: 'x'.repeat(100) })))
      await driver.cycle([upsert('b', { text: 'y'.repeat(100) })])
      assert.deepEqual(await readKeys(store, { order: { by: 'key', descending: true }, limit: 3 }), [
        'd',
        'c',
        'b',
        'a',
      ])
      assert.deepEqual(await readKeys(store, { order: { by: 'changed', descending: false }, limit: 3 }), [
        'a',
        'c',
        'd',
        'b',
      ])
      const newest = { by: 'changed', descending: true } as const
      const page = await search(store, { order: newest, bytesMax: 150 })
      assert.deepEqual([page.rows.map(({ key }) => key), page.next?.key], [['b', 'd'], 'd'])
      assert.deepEqual(await readKeys(store, { order: newest, bytesMax: 150 }), ['b', 'd', 'c', 'a'])
      const [first] = page.rows
      assert.deepEqual(first, await store.row(DATABASE, 'b'))
    },
    NEEDS_SEARCH,
  ),
  rule(
    'a filter compares by the type of its column',
    async ({ store }) => {
      await land(store, ITEMS)
      const filters: ReadonlyArray<readonly [RowFilter, (record: JsonObject) => boolean]> = [
        [{ field: 'n', test: 'equals', value: '7' }, ({ n }) => n === 7],
        [{ field: 'n', test: 'from', value: '9' }, ({ n }) => n != null && (n as number) >= 9],
        [{ field: 'n', test: 'to', value: '-3' }, ({ n }) => typeof n === 'number' && n <= -3],
        [{ field: 'price', test: 'from', value: '2.5' }, ({ price }) => typeof price === 'number' && price >= 2.5],
        [{ field: 'exact', test: 'to', value: '9' }, ({ exact }) => exact != null && Number(exact) <= 9],
        [{ field: 'name', test: 'equals', value: 'Élodie' }, ({ name }) => name === 'Élodie'],
        [{ field: 'name', test: 'contains', value: 'éLOD' }, ({ name }) => name === 'Élodie'],
        [{ field: 'name', test: 'contains', value: '100%_' }, ({ name }) => name === '100%_[x]*?'],
        [{ field: 'name', test: 'contains', value: '_' }, ({ name }) => name === '100%_[x]*?'],
        [{ field: 'name', test: 'contains', value: '[x]*' }, ({ name }) => name === '100%_[x]*?'],
        [{ field: 'vip', test: 'equals', value: 'false' }, ({ vip }) => vip === false],
        [{ field: 'vip', test: 'empty' }, ({ vip }) => vip == null],
        [{ field: 'vip', test: 'present' }, ({ vip }) => vip != null],
        [
          { field: 'at', test: 'from', value: '2026-01-02T00:00:00+02:00' },
          ({ at }) => at != null && Date.parse(at as string) >= Date.UTC(2026, 0, 1, 22),
        ],
        [{ field: 'tags', test: 'contains', value: 'say "hi"' }, ({ tags }) => JSON.stringify(tags).includes('say')],
      ]
      for (const [filter, isWanted] of filters) {
        const expected = Object.entries(ITEMS).flatMap(([key, record]) => (isWanted(record) ? [key] : []))
        assert.ok(expected.length > 0, JSON.stringify(filter))
        assert.deepEqual(await readKeys(store, { filters: [filter] }), expected.toSorted(), JSON.stringify(filter))
      }
      assert.deepEqual(
        await readKeys(store, {
          filters: [
            { field: 'n', test: 'from', value: '0' },
            { field: 'n', test: 'to', value: '7' },
            { field: 'name', test: 'present' },
          ],
          order: { by: 'field', field: 'n', descending: true },
          limit: 1,
        }),
        ['f', 'b', 'a', 'g'],
      )
    },
    NEEDS_SEARCH,
  ),
  rule(
    'hostile names and values are data: they select nothing else and change nothing',
    async ({ store }) => {
      const field = `x" or 1=1; drop table ${DATABASE}; --`
      const value = "' or '1'='1'; drop table things; --"
      await land(store, { a: { [field]: value }, b: { [field]: 'other' }, 'c\'"--': { [field]: null } })
      const filters = [{ field, test: 'equals', value }] as const
      assert.deepEqual(await readKeys(store, { filters }), ['a'])
      assert.deepEqual(await readKeys(store, { filters: [{ field, test: 'contains', value: "' or '" }] }), ['a'])
      assert.deepEqual(await readKeys(store, { search: value, scanMax: 2 }), ['a'])
      assert.deepEqual(await readKeys(store, { order: { by: 'field', field, descending: false }, limit: 1 }), [
        'a',
        'b',
        'c\'"--',
      ])
      assert.equal((await statistics(store, { field })).distinct, 2)
      const page = await search(store, { order: BY_KEY, after: { value: null, key: value } })
      assert.deepEqual(
        page.rows.map(({ key }) => key),
        ['a', 'b', 'c\'"--'],
      )
      assert.equal((await store.rows({ database: DATABASE, limit: 10 })).length, 3)
    },
    NEEDS_SEARCH,
  ),
  rule(
    'a field without a column and a value that is not of its type are refused',
    async ({ store }) => {
      await land(store, { a: { n: 1, name: 'x', at: '2026-01-01T00:00:00Z', flag: true, o: { a: 1 } } })
      const refused = (filter: RowFilter) =>
        assert.rejects(search(store, { filters: [filter] }), { code: 'ARGUMENT_INVALID' }, JSON.stringify(filter))
      await refused({ field: 'other', test: 'empty' })
      await refused({ field: '_hash', test: 'empty' })
      await refused({ field: 'n', test: 'equals', value: '1 or 1' })
      await refused({ field: 'n', test: 'equals', value: '9223372036854775808' })
      await refused({ field: 'at', test: 'from', value: 'yesterday' })
      await refused({ field: 'flag', test: 'equals', value: '1' })
      await refused({ field: 'name', test: 'from', value: 'a' })
      await refused({ field: 'o', test: 'equals', value: '{}' })
      await assert.rejects(search(store, { order: { by: 'field', field: 'other', descending: false } }), {
        code: 'ARGUMENT_INVALID',
      })
    },
    NEEDS_SEARCH,
  ),
  rule(
    'a search looks at a bounded number of rows per page, says how many, and ends only after the last row',
    async ({ store }) => {
      const names = Array.from({ length: 50 }, (_, n) => `k${String(n).padStart(2, '0')}`)
      await land(
        store,
        Object.fromEntries(
          names.map((key, n) => [key, { name: n % 20 === 3 ? `Needle ${n}` : 'hay', n, none: n % 2 === 0 ? 1 : null }]),
        ),
      )
      const newest = { by: 'changed', descending: true } as const
      const first = await search(store, { search: 'NEEDLE', order: newest, scanMax: 8 })
      assert.deepEqual([first.rows.map(({ key }) => key), first.scanned, first.next !== null], [['k43'], 8, true])
      const { keys, scanned, pages } = await readAll(store, { search: 'NEEDLE', order: newest, scanMax: 8 })
      assert.deepEqual([keys, scanned], [['k43', 'k23', 'k03'], 50])
      assert.ok(pages > 5)
      assert.deepEqual((await readAll(store, { search: 'needle', limit: 1, scanMax: 50 })).keys, ['k03', 'k23', 'k43'])
      const nowhere = await readAll(store, { search: 'nowhere', scanMax: 7 })
      assert.deepEqual([nowhere.keys, nowhere.scanned], [[], 50])
      // By key, by a number, and by a field whose order has a second part.
      assert.deepEqual(await readKeys(store, { search: 'K2', scanMax: 9 }), names.slice(20, 30))
      assert.deepEqual(
        await readKeys(store, { search: '49', scanMax: 9, order: { by: 'field', field: 'n', descending: true } }),
        ['k49'],
      )
      for (const field of ['name', 'none'])
        assert.deepEqual(
          (
            await readKeys(store, { search: 'needle', order: { by: 'field', field, descending: true }, scanMax: 9 })
          ).toSorted(),
          ['k03', 'k23', 'k43'],
        )
    },
    NEEDS_SEARCH,
  ),
  rule(
    'rows are searched as of a time, before the history it is refused, and tenants and deleted rows are not seen',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 5 })])
      const { committedAt } = required(await store.row(DATABASE, 'a'), 'the first version of a')
      await passTime(store, driver, committedAt)
      await driver.cycle([upsert('a', { n: 9 }), upsert('c', { n: 3 }), remove('b')])
      const order = { by: 'field', field: 'n', descending: true } as const
      assert.deepEqual(await readKeys(store, { order, filters: [{ field: 'n', test: 'present' }] }), ['a', 'c'])
      assert.deepEqual(await readKeys(store, { order, asOf: committedAt, limit: 1 }), ['b', 'a'])
      const then = await search(store, { filters: [{ field: 'n', test: 'equals', value: '1' }], asOf: committedAt })
      assert.deepEqual(
        then.rows.map(({ text }) => JSON.parse(text) as unknown),
        [{ n: 1 }],
      )
      assert.equal((await statistics(store, { field: 'n', asOf: committedAt })).max, '5')
      await assert.rejects(search(store, { asOf: committedAt - 60_000 }), { code: 'ARGUMENT_INVALID' })
      const other = store.forTenant('acme')
      assert.deepEqual((await search(other, {})).rows, [])
      await (await SyncDriver.acquire(other)).cycle([upsert('theirs', { n: 5 })])
      assert.deepEqual(await readKeys(other, { search: '5' }), ['theirs'])
      assert.deepEqual(await readKeys(store, { search: 'theirs' }), [])
    },
    NEEDS_SEARCH,
  ),
  rule(
    'statistics count the newest rows of a selection',
    async ({ store }) => {
      await land(store, ITEMS)
      const { top, ...n } = await statistics(store, { field: 'n' })
      assert.deepEqual(n, { scanned: 7, hasMore: false, empty: 1, distinct: 5, min: '-3', max: '9007199254740993' })
      assert.deepEqual(top[0], { value: '7', rows: 2 })
      const vip = await statistics(store, { field: 'vip', filters: [{ field: 'n', test: 'equals', value: '7' }] })
      assert.deepEqual(
        [
          vip.scanned,
          vip.top.map(({ value, rows }) => [value, rows]).toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
        ],
        [
          2,
          [
            ['false', 1],
            ['true', 1],
          ],
        ],
      )
      const some = await statistics(store, { field: 'name', scanMax: 3 })
      assert.deepEqual([some.scanned, some.hasMore], [3, true])
      assert.equal((await statistics(store, { field: 'name', search: 'élodie' })).scanned, 1)
    },
    NEEDS_SEARCH,
  ),
  rule(
    'a search that takes too long stops, and names the index that would help',
    async ({ store }) => {
      const random = seededRandom(7)
      const driver = await SyncDriver.acquire(store)
      for (let page = 0; page < 8; page++)
        await driver.cycle(
          Array.from({ length: 2_000 }, (_, n) => upsert(`k${page}-${n}`, { name: `name ${random()}` })),
        )
      const order = { by: 'field', field: 'name', descending: false } as const
      await assert.rejects(search(store, { order, deadlineMs: 1 }), (error: Error & { code: string }) => {
        assert.equal(error.code, 'QUERY_TOO_LONG')
        assert.match(error.message, /create index .*name/)
        return true
      })
      await assert.rejects(statistics(store, { field: 'name', scanMax: 1_000_000, deadlineMs: 1 }), {
        code: 'QUERY_TOO_LONG',
      })
      const { rows, scan } = await search(store, { order, limit: 1 })
      assert.equal(rows.length, 1)
      assert.match(required(required(scan, 'scan').index, 'index'), /^create index .*"name"/)
      assert.equal((await search(store, { order: BY_KEY, deadlineMs: 1_000, limit: 1 })).scan, null)
    },
    NEEDS_SEARCH,
  ),
]

const ITEMS: Readonly<Record<string, JsonObject>> = {
  a: { n: 3, price: 2.5, name: 'Ada', at: '2026-01-01T22:00:00Z', vip: true, exact: 2n ** 70n, tags: ['x'] },
  b: { n: 7, price: 0.1, name: '100%_[x]*?', at: '2026-01-01T23:00:00.5Z', vip: false, exact: 9.5, tags: [] },
  c: { n: -3, price: 1e-9, name: 'ada', at: '2026-01-03T00:00:00Z', vip: null, exact: 10, tags: ['say "hi"'] },
  d: { n: 9007199254740993n, price: 3, name: null, at: null, vip: true, exact: 9, tags: [] },
  e: { n: null, price: null, name: 'Élodie', at: '2026-01-01T23:00:00Z', vip: null, exact: null, tags: [] },
  f: { n: 7, price: 2.25, name: 'zoë', at: '2026-01-02T23:30:00Z', vip: true, exact: -1.5, tags: [] },
  g: { n: 0, price: -4.5, name: 'Z', at: '2025-12-31T23:59:59Z', vip: false, exact: 3, tags: [] },
}

/** Nulls last in both directions; equal values by key, in the same direction; texts by their bytes. */
function compareBy(valueOf: (record: JsonObject) => unknown, descending: boolean) {
  return ([keyA, a]: [string, JsonObject], [keyB, b]: [string, JsonObject]): number => {
    const [left, right] = [valueOf(a) ?? null, valueOf(b) ?? null]
    if (left === null || right === null) return left === right ? (keyA < keyB ? -1 : 1) : left === null ? 1 : -1
    const order = left === right ? (keyA < keyB ? -1 : 1) : (left as number) < (right as number) ? -1 : 1
    return descending ? -order : order
  }
}

async function land(store: Store, records: Readonly<Record<string, JsonObject>>): Promise<void> {
  await (await SyncDriver.acquire(store)).cycle(Object.entries(records).map(([key, record]) => upsert(key, record)))
}

type SearchOptions = Partial<Omit<RowSearch, 'database'>>

async function search(store: Store, options: SearchOptions): Promise<RowSearchPage> {
  return required(
    store.searchRows,
    'searchRows',
  )({
    database: DATABASE,
    filters: [],
    order: BY_KEY,
    limit: 100,
    bytesMax: 1_000_000,
    scanMax: 1_000,
    deadlineMs: 60_000,
    ...options,
  })
}

async function statistics(
  store: Store,
  options: Partial<ColumnStatisticsRequest> & { readonly field: string },
): Promise<ColumnStatistics> {
  return required(
    store.columnStatistics,
    'columnStatistics',
  )({ database: DATABASE, filters: [], scanMax: 100, deadlineMs: 60_000, ...options })
}

async function readAll(
  store: Store,
  options: SearchOptions,
): Promise<{ keys: string[]; scanned: number; pages: number }> {
  const keys: string[] = []
  let [scanned, pages] = [0, 0]
  let after: RowPosition | undefined
  do {
    const page = await search(store, { ...options, after })
    keys.push(...page.rows.map(({ key }) => key))
    scanned += page.scanned
    after = page.next ?? undefined
    pages++
    assert.ok(pages < 200, 'the pages end')
  } while (after !== undefined)
  return { keys, scanned, pages }
}

async function readKeys(store: Store, options: SearchOptions): Promise<string[]> {
  return (await readAll(store, options)).keys
}

/** Commits until the store's clock has passed a time. */
async function passTime(store: Store, driver: SyncDriver, past: number): Promise<void> {
  for (let n = 0; n < 1_000; n++) {
    await driver.cycle([upsert('clock', { n: null })])
    const row = required(await store.row(DATABASE, 'clock'), 'the row of the clock')
    await driver.cycle([remove('clock')])
    if (row.committedAt > past) return
  }
}
