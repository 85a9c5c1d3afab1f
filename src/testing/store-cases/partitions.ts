import assert from 'node:assert/strict'
import type { Commit, PartitionChange, Store, SyncRef } from '../../contract/index.ts'
import {
  OPERATOR,
  readLiveRows,
  readSnapshot,
  remove,
  rule,
  START,
  type StoreCase,
  SyncDriver,
  upsert,
} from './harness.ts'

export const partitionCases: readonly StoreCase[] = [
  rule('invariant 1: states of partitions are committed with the rows of their page', async ({ store, reopen }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    await driver.page([upsert('a', { n: 1 })], { partitions: partitions({ one: 1, two: 1 }) })
    assert.deepEqual(await statesOf(await reopen(), driver.ref), { one: 1, two: 1 })
    await driver.page([upsert('b', { n: 1 })], { partitions: partitions({ two: 2, three: 2, one: null }) })
    assert.deepEqual(await statesOf(store, driver.ref), { three: 2, two: 2 })
    await driver.complete([], { partitions: partitions({ three: null, never: null }) })
    assert.deepEqual(await statesOf(store, driver.ref), { two: 2 })
    assert.deepEqual(await readLiveRows(store), [
      ['a', { n: 1 }],
      ['b', { n: 1 }],
    ])
  }),
  rule('a commit that is refused changes no partition', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 })], { partitions: partitions({ one: 1 }) })
    await driver.begin()
    const changes = { partitions: partitions({ one: 2, two: 2 }) }
    const before = await readSnapshot(store)
    // Invariant 11: the sweep would delete everything.
    const blocked = await driver.draft(driver.lastPage({ sweep: { maxShare: 0.1, allowEmpty: false } }), [], changes)
    assert.equal((await store.commit(blocked)).kind, 'massDeleteBlocked')
    const page = await driver.draft(driver.nextPage(), [upsert('a', { n: 2 })], changes)
    assert.equal((await store.commit({ ...page, version: page.version + 1 })).kind, 'conflict')
    await assert.rejects(
      store.commit({ ...page, landings: [upsert('c', { n: 1 }), upsert('c', { n: 2 })] }),
      'a duplicate key is not allowed',
    )
    assert.deepEqual(await readSnapshot(store), before)
  }),
  rule('invariant 3: the holder of an old lease changes no partition', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    const commit = await driver.draft(driver.nextPage(), [], { partitions: partitions({ one: 1 }) })
    const next = await SyncDriver.acquire(store, { holder: 'runner-2', evict: 'runner-1' })
    assert.deepEqual(await store.commit(commit), { kind: 'fenced' })
    assert.equal(await store.countPartitions(next.ref), 0)
  }),
  rule('invariant 4: committing a page twice changes no partition the second time', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    const first = await driver.draft(driver.nextPage(), [upsert('a', { n: 1 })], {
      partitions: partitions({ one: 1, two: 1 }),
    })
    await driver.send(first)
    await driver.page([remove('a')], { partitions: partitions({ one: 2, two: null }) })
    const before = await readSnapshot(store)
    assert.equal((await store.commit(first)).kind, 'conflict')
    assert.deepEqual(await readSnapshot(store), before)
    assert.deepEqual(await statesOf(store, driver.ref), { one: 2 })
  }),
  rule('a cycle that starts over or is abandoned keeps the partitions of its pages', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    await driver.page([upsert('a', { n: 1 })], { partitions: partitions({ one: 1 }) })
    await driver.begin({ fresh: true })
    assert.deepEqual(await statesOf(store, driver.ref), { one: 1 })
    await driver.page([], { partitions: partitions({ two: 1 }) })
    await driver.abandon()
    assert.deepEqual(await statesOf(store, driver.ref), { one: 1, two: 1 })
  }),
  rule('a state that is set removes all partitions first, in the same transaction', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    await other.cycle([], { partitions: partitions({ one: 7 }) })
    await driver.cycle([upsert('a', { n: 1 })], { partitions: partitions({ one: 1, two: 1 }) })
    await driver.set('"by hand"')
    assert.equal(await store.countPartitions(driver.ref), 0)
    await driver.begin()
    const copied: Commit = await driver.draft({ kind: 'set', state: null, actor: 'ana', reason: 'copied' }, [], {
      partitions: partitions({ two: 2 }),
    })
    await driver.send(copied)
    const [row] = await store.partitions(driver.ref, { limit: 10 })
    assert.deepEqual(row, { key: 'two', state: '2', cycle: null })
    assert.deepEqual(await statesOf(store, other.ref), { one: 7 })
  }),
  rule(
    'partitions are listed by the UTF-8 bytes of their keys, and pages neither overlap nor skip',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const keys = [
        'a',
        'A',
        'Z',
        'aa',
        'a ',
        'é',
        '\u{ffff}',
        '\u{10000}',
        '東京',
        "'; drop table",
        '%',
        'x'.repeat(1_024),
      ]
      const { headSequence } = await driver.cycle([], {
        partitions: partitions(Object.fromEntries(keys.map((key, index) => [key, index]))),
      })
      assert.equal(headSequence, 0, 'partitions have no sequences')
      const sorted = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      for (const limit of [1, 5, 100]) {
        const found: string[] = []
        for (;;) {
          const after = found.at(-1)
          const rows = await store.partitions(driver.ref, { limit, ...(after !== undefined && { after }) })
          assert.ok(rows.length <= limit)
          if (rows.length === 0) break
          found.push(...rows.map(({ key }) => key))
        }
        assert.deepEqual(found, sorted)
      }
      const wanted = ['A', 'missing', '\u{10000}', 'A']
      const some = await store.partitionStates(driver.ref, wanted)
      assert.deepEqual(new Set(some.map(({ key, state }) => `${key} ${state}`)), new Set(['A 1', '\u{10000} 7']))
      assert.deepEqual(await store.partitionStates(driver.ref, []), [])
    },
  ),
  rule('many partitions are written by one commit and read by their keys', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const keys = Array.from({ length: 300 }, (_, index) => `p${index}`)
    await driver.cycle([], { partitions: partitions(Object.fromEntries(keys.map((key, index) => [key, index]))) })
    assert.equal(await store.countPartitions(driver.ref), 300)
    const found = await store.partitionStates(driver.ref, keys)
    assert.deepEqual(new Set(found.map(({ key, state }) => `${key} ${state}`)).size, 300)
    assert.deepEqual(await store.partitionStates({ ...driver.ref, sync: 'another' }, keys), [])
  }),
  rule('invariant 10: partitions belong to one tenant, and are erased with it', async ({ store }) => {
    const other = store.forTenant('acme')
    const driver = await SyncDriver.acquire(store)
    const theirs = await SyncDriver.acquire(other)
    await driver.cycle([], { partitions: partitions({ one: 1 }) })
    await theirs.cycle([], { partitions: partitions({ one: 2, two: 2 }) })
    assert.deepEqual(await statesOf(store, driver.ref), { one: 1 })
    assert.deepEqual(await statesOf(other, driver.ref), { one: 2, two: 2 })
    await driver.release()
    const erased = await store.eraseTenant({ ...OPERATOR, at: START })
    assert.equal(erased.kind, 'erased')
    assert.equal(await store.countPartitions(driver.ref), 0)
    assert.deepEqual(await statesOf(other, driver.ref), { one: 2, two: 2 })
  }),
]

/** Null removes a partition. */
function partitions(states: Readonly<Record<string, number | null>>): PartitionChange[] {
  return Object.entries(states).map(([key, state]) => ({ key, state: state === null ? null : JSON.stringify(state) }))
}

async function statesOf(store: Store, ref: SyncRef): Promise<Record<string, unknown>> {
  const rows = await store.partitions(ref, { limit: 1_000 })
  return Object.fromEntries(rows.map(({ key, state }) => [key, JSON.parse(state) as unknown]))
}
