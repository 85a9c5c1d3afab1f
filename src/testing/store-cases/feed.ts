import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LogEntry, Store } from '../../contract/index.ts'
import { churn, currentRows, replay, runChurn, sortedEntries, type Replica } from './churn.ts'
import {
  seededRandom,
  DATABASE,
  readFeed,
  instant,
  type StoreCase,
  SWEEP_ALL,
  SyncDriver,
  remove,
  START,
  upsert,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

export const feedCases: readonly StoreCase[] = [
  rule('an entry records the change, its sync, its cycle and its page', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { worker: 'billing', sync: 'invoices' })
    const {
      inflight: { cycle },
    } = await driver.begin()
    await driver.page([upsert('a', { n: 1 }, { at: 3, cursor: 'evt_1' })])
    await driver.complete([remove('a', { at: 4 }), upsert('b', { n: 2 })])
    const entries = await readFeed(store)
    const common = { database: DATABASE, worker: 'billing', sync: 'invoices', cycle }
    const [first, second] = [
      required(entries[0], 'entries[0]').committedAt,
      required(entries[1], 'entries[1]').committedAt,
    ]
    assert.deepEqual(
      entries,
      [
        {
          ...common,
          sequence: 1,
          key: 'a',
          action: 'created',
          text: '{"n":1}',
          committedAt: first,
          page: 1,
          cursor: 'evt_1',
          upstreamAt: instant(3),
        },
        {
          ...common,
          sequence: 2,
          key: 'a',
          action: 'deleted',
          text: null,
          committedAt: second,
          page: 2,
          cursor: null,
          upstreamAt: instant(4),
        },
        {
          ...common,
          sequence: 3,
          key: 'b',
          action: 'created',
          text: '{"n":2}',
          committedAt: second,
          page: 2,
          cursor: null,
          upstreamAt: null,
        },
      ].map((entry) => ({
        ...entry,
        text: entry.text === null ? null : assertSameText(entries, entry.sequence, entry.text),
      })),
    )
  }),
  rule(
    'A9 AX4 the entries of a commit are ordered by database and key, with consecutive sequences, whatever the order of the page',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const names = Array.from({ length: 57 }, (_, n) => ({
        database: n % 2 === 0 ? 'things' : 'people',
        key: `k${(n * 23) % 57}`,
      }))
      const odd = ['\u{1f600}', '\uffee', 'é', 'z', 'a', 'a ', 'A'].map((key) => ({ database: 'things', key }))
      assert.equal(
        (await driver.cycle([...names, ...odd].map(({ database, key }) => upsert(key, { key }, { database }))))
          .headSequence,
        64,
      )
      const entries = await readFeed(store)
      const inOrder = [...names, ...odd].toSorted((a, b) =>
        Buffer.compare(Buffer.from(`${a.database} ${a.key}`), Buffer.from(`${b.database} ${b.key}`)),
      )
      assert.deepEqual(
        entries.map(({ database, key }) => ({ database, key })),
        inOrder,
      )
      assert.deepEqual(
        entries.map(({ sequence }) => sequence),
        inOrder.map((_, n) => n + 1),
      )
    },
  ),
  rule('A9 the deletes of a sweep come after the last page, at a later time, in the same order', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    const all = ['d', 'b', 'a', 'c'].flatMap((key) => [
      upsert(key, { n: 1 }),
      upsert(key, { n: 1 }, { database: 'people' }),
    ])
    await driver.cycle(all)
    await driver.cycle([upsert('b', { n: 2 }), upsert('z', { n: 1 })])
    await driver.cycle([upsert('z', { n: 1 })])
    const entries = (await readFeed(store)).slice(all.length)
    assert.deepEqual(
      entries.map(({ database, key, action }) => `${database} ${key} ${action}`),
      [
        'things b updated',
        'things z created',
        'people a deleted',
        'people b deleted',
        'people c deleted',
        'people d deleted',
        'things a deleted',
        'things c deleted',
        'things d deleted',
        'things b deleted',
      ],
    )
    const times = [...new Set(entries.map(({ committedAt }) => committedAt))]
    assert.deepEqual(
      entries.map(({ committedAt }) => times.indexOf(committedAt)),
      [0, 0, 1, 1, 1, 1, 1, 1, 1, 2],
    )
    assert.equal((await store.feed({ after: 0, limit: 0, scanMax: 1 })).headCommittedAt, times[2])
  }),
  rule('O8 invariant 7: after any work the sequences are 1 to n without a gap', async ({ store }) => {
    await runChurn(store, 7, 80)
    const entries = await readFeed(store)
    assert.ok(entries.length > 50)
    assert.deepEqual(
      entries.map(({ sequence }) => sequence),
      entries.map((_, n) => n + 1),
    )
    assert.equal(await store.headSequence(), entries.length)
  }),
  rule('a commit that changes nothing, or is refused, uses no sequence', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 })])
    await driver.cycle([upsert('a', { n: 1 }), remove('x')])
    await driver.begin()
    assert.equal(
      (
        await driver.send(
          await driver.draft(driver.lastPage({ sweep: { maxShare: 0, allowEmpty: false } }), [upsert('b', { n: 1 })]),
        )
      ).kind,
      'massDeleteBlocked',
    )
    assert.equal(
      (await driver.send(await driver.draft(driver.nextPage(), [upsert('b', { n: 1 })], { version: 9 }))).kind,
      'conflict',
    )
    await driver.page([upsert('c', { n: 1 })])
    assert.deepEqual(
      (await readFeed(store)).map(({ sequence, key }) => [sequence, key]),
      [
        [1, 'a'],
        [2, 'c'],
      ],
    )
  }),
  rule(
    'XB16 invariant 7: commit times increase from each to the next, even when the clock steps back',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const other = await SyncDriver.acquire(store, { sync: 'other' })
      const clock = [500, 499, 100, 100, 501, -50_000, 900]
      for (const [n, at] of clock.entries()) {
        await (n % 2 === 0 ? driver : other).cycle([upsert(`a${n}`, { n }), upsert('shared', { n })], {
          at: START + at,
        })
      }
      assertTimesGrow(await readFeed(store))
      await runChurn(store.forTenant('busy'), 11, 60)
      assertTimesGrow(await readFeed(store.forTenant('busy')))
    },
  ),
  ...[1, 2, 3, 4].map((seed): StoreCase => ({
    name: `O7 invariant 8: after random work of three syncs, replaying the feed gives exactly the rows, from the start and from any saved sequence (seed ${seed})`,
    async run({ store }) {
      const random = seededRandom(seed * 1_000)
      const saved: Array<{ position: number; replica: Replica }> = [{ position: 0, replica: new Map() }]
      for await (const _ of churn(store, seed, 100)) {
        if (random() < 0.1) saved.push({ position: await store.headSequence(), replica: await currentRows(store) })
      }
      const rows = sortedEntries(await currentRows(store))
      for (const { position, replica } of saved) {
        assert.deepEqual(
          sortedEntries(replay(await readFeed(store, position), replica)),
          rows,
          `replayed from ${position}`,
        )
      }
    },
  })),
  rule('changes are read above a sequence, up to a limit, for the given databases', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    for (let n = 0; n < 9; n++)
      await driver.cycle([
        upsert(`k${n}`, { n }, { database: required(['things', 'people', 'orders'][n % 3], 'the value[n % 3]') }),
      ])
    const sequences = async (query: { after: number; limit: number; databases?: string[] }) =>
      (await store.changes(query)).map(({ sequence }) => sequence)
    assert.deepEqual(await sequences({ after: 0, limit: 3 }), [1, 2, 3])
    assert.deepEqual(await sequences({ after: 3, limit: 100 }), [4, 5, 6, 7, 8, 9])
    assert.deepEqual(await sequences({ after: 9, limit: 100 }), [])
    assert.deepEqual(await sequences({ after: 1_000_000, limit: 100 }), [])
    assert.deepEqual(await sequences({ after: 0, limit: 100, databases: ['people'] }), [2, 5, 8])
    assert.deepEqual(await sequences({ after: 2, limit: 2, databases: ['people', 'orders'] }), [3, 5])
    assert.deepEqual(await sequences({ after: 0, limit: 100, databases: ['nowhere'] }), [])
    assert.deepEqual(await sequences({ after: 0, limit: 100, databases: [] }), [])
  }),
  rule('rows are read in pages: above a key, up to a limit', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(Array.from({ length: 10 }, (_, n) => upsert(`k${n}`, { n })))
    await driver.cycle([remove('k3'), remove('k9')])
    const found: string[] = []
    for (let after: string | undefined; ;) {
      const page = await store.rows({ database: DATABASE, limit: 3, ...(after === undefined ? {} : { after }) })
      found.push(...page.map(({ key }) => key))
      after = page.at(-1)?.key
      if (after === undefined) break
    }
    assert.deepEqual(found, ['k0', 'k1', 'k2', 'k4', 'k5', 'k6', 'k7', 'k8'])
    assert.deepEqual(
      (await store.rows({ database: DATABASE, after: 'k35', limit: 1 })).map(({ key }) => key),
      ['k4'],
    )
  }),
  rule('the history of a key is its entries, and a row references the newest of them', async ({ store }) => {
    await runChurn(store, 23, 100)
    const entries = await readFeed(store)
    const names = new Set(entries.map(({ database, key }) => JSON.stringify([database, key])))
    for (const name of names) {
      const [database, key] = JSON.parse(name) as [string, string]
      const own = entries.filter((entry) => entry.database === database && entry.key === key)
      assert.deepEqual(await store.history(database, key), own)
      const [row, last] = [await store.row(database, key), required(own.at(-1), 'an entry of own')]
      if (last.action === 'deleted') assert.equal(row, null)
      else
        assert.deepEqual(
          [required(row, 'row').sequence, required(row, 'row').committedAt, required(row, 'row').text],
          [last.sequence, last.committedAt, last.text],
        )
    }
    assert.deepEqual(await store.history(DATABASE, 'never'), [])
    assert.deepEqual(await store.history('nowhere', 'k0'), [])
  }),
  rule(
    'invariant 7: readers on other connections, while two writers commit, never see a sequence before the ones below it',
    async ({ store, reopen }) => {
      const writers = [
        await SyncDriver.acquire(store, { sync: 'one' }),
        await SyncDriver.acquire(await reopen(), { sync: 'two', mode: 'replace' }),
      ]
      let writing = true
      const seen: LogEntry[][] = [[], []]
      const read = async (reader: Store, into: LogEntry[], limit: number): Promise<void> => {
        for (let last = false; ;) {
          last = !writing
          const page = await reader.changes({ after: into.length, limit })
          for (const entry of page) {
            assert.equal(entry.sequence, into.length + 1, 'a reader saw a later sequence first')
            into.push(entry)
          }
          if (last && page.length === 0) return
          if (page.length === 0) await sleep(1)
        }
      }
      const write = async (driver: SyncDriver, name: string): Promise<void> => {
        for (let n = 0; n < 25; n++) {
          const landings = Array.from({ length: 1 + (n % 7) }, (_, k) => upsert(`${name}${k}`, { n }))
          await driver.begin()
          await driver.page(landings)
          await driver.complete([upsert(`${name} last`, { n })], driver.mode === 'replace' ? { sweep: SWEEP_ALL } : {})
        }
      }
      const reading = [
        read(await reopen(), required(seen[0], 'seen[0]'), 3),
        read(await reopen(), required(seen[1], 'seen[1]'), 1_000),
      ]
      try {
        await Promise.all([
          write(required(writers[0], 'writers[0]'), 'one'),
          write(required(writers[1], 'writers[1]'), 'two'),
        ])
      } finally {
        writing = false
        await Promise.all(reading)
      }
      const entries = await readFeed(store)
      assert.ok(entries.length > 200)
      for (const entriesSeen of seen) assert.deepEqual(entriesSeen, entries)
      assert.deepEqual(sortedEntries(replay(entries)), sortedEntries(await currentRows(store)))
    },
  ),
]

/** A store may format a record's text in its own way; `json.ts` tests its meaning. */
function assertSameText(entries: readonly LogEntry[], sequence: number, text: string): string {
  const found = entries.find((entry) => entry.sequence === sequence)?.text ?? ''
  assert.deepEqual(JSON.parse(found), JSON.parse(text))
  return found
}

function assertTimesGrow(entries: readonly LogEntry[]): void {
  for (const [n, entry] of entries.entries()) {
    const before = entries[n - 1]
    if (before === undefined) continue
    const together = before.sync === entry.sync && before.cycle === entry.cycle && before.page === entry.page
    const swept = entry.action === 'deleted' && entry.committedAt === before.committedAt + 1
    if (together)
      assert.ok(
        entry.committedAt === before.committedAt || swept,
        `entries ${before.sequence} and ${entry.sequence} belong to one commit`,
      )
    else
      assert.ok(entry.committedAt > before.committedAt, `entry ${entry.sequence} is not later than ${before.sequence}`)
  }
}
