import assert from 'node:assert/strict'
import type { DatabaseInfo, JsonObject, Landing, Store } from '../../../src/contract/index.ts'
import {
  counts,
  DATABASE,
  readFeed,
  makeQuarantined,
  remove,
  rule,
  SyncDriver,
  upsert,
  type StoreCase,
} from '../../../src/testing/store-cases/harness.ts'
import { equalsJson, stringifyJson } from '../../../src/values/json.ts'

/** Rules of the tables that only show with many rows, wide rows, or several pages; for both stores. */
export const rowCases: readonly StoreCase[] = [
  rule('XD24 null and absent are different contents, even in a row older than the column', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    await driver.cycle([upsert('b', { n: 1, m: 'x' })])
    const changes = [
      ['a', { n: 1, m: null }],
      ['a', { n: 1 }],
      ['b', { n: 1, m: null }],
      ['b', { n: null, m: 'x' }],
      ['b', { m: 'x' }],
      ['b', { n: 1 }],
    ] as const
    for (const [key, record] of changes) {
      assert.deepEqual(
        (await driver.cycle([upsert(key, record)])).counts,
        counts({ updated: 1 }),
        stringifyJson(record),
      )
      assert.ok(equalsJson((await store.row(DATABASE, key))!.text, stringifyJson(record)))
      // Another order of fields is the same content.
      const turned = upsert(key, stringifyJson(Object.fromEntries(Object.entries(record).toReversed())))
      assert.deepEqual((await driver.cycle([turned])).counts, counts({ unchanged: 1 }))
    }
  }),
  rule('XD24 a field that was null or absent before it had a column stays so', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    // Mostly absent at first and then mostly present, and the other way round.
    const pages: JsonObject[][] = [
      [{ n: 1, rare: null, usual: null }, { n: 1, usual: null }, { n: 1 }],
      [
        { n: 1, rare: 'x' },
        { n: 1, rare: 'y' },
        { n: 1, rare: 'z', usual: 'x' },
      ],
      [{ n: 1, rare: null, usual: null }, { n: 1 }],
    ]
    for (const [at, page] of pages.entries()) {
      await driver.cycle(page.map((record, n) => upsert(`k${pages.slice(0, at).flat().length + n}`, record)))
    }
    await assertRecords(store, pages.flat())
  }),
  rule('a value that its column cannot hold is content: changing it is a change', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    for (const n of ['one', null, 'two', 2.5, 2]) {
      assert.deepEqual((await driver.cycle([upsert('a', { n })])).counts, counts({ updated: 1 }), String(n))
      assert.deepEqual(
        (await driver.cycle([upsert('a', ` {"n": ${stringifyJson(n)}}`)])).counts,
        counts({ unchanged: 1 }),
        String(n),
      )
    }
  }),
  rule('a page with distant keys finds its rows and its tombstones', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const keys = Array.from({ length: 60 }, (_, n) => `k${String(n).padStart(2, '0')}`)
    await driver.cycle(keys.map((key) => upsert(key, { n: 1 }, { at: 10 })))
    assert.deepEqual(
      (await driver.cycle([upsert('k00', { n: 2 }, { at: 11 }), upsert('k59', { n: 2 }, { at: 11 })])).counts,
      counts({ updated: 2 }),
    )
    await driver.cycle(keys.slice(1).map((key) => remove(key, { at: 20 })))
    assert.deepEqual(
      (await driver.cycle([upsert('k01', { n: 3 }, { at: 15 }), upsert('k59', { n: 3 }, { at: 15 })])).counts,
      counts({ stale: 2 }),
    )
    assert.deepEqual(
      (await store.rows({ database: DATABASE, limit: 100 })).map(({ key }) => key),
      ['k00'],
    )
  }),
  rule('each row of a page keeps its own cursor, time and extra values', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('first', { n: 0 })])
    // Existing, returning and new rows, with sequences in between: none may get the metadata of its neighbour.
    await driver.cycle([remove('back', { at: 1 })])
    const page = [
      upsert('a', { n: 1 }),
      upsert('b', { n: 'text' }, { cursor: 'c-b', at: 30 }),
      upsert('back', { n: 2 }, { cursor: 'c-back', at: 31 }),
      upsert('first', { n: 3 }, { cursor: 'c-first' }),
      upsert('z', { n: 4.5 }, { at: 32 }),
    ]
    await driver.cycle(page)
    for (const landing of page) {
      if (landing.type === 'delete') continue
      const entry = (await store.history(DATABASE, landing.key)).at(-1)!
      assert.deepEqual([entry.cursor, entry.upstreamAt], [landing.cursor, landing.upstreamAt], landing.key)
      assert.ok(equalsJson(entry.text!, landing.text), landing.key)
      assert.equal((await store.row(DATABASE, landing.key))!.sequence, entry.sequence)
    }
    assert.deepEqual(
      (await readFeed(store)).map(({ sequence }) => sequence),
      Array.from({ length: await store.headSequence() }, (_, n) => n + 1),
    )
  }),
  rule(
    'XD22 a NUL in a cursor, or in the message of a quarantined record, does not fail the page',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      for (const n of [1, 2]) {
        await driver.cycle([upsert('a', { n }, { cursor: `c\0${n}` })], {
          quarantined: [makeQuarantined(`q${n}`, { message: `no\0${n}` })],
        })
        assert.match((await store.history(DATABASE, 'a')).at(-1)!.cursor!, /^c/)
      }
      assert.deepEqual(
        (await store.quarantineEntries()).map(({ key, message }) => [key, message.slice(0, 2)]),
        [
          ['q2', 'no'],
          ['q1', 'no'],
        ],
      )
    },
  ),
  rule('invariant 6: a page of unchanged rows ends the contest of one of them', async ({ store }) => {
    const delta = await SyncDriver.acquire(store, { owner: 'things' })
    const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace', owner: 'things' })
    const listing = { settledSequence: Number.MAX_SAFE_INTEGER }
    const stored = ['a', 'b', 'c'].map((key) => upsert(key, { n: 1 }, { at: 9 }))
    const contested = [upsert('a', { n: 2 }, { at: 5 }), ...stored.slice(1)]
    await delta.cycle(stored)
    assert.deepEqual((await backfill.cycle(contested, { listing })).counts, counts({ stale: 1, unchanged: 2 }))
    // Twice: the second page of a kind is looked up in another way than the first.
    for (const _ of [1, 2]) {
      assert.deepEqual((await backfill.cycle(stored, { listing })).counts, counts({ unchanged: 3 }))
    }
    assert.deepEqual((await backfill.cycle(contested, { listing })).counts, counts({ stale: 1, unchanged: 2 }))
    assert.deepEqual((await backfill.cycle(contested, { listing })).counts, counts({ updated: 1, unchanged: 2 }))
  }),
  rule('XE13 pages of a log with gaps are as full as those of a log without gaps, and join', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const keys = Array.from({ length: 30 }, (_, n) => `k${String(n).padStart(2, '0')}`)
    // Each commit replaces all but two entries of the one before it.
    for (let round = 0; round < 4; round++)
      await driver.cycle(keys.slice(2 * round).map((key) => upsert(key, { round })))
    const all = await readFeed(store)
    const current = all.filter(
      ({ key, text }) => text === `{"round":${Math.min(3, Math.floor(keys.indexOf(key) / 2))}}`,
    )
    const live = await store.feed({ after: 0, limit: 5, liveOnly: true, scanMax: 1_000 })
    assert.deepEqual(
      live.entries.map(({ sequence }) => sequence),
      current.slice(0, 5).map(({ sequence }) => sequence),
    )
    await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
    const joined: number[] = []
    for (let after = 0; joined.length < current.length; after = joined.at(-1)!) {
      const page = await store.changes({ after, limit: 5 })
      assert.equal(page.length, Math.min(5, current.length - joined.length))
      joined.push(...page.map(({ sequence }) => sequence))
    }
    assert.deepEqual(
      joined,
      current.map(({ sequence }) => sequence),
    )
  }),
  rule('invariant 5: a sweep deletes one row between two that were listed, and no other', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    const page = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => upsert(key, { n: 1 }))
    await driver.cycle(page)
    assert.deepEqual(
      (await driver.cycle(page.filter(({ key }) => key !== 'c'))).counts,
      counts({ unchanged: 5, swept: 1 }),
    )
    assert.deepEqual(
      (await store.rows({ database: DATABASE, limit: 10 })).map(({ key }) => key),
      ['a', 'b', 'd', 'e', 'f'],
    )
    assert.deepEqual((await driver.cycle([page[0]!, page[3]!, page[5]!])).counts, counts({ unchanged: 3, swept: 2 }))
    assert.deepEqual(
      (await store.rows({ database: DATABASE, limit: 10 })).map(({ key }) => key),
      ['a', 'd', 'f'],
    )
  }),
  rule('invariant 6: after pages of unchanged rows, later times of the same records count', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const page = (at: number): Landing[] => ['a', 'b', 'c'].map((key) => upsert(key, { n: 1 }, { at }))
    for (let cycle = 0; cycle < 3; cycle++) await driver.cycle(page(10))
    assert.deepEqual((await driver.cycle(page(20))).counts, counts({ unchanged: 3 }))
    assert.deepEqual((await driver.cycle([upsert('a', { n: 2 }, { at: 15 })])).counts, counts({ stale: 1 }))
  }),
  rule('creations between changes have the sequences of their entries', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const keys = Array.from({ length: 100 }, (_, n) => `k${String(n).padStart(2, '0')}`)
    await driver.cycle(keys.filter((_, n) => n % 3 === 0).map((key) => upsert(key, { n: 1 })))
    const before = await store.headSequence()
    await driver.cycle(keys.map((key) => upsert(key, { n: 2 })))
    const entries = await readFeed(store, before)
    assert.deepEqual(
      entries.map(({ key, sequence }) => [key, sequence]),
      keys.map((key, n) => [key, before + n + 1]),
    )
    assert.deepEqual(
      entries.map(({ action }) => action),
      keys.map((_, n) => (n % 3 === 0 ? 'updated' : 'created')),
    )
  }),
  rule('a page of thousands of creations, changes and deletions is one entry each', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const keys = Array.from({ length: 2_500 }, (_, n) => `k${String(n).padStart(4, '0')}`)
    const databases = (n: number): string => (n < 1_250 ? DATABASE : 'zebras')
    for (const record of [{ n: 1 }, { n: 2, late: 'x' }])
      await driver.cycle(keys.map((key, n) => upsert(key, record, { database: databases(n) })))
    await driver.cycle(keys.map((key) => remove(key)))
    await driver.cycle(keys.map((key) => remove(key, { database: 'zebras' })))
    const entries = await readFeed(store)
    assert.deepEqual(
      entries.map(({ sequence }) => sequence),
      keys
        .flatMap((_, n) => [n, n + 2_500, n + 5_000])
        .toSorted((a, b) => a - b)
        .map((n) => n + 1),
    )
    assert.deepEqual(
      entries.map(({ database, key, action }) => `${action} ${database} ${key}`),
      [
        ...keys.map((key, n) => `created ${databases(n)} ${key}`),
        ...keys.map((key, n) => `updated ${databases(n)} ${key}`),
        ...keys.map((key, n) => `deleted ${databases(n)} ${key}`),
      ],
    )
    const others = await store.changes({ after: 0, limit: 10_000, databases: ['zebras'] })
    assert.deepEqual(
      others,
      entries.filter(({ database }) => database === 'zebras'),
    )
    const cycles = (await store.cycles(null)).map(({ cycle }) => cycle).toReversed()
    assert.deepEqual(
      (await store.history('zebras', keys.at(-1)!)).map(({ cycle, sequence }) => [cycle, sequence]),
      [
        [cycles[0], 2_500],
        [cycles[1], 5_000],
        [cycles[3], 7_500],
      ],
    )
  }),
  rule('pages that are bounded in bytes join without a gap, over versions and deletions', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    for (let round = 0; round < 4; round++) {
      await driver.cycle(
        Array.from({ length: 6 }, (_, n) =>
          round === 2 && n % 2 === 0
            ? remove(`k${n}`)
            : upsert(
                `k${n}`,
                { round, text: 'x'.repeat(100 * ((n * 7 + round) % 5)) },
                { database: n < 3 ? DATABASE : 'others' },
              ),
        ).toSorted((a, b) => (a.database < b.database ? -1 : 1)),
      )
    }
    const all = (await readFeed(store)).map(({ sequence, database, key, action, text }) => ({
      sequence,
      database,
      key,
      action,
      text,
    }))
    for (const bytesMax of [1, 150, 400]) {
      const joined: typeof all = []
      let after = 0
      do {
        const page = await store.feed({ after, limit: 100, scanMax: 1_000, bytesMax })
        assert.ok(page.scannedSequence > after)
        after = page.scannedSequence
        // All but the last are within the bound.
        assert.ok(
          page.entries.slice(0, -1).reduce((sum, { text }) => sum + Buffer.byteLength(text ?? ''), 0) < bytesMax,
        )
        joined.push(
          ...page.entries.map(({ sequence, database, key, action, text }) => ({
            sequence,
            database,
            key,
            action,
            text,
          })),
        )
      } while (after < all.at(-1)!.sequence)
      assert.deepEqual(joined, all, `${bytesMax} bytes`)
    }
    assert.equal((await store.rows({ database: DATABASE, limit: 100, bytesMax: 1 })).length, 1)
  }),
  rule('a page of thousands of deletions of one table is one entry each', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const keys = Array.from({ length: 2_100 }, (_, n) => `k${String(n).padStart(4, '0')}`)
    await driver.cycle(keys.map((key) => upsert(key, { n: 1 })))
    const after = await store.headSequence()
    assert.deepEqual((await driver.cycle(keys.map((key) => remove(key)))).counts, counts({ deleted: 2_100 }))
    const entries = await readFeed(store, after)
    assert.deepEqual(
      entries.map(({ sequence, action, key }) => [sequence - after, action, key]),
      keys.map((key, n) => [n + 1, 'deleted', key]),
    )
    // Each key has a tombstone.
    assert.deepEqual((await driver.cycle(keys.map((key) => remove(key)))).counts, counts({ missing: 2_100 }))
  }),
  rule('a page of thousands of quarantined records is one entry each', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const keys = Array.from({ length: 2_100 }, (_, n) => `k${String(n).padStart(4, '0')}`)
    await driver.cycle([], { quarantined: keys.map((key) => makeQuarantined(key, { message: `${key} is invalid` })) })
    const entries = await store.quarantineEntries({ limit: 10_000 })
    assert.deepEqual(
      entries.map(({ key, message }) => `${key}: ${message}`).toSorted(),
      keys.map((key) => `${key}: ${key} is invalid`),
    )
  }),
  rule(
    'Z14 a table that another process created, or erased and recreated, is read and written',
    async ({ store, reopen }) => {
      const other = await reopen()
      const cycle = async (from: Store, ...landings: Landing[]): Promise<unknown> => {
        const driver = await SyncDriver.acquire(from)
        const landed = await driver.cycle(landings)
        await driver.release()
        return landed.counts
      }
      assert.deepEqual(await cycle(store, upsert('a', { n: 1 })), counts({ created: 1 }))
      assert.deepEqual(await cycle(other, upsert('a', { n: 1 })), counts({ unchanged: 1 }))
      assert.deepEqual(await cycle(other, upsert('a', { n: 2 })), counts({ updated: 1 }))
      assert.equal((await other.eraseTenant({ actor: 'ana', at: 1 })).kind, 'erased')
      assert.deepEqual(await cycle(store, upsert('a', { n: 2 })), counts({ created: 1 }))
      assert.equal((await store.eraseTenant({ actor: 'ana', at: 2 })).kind, 'erased')
      assert.deepEqual(await cycle(store, upsert('a', { n: 3 })), counts({ created: 1 }))
      assert.deepEqual(
        await cycle(other, upsert('a', { n: 3 }), upsert('b', { n: 1 })),
        counts({ created: 1, unchanged: 1 }),
      )
    },
  ),
  rule('a page limited by the size of its columns holds back later entries of other tables', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    // A bytes column may count for more than the text of its record: two digits per byte.
    const columns = [{ name: 'data', type: 'bytes', from: 'schema' }] as const
    await driver.cycle([], { shapes: [{ database: DATABASE, columns, key: [] }] })
    const data = Buffer.alloc(150, 'tidemark').toString('base64')
    await driver.cycle([upsert('a', { data }), upsert('b', { data }), upsert('c', { n: 1 })])
    await driver.cycle([remove('c')])
    const all = (await readFeed(store)).map(({ sequence, key, action }) => ({ sequence, key, action }))
    assert.deepEqual(
      all.map(({ key, action }) => `${key} ${action}`),
      ['a created', 'b created', 'c created', 'c deleted'],
    )
    for (const bytesMax of [1, 205, 250, 290, 410, 500]) {
      const joined: typeof all = []
      for (let after = 0; after < all.length;) {
        const { entries, scannedSequence: scanned } = await store.feed({ after, limit: 100, scanMax: 1_000, bytesMax })
        joined.push(...entries.map(({ sequence, key, action }) => ({ sequence, key, action })))
        after = scanned
      }
      assert.deepEqual(joined, all, `${bytesMax} bytes`)
    }
  }),
  rule('a field of a single record gets its column, wherever the record is in the page', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    for (const [at, name] of ['first', 'second', 'third'].entries()) {
      await driver.cycle([0, 1, 2].map((n) => upsert(`${name} ${n}`, n === at ? { n, [name]: 'x' } : { n })))
      const [{ columns }] = (await store.databases()) as [DatabaseInfo]
      assert.ok(
        columns.some((column) => column.name === name),
        name,
      )
    }
  }),
  rule(
    'XD13 rows of hundreds of long columns are returned exactly, with values that their columns cannot hold',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const record = (seed: number): JsonObject =>
        Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`m${n}`, `${seed} ${'ø'.repeat(n % 40)}`]))
      const records: JsonObject[] = [
        record(1),
        { ...record(2), m3: 5, m899: { nested: true } },
        { m1: 'alone', m2: null },
      ]
      await driver.cycle(records.map((each, n) => upsert(`k${n}`, each)))
      await assertRecords(store, records)
      const turned = [records[1]!, records[2]!, records[0]!]
      await driver.cycle(turned.map((each, n) => upsert(`k${n}`, each)))
      await assertRecords(store, turned)
      // Together they have more values than one statement of a database takes.
      const many = Array.from({ length: 60 }, (_, n) => record(n))
      await driver.cycle(many.map((each, n) => upsert(`k${n}`, each)))
      await assertRecords(store, many)
    },
  ),
  rule('XD17 a number with more digits than a database accepts is returned exactly', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const digits = '1234567890'.repeat(14_000)
    await driver.cycle([upsert('a', { n: 1, o: { n: 1 }, none: null })])
    for (const text of [`{"n":${digits},"o":{"n":1},"none":null}`, `{"n":1,"o":{"n":${digits}}}`]) {
      await driver.cycle([upsert('a', text)])
      assert.ok(equalsJson((await store.row(DATABASE, 'a'))!.text, text))
    }
  }),
]

async function assertRecords(store: Store, records: readonly JsonObject[]): Promise<void> {
  for (const [n, record] of records.entries()) {
    const found = (await store.row(DATABASE, `k${n}`))!.text
    assert.ok(equalsJson(found, stringifyJson(record)), `k${n}: ${found.slice(0, 300)}`)
  }
}
