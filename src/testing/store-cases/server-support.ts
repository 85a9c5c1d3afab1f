import assert from 'node:assert/strict'
import type { ApiKey, FeedEntry, FeedPage } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { CYCLES_RETAINED } from '../../stores/kit/cycles-retained.ts'
import { currentRows, runChurn, sortedEntries, type Replica } from './churn.ts'
import {
  OPERATOR,
  DATABASE,
  readFeed,
  readLiveRows,
  type StoreCase,
  SyncDriver,
  remove,
  START,
  upsert,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

const ALL = { limit: 1_000_000, scanMax: 1_000_000 }
const DAY = 86_400_000
const CURSOR_SECRET = { createdAt: START, rotateAfterMs: 30 * DAY, retainMs: 7 * DAY }

export const serverSupportCases: readonly StoreCase[] = [
  // ── the feed ───────────────────────────────────────────────────────────────────────────────────────────────────────
  rule('the feed returns the entries of the log, and its head sequence', async ({ store }) => {
    assert.deepEqual(await store.feed({ after: 0, ...ALL }), {
      headSequence: 0,
      headCommittedAt: 0,
      floor: 0,
      floorCommittedAt: 0,
      afterCommittedAt: 0,
      entries: [],
      scannedSequence: 0,
      scannedCommittedAt: 0,
    })
    await runChurn(store, 31, 60)
    const entries = (await readFeed(store)).map(({ sequence, database, key, action, text, committedAt }) => ({
      sequence,
      database,
      key,
      action,
      text,
      committedAt,
    }))
    const page = await store.feed({ after: 0, ...ALL })
    assert.deepEqual(page.entries, entries)
    assert.deepEqual(
      [page.headSequence, page.scannedSequence, page.headCommittedAt],
      [entries.length, entries.length, required(entries.at(-1), 'an entry of entries').committedAt],
    )
    const later = await store.feed({ after: 10, limit: 5, scanMax: 1 })
    assert.deepEqual(later.entries, entries.slice(10, 15))
    assert.deepEqual(
      [later.scannedSequence, later.afterCommittedAt],
      [15, required(entries[9], 'entries[9]').committedAt],
    )
    const status = await store.feed({ after: entries.length, limit: 0, scanMax: 1 })
    assert.deepEqual(
      [status.entries, status.scannedSequence, status.afterCommittedAt],
      [[], entries.length, page.headCommittedAt],
    )
    const beyond = await store.feed({ after: entries.length + 5, ...ALL })
    assert.deepEqual([beyond.entries, beyond.scannedSequence, beyond.afterCommittedAt], [[], entries.length + 5, null])
  }),
  rule(
    'a page of the feed or of rows ends at a size limit in bytes, with one entry at least, and none is lost',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle(
        Array.from({ length: 9 }, (_, n) => upsert(`k${n}`, { text: 'é'.repeat(n === 4 ? 3_000 : 500) })),
      )
      const seen: number[] = []
      const sizes: number[] = []
      for (let after = 0; ;) {
        const page = await store.feed({ after, limit: 5, scanMax: 100, bytesMax: 2_500 })
        if (page.entries.length === 0) break
        seen.push(...page.entries.map(({ sequence }) => sequence))
        sizes.push(page.entries.length)
        assert.deepEqual(
          [page.scannedSequence, page.scannedCommittedAt],
          [
            required(page.entries.at(-1), 'an entry of page.entries').sequence,
            required(page.entries.at(-1), 'an entry of page.entries').committedAt,
          ],
        )
        after = page.scannedSequence
      }
      assert.deepEqual(
        [seen, sizes],
        [
          [1, 2, 3, 4, 5, 6, 7, 8, 9],
          [3, 2, 3, 1],
        ],
      )
      const filtered = await store.feed({
        after: 0,
        limit: 5,
        scanMax: 100,
        bytesMax: 1,
        databases: [DATABASE],
        liveOnly: true,
      })
      assert.deepEqual([filtered.entries.length, filtered.scannedSequence], [1, 1])
      const keys: string[] = []
      for (;;) {
        const rows = await store.rows({
          database: DATABASE,
          limit: 5,
          bytesMax: 2_500,
          ...(keys.length > 0 && { after: required(keys.at(-1), 'an entry of keys') }),
        })
        if (rows.length === 0) break
        assert.ok(rows.length <= 3)
        keys.push(...rows.map(({ key }) => key))
      }
      assert.deepEqual(
        keys,
        Array.from({ length: 9 }, (_, n) => `k${n}`),
      )
    },
  ),
  rule(
    'a page bounded by bytes has every entry in order, also where current rows, replaced versions and deletions alternate',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const keys = Array.from({ length: 90 }, (_, n) => `k${String(n).padStart(2, '0')}`)
      await driver.cycle(keys.map((key) => upsert(key, { value: 1 })))
      await driver.cycle(keys.filter((_, n) => n % 3 === 1).map((key) => upsert(key, { value: 2 })))
      await driver.cycle(keys.filter((_, n) => n % 3 === 2).map((key) => remove(key)))
      const page = await store.feed({ after: 0, limit: 1_000, scanMax: 1, bytesMax: 1_000_000 })
      assert.deepEqual(
        page.entries.map(({ sequence }) => sequence),
        Array.from({ length: 150 }, (_, n) => n + 1),
      )
      const small = await store.feed({ after: 3, limit: 1_000, scanMax: 1, bytesMax: 40 * '{"value":1}'.length })
      assert.deepEqual(
        small.entries.map(({ sequence }) => sequence),
        Array.from({ length: 40 }, (_, n) => n + 4),
      )
    },
  ),
  rule('a filtered page scans a limited number of entries, and returns how far it came', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(
      Array.from({ length: 30 }, (_, n) =>
        upsert(`k${String(n).padStart(2, '0')}`, { n }, { database: n === 24 ? 'rare' : 'common' }),
      ),
    )
    const rare = required(
      (await readFeed(store)).find(({ database }) => database === 'rare'),
      'the match in the result of readFeed',
    ).sequence
    const look = (query: { after: number; limit?: number; databases?: string[] }): Promise<FeedPage> =>
      store.feed({ limit: 10, scanMax: 8, databases: ['rare'], ...query })
    let after = 0
    const found: number[] = []
    for (let looks = 0; after < 30; looks++) {
      assert.ok(looks < 5)
      const page = await look({ after })
      found.push(...page.entries.map(({ sequence }) => sequence))
      assert.ok(page.scannedSequence <= after + 8)
      assert.equal(
        page.scannedCommittedAt,
        required((await readFeed(store))[page.scannedSequence - 1], 'the result of readFeed[…]').committedAt,
      )
      after = page.scannedSequence
    }
    assert.deepEqual(found, [rare])
    assert.deepEqual(
      (await look({ after: 0, databases: ['common', 'rare'], limit: 3 })).scannedSequence,
      (await store.feed({ after: 0, limit: 3, scanMax: 8 })).scannedSequence,
    )
    assert.deepEqual((await look({ after: 0, databases: ['nowhere'] })).entries, [])
    assert.deepEqual((await look({ after: 0, databases: [] })).entries, [])
  }),
  rule('live entries are the rows, each once, in the order of their last change', async ({ store }) => {
    await runChurn(store, 37, 120)
    const { entries } = await store.feed({ after: 0, ...ALL, liveOnly: true })
    assert.deepEqual(sortedEntries(latestByKey(entries)), sortedEntries(await currentRows(store)))
    assert.equal(new Set(entries.map(({ database, key }) => JSON.stringify([database, key]))).size, entries.length)
    for (const { database, key, sequence } of entries)
      assert.equal(required(await store.row(database, key), 'the result of row').sequence, sequence)
    assert.deepEqual(
      await store.databaseNames(),
      (await store.databases()).map(({ name }) => name),
    )
    const only = await store.feed({ after: 0, ...ALL, liveOnly: true, databases: [DATABASE] })
    assert.deepEqual(
      only.entries,
      entries.filter(({ database }) => database === DATABASE),
    )
  }),
  rule(
    'live entries are found behind a long run of replaced versions, one commit after the other',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const versions = 60
      for (let v = 1; v <= versions; v++) await driver.cycle([upsert('a', { v })])
      for (const limit of [1, 2, 100]) {
        const { entries } = await store.feed({ after: 0, limit, scanMax: 1_000, liveOnly: true })
        assert.deepEqual(
          entries.map(({ key, sequence }) => [key, sequence]),
          [['a', versions]],
        )
      }
    },
  ),
  rule('XF6 the sequence before a time has every entry of that time and later above it', async ({ store }) => {
    await runChurn(store, 41, 40)
    const entries = await readFeed(store)
    const times = new Set(entries.flatMap(({ committedAt }) => [committedAt - 1, committedAt, committedAt + 1]))
    for (const time of times) {
      const before = entries.filter(({ committedAt }) => committedAt < time).length
      assert.equal(await store.sequenceBefore(time), before, `before ${time}`)
    }
    assert.equal(await store.sequenceBefore(0), 0)
    assert.equal(await store.sequenceBefore(Number.MAX_SAFE_INTEGER), entries.length)
  }),
  rule('XA17 a sequence that was assigned a second time has another time', async ({ store }, open) => {
    const [once, again] = [await SyncDriver.acquire(store), await SyncDriver.acquire((await open()).store)]
    await once.cycle([upsert('a', { n: 1 })], { at: START + 5 })
    await again.cycle([upsert('a', { n: 1 })], { at: START + 6 })
    const seen = await Promise.all(
      [once, again].map(
        async (driver) => (await driver.store.feed({ after: 1, limit: 0, scanMax: 1 })).afterCommittedAt,
      ),
    )
    assert.deepEqual(seen, [START + 5, START + 6])
  }),

  // ── compaction ─────────────────────────────────────────────────────────────────────────────────────────────────────
  rule(
    'XE13 compaction deletes replaced versions and deletions, in steps, and reports its floor',
    async ({ store }) => {
      await runChurn(store, 43, 120)
      const [entries, rows] = [await readFeed(store), await currentRows(store)]
      const split = Math.floor(entries.length / 2)
      const before = required(entries[split], 'entries[split]').committedAt
      const due = entries.filter(({ committedAt }) => committedAt < before).length
      let removed = 0
      for (let steps = 0, more = true; more; steps++) {
        const step = await store.compact({ before, scanMax: 20 })
        removed += step.removedEntries
        more = step.hasMore
        assert.ok(steps <= due / 20 + 1)
        assert.equal(step.floor, Math.min(due, (steps + 1) * 20))
      }
      assert.ok(removed > 0)
      const left = await readFeed(store)
      assert.equal(left.length, entries.length - removed)
      assert.deepEqual(
        left.filter(({ sequence }) => sequence > due),
        entries.slice(due),
      )
      // The versions among older entries that were current at the floor or later remain.
      for (const { sequence, database, key } of left.filter((entry) => entry.sequence <= due)) {
        const next = (await store.history(database, key)).find((entry) => entry.sequence > sequence)
        assert.ok(next === undefined ? (await store.row(database, key))?.sequence === sequence : next.sequence > due)
      }
      assert.deepEqual(sortedEntries(await currentRows(store)), sortedEntries(rows))
      assert.deepEqual(sortedEntries(latestByKey(left)), sortedEntries(rows))
      const { floor, floorCommittedAt, headSequence: position } = await store.feed({ after: 0, limit: 0, scanMax: 1 })
      assert.deepEqual(
        [floor, floorCommittedAt, position],
        [due, required(entries[due - 1], 'entries[due - 1]').committedAt, entries.length],
      )
      assert.equal((await store.feed({ after: due, limit: 0, scanMax: 1 })).afterCommittedAt, floorCommittedAt)
      assert.deepEqual(await store.compact({ before, scanMax: 20 }), {
        floor: due,
        removedEntries: 0,
        removedCycles: 0,
        hasMore: false,
      })
    },
  ),
  rule(
    'after compaction work continues: deleted rows stay deleted, and the feed still gives the rows',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 1 }, { at: 10 }), upsert('b', { n: 1 }, { at: 10 })])
      await driver.cycle([remove('a', { at: 20 }), upsert('b', { n: 2 }, { at: 20 })])
      await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
      assert.deepEqual((await driver.cycle([upsert('a', { n: 9 }, { at: 15 })])).counts.stale, 1)
      await driver.cycle([upsert('a', { n: 3 }, { at: 30 })])
      assert.deepEqual(await readLiveRows(store), [
        ['a', { n: 3 }],
        ['b', { n: 2 }],
      ])
      await driver.release()
      await runChurn(store, 47, 60)
      assert.deepEqual(sortedEntries(latestByKey(await readFeed(store))), sortedEntries(await currentRows(store)))
    },
  ),
  rule('compaction keeps all entries since a running cycle began', async ({ store }) => {
    const [list, delta] = [
      await SyncDriver.acquire(store, { sync: 'list', mode: 'replace' }),
      await SyncDriver.acquire(store),
    ]
    await delta.cycle([upsert('a', { n: 1 })])
    await list.begin()
    await delta.cycle([upsert('a', { n: 2 })])
    await delta.cycle([upsert('a', { n: 3 })])
    assert.deepEqual(await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 }), {
      floor: 1,
      removedEntries: 0,
      removedCycles: 0,
      hasMore: false,
    })
    await list.abandon()
    assert.deepEqual(await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 }), {
      floor: 3,
      removedEntries: 2,
      removedCycles: 0,
      hasMore: false,
    })
  }),
  rule(
    'a database has its own history retention, beyond the floor of the log and never above it; steps may be interrupted between writers',
    async ({ store, reopen }) => {
      const driver = await SyncDriver.acquire(store)
      const historyDays = { [DATABASE]: 10, other: null }
      const both = (n: number) => [DATABASE, 'other'].map((database) => upsert('a', { n }, { database }))
      const keptOf = async (database: string): Promise<number[]> =>
        (await store.history(database, 'a')).map(({ sequence }) => sequence)
      for (let day = 1; day <= 20; day++) await driver.cycle(both(day), { at: START + day * DAY, historyDays })
      await driver.cycle([remove('a'), upsert('b', { n: 0 })], { at: START + 21 * DAY, historyDays })

      // The log is kept for 5 days, one database for 10: both in steps, each after another opening of the store, between
      // commits.
      const at = START + 22 * DAY
      let steps = 0
      for (let more = true; more; steps++) {
        more = (await (await reopen()).compact({ before: at - 5 * DAY, scanMax: 7, at })).hasMore
        await driver.cycle([upsert('c', { steps })], { at: at + steps, historyDays })
      }
      assert.ok(steps > 3)
      const { floor } = await store.feed({ after: 0, limit: 0, scanMax: 1 })
      const entries = await readFeed(store)
      const before = entries.filter(({ sequence }) => sequence <= floor)
      assert.ok(
        before.some(({ database, key }) => database === DATABASE && key === 'a'),
        'entries older than the log are kept in its history',
      )
      assert.equal((await keptOf('other')).length, 5)
      // The versions of days 11 to 20, the first of which was replaced on day 12, and the deletion.
      assert.equal((await keptOf(DATABASE)).length, 11)
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['b', 'c'],
      )
      assert.deepEqual(await readLiveRows(store, 'other'), [['a', { n: 20 }]])
      // Invariant 8, also from below the floor: kept versions are kept with their deletion.
      const replayed = new Map<string, string>()
      for (const { database, key, action, text } of entries) {
        if (action === 'deleted') replayed.delete(`${database}/${key}`)
        else replayed.set(`${database}/${key}`, required(text, 'text'))
      }
      assert.deepEqual([...replayed.keys()].toSorted(), ['other/a', 'things/b', 'things/c'])

      // A retention shorter than the log's equals the log's.
      await driver.cycle([upsert('c', { steps: -1 })], { at: at + DAY, historyDays: { [DATABASE]: 1 } })
      while ((await store.compact({ before: at - 5 * DAY, scanMax: 100, at: at + 2 * DAY })).hasMore);
      assert.equal((await readFeed(store, floor)).length, entries.filter(({ sequence }) => sequence > floor).length + 1)
      // Without its own retention it follows the log again.
      await driver.cycle([upsert('c', { steps: -2 })], { at: at + 2 * DAY, historyDays: { [DATABASE]: null } })
      while ((await store.compact({ before: at + 3 * DAY, scanMax: 100, at: at + 3 * DAY })).hasMore);
      assert.deepEqual(
        [await keptOf(DATABASE), await keptOf('other')],
        [[], [required(await store.row('other', 'a'), 'the result of row').sequence]],
      )
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['b', 'c'],
      )
    },
  ),
  rule(
    'XE13 the entry that a row referenced when the floor passed it is deleted once the floor passes its successor: the log stays as small as the rows',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('still', { n: 0 }), upsert('moving', { n: 0 })])
      for (let n = 1; n <= 5; n++) {
        await driver.cycle([upsert('moving', { n })])
        await driver.cycle([upsert('passing', { n })])
        await driver.cycle([remove('passing')])
        await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
        assert.deepEqual(
          (await readFeed(store)).map(({ key }) => key),
          ['still', 'moving'],
        )
        assert.deepEqual(
          (await store.history('things', 'moving')).map(({ text }) => parseJson(required(text, 'text'))),
          [{ n }],
        )
      }
      assert.deepEqual(sortedEntries(latestByKey(await readFeed(store))), sortedEntries(await currentRows(store)))
    },
  ),
  rule(
    'XE13 a row whose sequence is also that of a tombstone of a key that never existed outlives both',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('still', { n: 1 })])
      await driver.cycle([remove('ghost', { at: 10 })])
      await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
      await driver.cycle([upsert('ghost', { n: 2 }, { at: 20 })])
      await driver.cycle([upsert('ghost', { n: 3 }, { at: 30 })])
      await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
      assert.deepEqual(await readLiveRows(store), [
        ['ghost', { n: 3 }],
        ['still', { n: 1 }],
      ])
      assert.deepEqual(
        (await readFeed(store)).map(({ key }) => key),
        ['still', 'ghost'],
      )
    },
  ),
  rule(
    'XE13 cycle records are deleted with the log: those that rows reference stay, and for every sync the newest, the last complete and the running one',
    async ({ store }) => {
      const [busy, failing] = [await SyncDriver.acquire(store), await SyncDriver.acquire(store, { sync: 'failing' })]
      await busy.cycle([upsert('still', { n: 0 }), upsert('moving', { n: 0 })])
      await failing.cycle([])
      // Its checkpoint no longer names the cycle that committed it.
      await failing.set(null, 'ana', 'start over')
      const many = CYCLES_RETAINED + 20
      for (let n = 1; n <= many; n++) {
        await busy.cycle([upsert('moving', { n })])
        await failing.begin({ fresh: true })
      }
      const refs = [busy.ref, failing.ref]
      const left = () =>
        Promise.all(refs.map(async (ref) => (await store.cycles(ref, { limit: 1_000 })).map(({ cycle }) => cycle)))
      const [ofBusy, ofFailing] = await left()
      // Nothing is that old.
      assert.deepEqual(await store.compact({ before: START, scanMax: 1_000 }), {
        floor: 0,
        removedEntries: 0,
        removedCycles: 0,
        hasMore: false,
      })
      assert.deepEqual(await left(), [ofBusy, ofFailing])
      await failing.abandon()
      let [removed, steps] = [0, 0]
      for (let more = true; more; steps++) {
        const step = await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 15 })
        assert.ok(step.removedCycles <= 15)
        removed += step.removedCycles
        more = step.hasMore
      }
      // The first cycle of busy has landed the row that `still` references, the first of failing was its last complete
      // one.
      assert.deepEqual(await left(), [
        [...required(ofBusy, 'ofBusy').slice(0, CYCLES_RETAINED), required(ofBusy, 'ofBusy').at(-1)],
        [...required(ofFailing, 'ofFailing').slice(0, CYCLES_RETAINED), required(ofFailing, 'ofFailing').at(-1)],
      ])
      assert.equal(removed, 2 * (many - CYCLES_RETAINED))
      assert.equal(
        required((await store.history('things', 'still'))[0], 'the result of history[0]').cycle,
        required(ofBusy, 'ofBusy').at(-1),
      )
      await busy.cycle([upsert('still', { n: 1 })])
      await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
      assert.equal(required((await left())[0], 'the result of left[0]').length, CYCLES_RETAINED)
    },
  ),

  // ── secrets and keys ───────────────────────────────────────────────────────────────────────────────────────────────
  rule(
    'Z28 the first secret offered seals cursors for all processes; an old one stays while its cursors may be in use',
    async ({ store, reopen }) => {
      const others = await Promise.all(
        [store, await reopen()].map((own, n) =>
          own.cursorSecrets({ ...CURSOR_SECRET, secret: `s${n}`, createdAt: START + n }),
        ),
      )
      assert.equal(required(others[0], 'others[0]').length, 1)
      assert.deepEqual(others[0], others[1])
      const first = required(required(others[0], 'others[0]')[0], 'others[0][0]')
      const renewed = await store.cursorSecrets({ ...CURSOR_SECRET, secret: 'next', createdAt: START + 31 * DAY })
      assert.deepEqual(renewed, [{ secret: 'next', createdAt: START + 31 * DAY }, first])
      const last = await store.cursorSecrets({ ...CURSOR_SECRET, secret: 'last', createdAt: START + 62 * DAY })
      assert.deepEqual(
        last.map(({ secret }) => secret),
        ['last', 'next'],
      )
      assert.equal(
        required(
          (await store.forTenant('acme').cursorSecrets({ ...CURSOR_SECRET, secret: 'theirs' }))[0],
          'the result of cursorSecrets[0]',
        ).secret,
        'theirs',
      )
    },
  ),
  rule('Z43 a key is found by its id from every tenant, and listed and ended only by its own', async ({ store }) => {
    const other = store.forTenant('acme')
    const [ours, theirs] = [
      createApiKey('a1', { endsAt: START + 9 }),
      createApiKey('b2', { createdAt: START - 1, scopes: [] }),
    ]
    await store.addApiKey(ours)
    await other.addApiKey({ ...theirs, tenant: store.tenant } as never)
    for (const asked of [store, other]) {
      assert.deepEqual(await asked.apiKey('a1'), { ...ours, tenant: store.tenant })
      assert.deepEqual(await asked.apiKey('b2'), { ...theirs, tenant: 'acme' })
      assert.equal(await asked.apiKey('unknown'), null)
      assert.equal(await asked.apiKey("' or true --"), null)
    }
    assert.deepEqual(
      (await store.apiKeys()).map(({ id }) => id),
      ['a1'],
    )
    assert.deepEqual(
      (await other.apiKeys()).map(({ id }) => id),
      ['b2'],
    )
    assert.equal(await store.revokeApiKey('b2', START, OPERATOR), false)
    assert.equal(required(await other.apiKey('b2'), 'the result of apiKey').endsAt, null)
    assert.equal(await other.revokeApiKey('b2', START + 5, OPERATOR), true)
    assert.equal(required(await store.apiKey('b2'), 'the result of apiKey').endsAt, START + 5)
    // An expiry can only move to an earlier time.
    assert.equal(await other.revokeApiKey('b2', START + 6, OPERATOR), false)
    assert.equal(await other.revokeApiKey('b2', START + 4, OPERATOR), true)
  }),
  rule('keys are listed oldest first', async ({ store }) => {
    for (const [n, id] of ['c', 'a', 'd', 'b'].entries())
      await store.addApiKey(createApiKey(id, { createdAt: START + n }))
    assert.deepEqual(
      (await store.apiKeys()).map(({ id }) => id),
      ['c', 'a', 'd', 'b'],
    )
  }),
]

/** The rows of a consumer that started from nothing: only the last entry of each key counts. */
function latestByKey(entries: readonly FeedEntry[]): Replica {
  const replica: Replica = new Map()
  for (const { database, key, text } of entries) {
    if (text === null) replica.delete(`${database}/${key}`)
    else replica.set(`${database}/${key}`, text)
  }
  return replica
}

function createApiKey(id: string, overrides: Partial<ApiKey> = {}): Omit<ApiKey, 'tenant'> {
  return {
    id,
    name: `key ${id}`,
    hash: 'ab'.repeat(32),
    scopes: ['changes:read', 'things:read'],
    rateLimit: 60,
    createdAt: START,
    endsAt: null,
    ...overrides,
  }
}
