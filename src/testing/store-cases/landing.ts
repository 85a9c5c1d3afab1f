import assert from 'node:assert/strict'
import type { Landing } from '../../contract/index.ts'
import {
  counts,
  readFeed,
  instant,
  readLiveRows,
  makeQuarantined,
  readSnapshot,
  type StoreCase,
  scenario,
  SyncDriver,
  upsert,
  remove,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

export const landingCases: readonly StoreCase[] = [
  // ── outcome of a change ──
  rule('N13 a new key is created, new content updates it, and both are in the log', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    assert.deepEqual((await driver.cycle([upsert('a', { n: 1 })])).counts, counts({ created: 1 }))
    assert.deepEqual((await driver.cycle([upsert('a', { n: 2 })])).counts, counts({ updated: 1 }))
    assert.deepEqual(await scenario(store), [
      ['created', 'a'],
      ['updated', 'a'],
    ])
    assert.deepEqual(await readLiveRows(store), [['a', { n: 2 }]])
    const row = await store.row('things', 'a')
    assert.deepEqual(
      [required(row, 'row').sequence, required(row, 'row').database, required(row, 'row').key],
      [2, 'things', 'a'],
    )
  }),
  rule(
    'R31 invariant 4: landing the same page again in a later page changes nothing and makes no entry',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const page = [
        upsert('a', { n: 1 }, { at: 1, cursor: 'c1' }),
        upsert('b', { n: 2 }),
        remove('gone', { at: 1 }),
        upsert('c', { n: 3 }, { at: 3 }),
      ]
      await driver.begin()
      await driver.page(page)
      const [before, rows] = [await readFeed(store), await store.rows({ database: 'things', limit: 10 })]
      assert.deepEqual((await driver.page(page)).counts, counts({ unchanged: 3, missing: 1 }))
      assert.deepEqual((await driver.complete(page)).headSequence, before.length)
      await driver.cycle(page)
      assert.deepEqual(await readFeed(store), before)
      assert.deepEqual(await store.rows({ database: 'things', limit: 10 }), rows)
    },
  ),
  rule('invariant 4: the same page landed by another sync changes nothing either', async ({ store }) => {
    const page = [upsert('a', { n: 1 }), upsert('b', { n: 2 }, { at: 2 })]
    await (await SyncDriver.acquire(store)).cycle(page)
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    assert.deepEqual((await other.cycle(page, { readAtSequence: 0 })).counts, counts({ unchanged: 2 }))
    assert.equal(await store.headSequence(), 2)
  }),
  rule(
    'a repeated block is unchanged as a whole, in any order, and any single difference in it is found',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      const block = ['a', 'b', 'c', 'd', 'e'].map((key) => upsert(key, { key }, { at: 1 }))
      const changed = [...block.slice(0, 2), upsert('c', { key: 'C' }, { at: 1 }), ...block.slice(3)]
      await driver.cycle(block)
      await driver.begin()
      // A store may compare a page as a whole only where the one before it was unchanged.
      for (const page of [block, block, block.toReversed()])
        assert.deepEqual((await driver.page(page)).counts, counts({ unchanged: 5 }))
      assert.deepEqual((await driver.page(changed)).counts, counts({ updated: 1, unchanged: 4 }))
      assert.deepEqual((await driver.page(changed)).counts, counts({ unchanged: 5 }))
      assert.deepEqual(
        (await driver.page([...changed, upsert('aa', { key: 'aa' })])).counts,
        counts({ created: 1, unchanged: 5 }),
      )
      assert.deepEqual((await driver.complete(block)).counts, counts({ updated: 1, unchanged: 4 }))
      // Deleted from the middle.
      assert.deepEqual((await driver.cycle(block)).counts, counts({ unchanged: 5, swept: 1 }))
    },
  ),
  rule(
    'a repeated block with later times raises the stored times, so that versions in between are stale',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      const block = (at: number): ReturnType<typeof upsert>[] =>
        ['a', 'b', 'c', 'd'].map((key) => upsert(key, { key }, { at }))
      await driver.cycle(block(1))
      await driver.begin()
      for (const at of [1, 1, 3]) assert.deepEqual((await driver.page(block(at))).counts, counts({ unchanged: 4 }))
      assert.deepEqual(
        (await driver.complete([...block(3).slice(0, 3), upsert('d', { key: 'old' }, { at: 2 })])).counts,
        counts({ unchanged: 3, stale: 1 }),
      )
    },
  ),
  rule('F7 a block that another owner lists as well outlives the first owner', async ({ store }) => {
    const first = ['a', 'b', 'c', 'd'].map((key) => upsert(key, { key }))
    const second = ['e', 'f', 'g', 'h'].map((key) => upsert(key, { key }))
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle([...first, ...second])
    const other = await SyncDriver.acquire(store, { sync: 'other', mode: 'replace' })
    await other.begin()
    for (const block of [first, second]) assert.deepEqual((await other.page(block)).counts, counts({ unchanged: 4 }))
    await other.complete([])
    assert.deepEqual((await driver.cycle(first.slice(0, 2))).counts, counts({ unchanged: 2 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'],
    )
  }),
  rule('a record whose fields only changed their order is unchanged, and stays so', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', '{"x":1,"y":{"p":1,"q":[1,2]}}')])
    const turned = upsert('a', '{"y":{"q":[1,2],"p":1},"x":1}')
    assert.deepEqual((await driver.cycle([turned])).counts, counts({ unchanged: 1 }))
    assert.deepEqual((await driver.cycle([turned])).counts, counts({ unchanged: 1 }))
    assert.deepEqual(
      (await driver.cycle([upsert('a', '{"x":1,"y":{"p":1,"q":[2,1]}}')])).counts,
      counts({ updated: 1 }),
    )
    assert.deepEqual(await scenario(store), [
      ['created', 'a'],
      ['updated', 'a'],
    ])
  }),
  rule('N13 a deleted key is removed from the rows and stays in the log', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 })])
    assert.deepEqual((await driver.cycle([remove('a')])).counts, counts({ deleted: 1 }))
    assert.deepEqual(await readLiveRows(store), [['b', { n: 1 }]])
    assert.equal(await store.row('things', 'a'), null)
    const last = required((await readFeed(store)).at(-1), 'an entry of the result of readFeed')
    assert.deepEqual([last.action, last.key, last.text, last.sequence], ['deleted', 'a', null, 3])
    assert.deepEqual((await driver.cycle([remove('a')])).counts, counts({ missing: 1 }))
    assert.equal(await store.headSequence(), 3)
  }),
  rule(
    'N13 XA10 syncs that commit concurrently in a process that has just opened the store find the existing rows',
    async ({ store, reopen }) => {
      const syncs = ['a', 'b', 'c', 'd']
      for (const sync of syncs) {
        const driver = await SyncDriver.acquire(store, { sync })
        await driver.cycle([upsert(`${sync}1`, { n: 1 }), upsert(`${sync}2`, { n: 1 })])
        await driver.release()
      }
      const opened = await reopen()
      const drivers = await Promise.all(syncs.map((sync) => SyncDriver.acquire(opened, { sync })))
      for (const driver of drivers) await driver.begin()
      const outcomes = await Promise.all(drivers.map((driver) => driver.complete([remove(`${driver.ref.sync}1`)])))
      assert.deepEqual(
        outcomes.map((outcome) => outcome.counts),
        syncs.map(() => counts({ deleted: 1 })),
      )
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['a2', 'b2', 'c2', 'd2'],
      )
    },
  ),
  rule(
    'XE7 a delete that arrives before its create makes no entry, and keeps the older create out',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      assert.deepEqual((await driver.cycle([remove('a', { at: 5 })])).counts, counts({ missing: 1 }))
      assert.equal(await store.headSequence(), 0)
      assert.deepEqual(await store.history('things', 'a'), [])
      assert.deepEqual((await driver.cycle([upsert('a', { n: 1 }, { at: 4 })])).counts, counts({ stale: 1 }))
      assert.deepEqual(await readLiveRows(store), [])
      assert.deepEqual((await driver.cycle([upsert('a', { n: 2 }, { at: 6 })])).counts, counts({ created: 1 }))
      assert.deepEqual(await scenario(store), [['created', 'a']])
      assert.equal((await store.history('things', 'a')).length, 1)
    },
  ),
  rule('XE8 a key that returns after its delete is created again', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    for (const at of [1, 3]) {
      await driver.cycle([upsert('a', { at }, { at })])
      await driver.cycle([remove('a', { at: at + 1 })])
    }
    await driver.cycle([upsert('a', { at: 5 }, { at: 5 })])
    assert.deepEqual(await readLiveRows(store), [['a', { at: 5 }]])
    assert.deepEqual(
      (await scenario(store)).map(([action]) => action),
      ['created', 'deleted', 'created', 'deleted', 'created'],
    )
    assert.deepEqual(
      (await store.history('things', 'a')).map(({ sequence }) => sequence),
      [1, 2, 3, 4, 5],
    )
  }),
  rule('R33 one commit lands in several databases, where equal keys are different rows', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([
      upsert('a', { n: 1 }),
      upsert('a', { n: 2 }, { database: 'people' }),
      remove('a', { database: 'orders' }),
    ])
    assert.deepEqual(await readLiveRows(store), [['a', { n: 1 }]])
    assert.deepEqual(await readLiveRows(store, 'people'), [['a', { n: 2 }]])
    assert.deepEqual((await store.databases()).map(({ name, rows }) => `${rows} ${name}`).toSorted(), [
      '0 orders',
      '1 people',
      '1 things',
    ])
    assert.deepEqual(await store.rows({ database: 'nowhere', limit: 10 }), [])
    assert.equal(await store.row('nowhere', 'a'), null)
  }),

  // ── the source's own time ──
  rule('invariant 6: an older version never overwrites a newer row, whichever sync reports it', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    await driver.cycle([upsert('a', { v: 'new' }, { at: 5 })])
    for (const late of [driver, other]) {
      assert.deepEqual((await late.cycle([upsert('a', { v: 'old' }, { at: 4 })])).counts, counts({ stale: 1 }))
      assert.deepEqual((await late.cycle([remove('a', { at: 4 })])).counts, counts({ stale: 1 }))
    }
    assert.deepEqual(await readLiveRows(store), [['a', { v: 'new' }]])
    assert.equal(await store.headSequence(), 1)
  }),
  rule('invariant 6: times are compared to the microsecond', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const at = (micros: string): string => `2026-01-01T00:00:00.${micros}Z`
    await driver.cycle([{ ...upsert('a', { v: 1 }), upstreamAt: at('000002') }])
    assert.deepEqual(
      (await driver.cycle([{ ...upsert('a', { v: 0 }), upstreamAt: at('000001') }])).counts,
      counts({ stale: 1 }),
    )
    assert.deepEqual(
      (await driver.cycle([{ ...upsert('a', { v: 2 }), upstreamAt: at('000003') }])).counts,
      counts({ updated: 1 }),
    )
    assert.equal(required(await store.row('things', 'a'), 'the result of row').upstreamAt, at('000003'))
  }),
  rule('invariant 6: a version of the same time, read later, wins', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    await driver.cycle([upsert('a', { v: 1 }, { at: 5 }), upsert('b', { v: 1 }, { at: 5 })])
    assert.deepEqual((await driver.cycle([upsert('a', { v: 2 }, { at: 5 })])).counts, counts({ updated: 1 }))
    assert.deepEqual(
      (await other.cycle([upsert('a', { v: 3 }, { at: 5 }), remove('b', { at: 5 })])).counts,
      counts({ updated: 1, deleted: 1 }),
    )
    assert.deepEqual(await readLiveRows(store), [['a', { v: 3 }]])
  }),
  rule('XE7 invariant 6: a tombstone keeps its time, so deleted rows stay deleted', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { v: 1 }, { at: 1 })])
    await driver.cycle([remove('a', { at: 5 })])
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    assert.deepEqual((await other.cycle([upsert('a', { v: 2 }, { at: 4 })])).counts, counts({ stale: 1 }))
    assert.deepEqual((await other.cycle([upsert('a', { v: 2 }, { at: 5 })])).counts, counts({ stale: 1 }))
    assert.deepEqual(await readLiveRows(store), [])
    assert.deepEqual((await other.cycle([upsert('a', { v: 3 }, { at: 6 })])).counts, counts({ created: 1 }))
  }),
  rule('invariant 6: a delete without a time keeps the time of the row it deletes', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { v: 1 }, { at: 5 })])
    assert.deepEqual((await driver.cycle([remove('a')])).counts, counts({ deleted: 1 }))
    assert.deepEqual((await driver.cycle([upsert('a', { v: 1 }, { at: 5 })])).counts, counts({ stale: 1 }))
    assert.deepEqual((await driver.cycle([upsert('a', { v: 0 }, { at: 4 })])).counts, counts({ stale: 1 }))
    assert.deepEqual((await driver.cycle([upsert('a', { v: 2 }, { at: 6 })])).counts, counts({ created: 1 }))
  }),
  rule(
    'invariant 6: a later delete of a deleted row raises the time of the tombstone, without an entry',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { v: 1 }, { at: 1 })])
      await driver.cycle([remove('a', { at: 2 })])
      assert.deepEqual((await driver.cycle([remove('a', { at: 9 })])).counts, counts({ missing: 1 }))
      assert.deepEqual((await driver.cycle([remove('a', { at: 3 })])).counts, counts({ missing: 1 }))
      assert.deepEqual((await driver.cycle([upsert('a', { v: 2 }, { at: 8 })])).counts, counts({ stale: 1 }))
      assert.equal(await store.headSequence(), 2)
    },
  ),
  rule(
    'invariant 6: the same content with a later time raises the time without an entry, so that versions in between are stale',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { v: 'A' }, { at: 1 })])
      assert.deepEqual((await driver.cycle([upsert('a', { v: 'A' }, { at: 3 })])).counts, counts({ unchanged: 1 }))
      assert.equal(required(await store.row('things', 'a'), 'the result of row').upstreamAt, instant(3))
      assert.deepEqual((await driver.cycle([upsert('a', { v: 'B' }, { at: 2 })])).counts, counts({ stale: 1 }))
      assert.deepEqual((await driver.cycle([remove('a', { at: 2 })])).counts, counts({ stale: 1 }))
      assert.deepEqual(await readLiveRows(store), [['a', { v: 'A' }]])
      assert.equal(await store.headSequence(), 1)
      assert.deepEqual((await driver.cycle([upsert('a', { v: 'A' }, { at: 2 })])).counts, counts({ unchanged: 1 }))
      assert.equal(required(await store.row('things', 'a'), 'the result of row').upstreamAt, instant(3))
    },
  ),
  rule(
    'invariant 6: content first reported without a time takes the time it is later reported with',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { v: 'A' })])
      await driver.cycle([upsert('a', { v: 'A' }, { at: 3 })])
      assert.deepEqual((await driver.cycle([upsert('a', { v: 'B' }, { at: 2 })])).counts, counts({ stale: 1 }))
      assert.equal(await store.headSequence(), 1)
    },
  ),
  rule(
    'invariant 6: a version without a time, read later, wins, and versions older than the replaced row are still older',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const other = await SyncDriver.acquire(store, { sync: 'other' })
      await driver.cycle([upsert('a', { v: 1 }, { at: 5 }), upsert('b', { v: 1 }, { at: 5 })])
      await driver.cycle([remove('b')])
      assert.deepEqual(
        (await other.cycle([upsert('a', { v: 2 }), upsert('b', { v: 2 })])).counts,
        counts({ updated: 1, created: 1 }),
      )
      assert.deepEqual(
        (await driver.cycle([upsert('a', { v: 0 }, { at: 4 }), upsert('b', { v: 0 }, { at: 4 })])).counts,
        counts({ stale: 2 }),
      )
      assert.deepEqual(await readLiveRows(store), [
        ['a', { v: 2 }],
        ['b', { v: 2 }],
      ])
    },
  ),
  rule('without times the later read wins', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    await driver.cycle([upsert('a', { v: 1 }, { at: 5 })])
    await other.cycle([upsert('a', { v: 2 })])
    await driver.cycle([upsert('a', { v: 3 })])
    assert.deepEqual(await readLiveRows(store), [['a', { v: 3 }]])
    await other.cycle([remove('a')])
    await driver.cycle([upsert('a', { v: 4 })])
    assert.deepEqual(await readLiveRows(store), [['a', { v: 4 }]])
  }),
  rule(
    'XC24 times within the tolerance count as equal: a source whose clock stepped back is still accepted',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { v: 1 }, { at: 10 })])
      const upstreamToleranceMs = 2_000
      assert.deepEqual(
        (await driver.cycle([upsert('a', { v: 2 }, { at: 8 })], { upstreamToleranceMs })).counts,
        counts({ updated: 1 }),
      )
      assert.deepEqual(
        (await driver.cycle([upsert('a', { v: 3 }, { at: 5 })], { upstreamToleranceMs })).counts,
        counts({ stale: 1 }),
      )
      assert.deepEqual((await driver.cycle([upsert('a', { v: 4 }, { at: 7 })])).counts, counts({ stale: 1 }))
      assert.deepEqual(await readLiveRows(store), [['a', { v: 2 }]])
    },
  ),

  // ── concurrent syncs ──
  rule(
    'XB14 a row that another sync wrote while the page was read, and that times do not order, is an overlap: nothing is written',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const other = await SyncDriver.acquire(store, { sync: 'other' })
      await driver.cycle([
        upsert('a', { v: 0 }),
        upsert('b', { v: 0 }, { at: 5 }),
        upsert('c', { v: 0 }),
        upsert('d', { v: 0 }, { at: 5 }),
      ])
      await other.begin()
      const readFrom = await store.headSequence()
      await driver.cycle([
        upsert('a', { v: 1 }),
        upsert('b', { v: 1 }, { at: 5 }),
        remove('c'),
        upsert('d', { v: 1 }, { at: 6 }),
      ])

      const before = await readSnapshot(store)
      const landings = [
        upsert('a', { v: 2 }), // neither has a time
        upsert('b', { v: 2 }, { at: 5 }), // the same time
        upsert('c', { v: 2 }), // deleted meanwhile
        upsert('d', { v: 2 }, { at: 7 }), // later by its time: no overlap
        upsert('e', { v: 2 }), // new
      ]
      const overrides = { readAtSequence: readFrom, quarantined: [makeQuarantined('q')] }
      const outcome = await other.send(await other.draft(other.nextPage(), landings, overrides))
      if (outcome.kind !== 'overlap') assert.fail(`expected an overlap, got ${JSON.stringify(outcome)}`)
      assert.deepEqual([...outcome.keys].toSorted(), ['a', 'b', 'c'])
      assert.deepEqual(await readSnapshot(store), before)

      // Read again, later than the other's write: now the order is known.
      assert.deepEqual((await other.page(landings)).counts, counts({ created: 2, updated: 3 }))
      assert.deepEqual(
        await readLiveRows(store),
        ['a', 'b', 'c', 'd', 'e'].map((key) => [key, { v: 2 }]),
      )
    },
  ),
  rule(
    'XB14 a record as of an event or of its read is not ordered by its time against a row of another sync',
    async ({ store }) => {
      const listing = await SyncDriver.acquire(store, { sync: 'listing' })
      const driver = await SyncDriver.acquire(store)
      await listing.cycle(['a', 'b', 'c', 'd'].map((key) => upsert(key, { v: 1 }, { at: 10 })))
      await driver.begin()
      const readFrom = await store.headSequence()
      await listing.cycle([upsert('c', { v: 2 }, { at: 11 })])
      const landings: Landing[] = [
        { ...upsert('a', { v: 3 }, { at: 12 }), asOf: 'event' } as Landing, // may be older than any row of the other sync
        { ...upsert('b', { v: 3 }, { at: 12 }), asOf: 'read' } as Landing, // read after the row was committed
        { ...upsert('c', { v: 3 }, { at: 12 }), asOf: 'read' } as Landing, // committed after the page was requested
        upsert('d', { v: 3 }, { at: 12 }), // its time is that of its last change
      ]
      const outcome = await driver.send(await driver.draft(driver.nextPage(), landings, { readAtSequence: readFrom }))
      if (outcome.kind !== 'overlap') assert.fail(`expected an overlap, got ${JSON.stringify(outcome)}`)
      assert.deepEqual([...outcome.keys].toSorted(), ['a', 'c'])
      assert.deepEqual(
        (await driver.page(landings.slice(1), { readAtSequence: await store.headSequence() })).counts,
        counts({ updated: 3 }),
      )
    },
  ),
  rule(
    'invariant 6: a single record that was read after its row was committed is later, whatever its time is',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { v: 1 }, { at: 10 }), upsert('b', { v: 1 }, { at: 10 })])
      const older = upsert('b', { v: 2 }, { at: 5 })
      assert.deepEqual(
        (await driver.cycle([{ ...upsert('a', { v: 2 }, { at: 5 }), asOf: 'read' } as Landing, older])).counts,
        counts({ updated: 1, stale: 1 }),
      )
      assert.deepEqual(await readLiveRows(store), [
        ['a', { v: 2 }],
        ['b', { v: 1 }],
      ])
    },
  ),
  rule('XB14 a delete without a time overlaps a row that was written while it was read', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    await driver.cycle([upsert('a', { v: 1 })])
    await other.begin()
    assert.deepEqual(await other.send(await other.draft(other.nextPage(), [remove('a')], { readAtSequence: 0 })), {
      kind: 'overlap',
      keys: ['a'],
    })
    assert.deepEqual((await other.page([remove('a')])).counts, counts({ deleted: 1 }))
  }),
  rule(
    'XB14 times order two reads that overlap: the later wins, the earlier is stale, equal content is equal',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const other = await SyncDriver.acquire(store, { sync: 'other' })
      await driver.cycle([upsert('a', { v: 1 }, { at: 5 }), upsert('b', { v: 1 }, { at: 5 }), upsert('c', { v: 1 })])
      const outcome = await other.cycle(
        [upsert('a', { v: 2 }, { at: 6 }), upsert('b', { v: 0 }, { at: 4 }), upsert('c', { v: 1 })],
        { readAtSequence: 0 },
      )
      assert.deepEqual(outcome.counts, counts({ updated: 1, stale: 1, unchanged: 1 }))
    },
  ),
  rule(
    'XB14 history read again is older than another sync’s writes since the cycle began, and newer than the rows before it',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const again = await SyncDriver.acquire(store, { sync: 'again' })
      await driver.cycle([upsert('a', { v: 1 }), upsert('b', { v: 1 }), upsert('c', { v: 1 })])
      await again.begin()
      const overrides = { readAtSequence: await store.headSequence(), isHistoricalLog: true }
      await driver.cycle([upsert('a', { v: 9 }), remove('b'), upsert('d', { v: 9 })])
      const { counts: landed } = await again.page(
        [upsert('a', { v: 0 }), upsert('b', { v: 0 }), upsert('c', { v: 0 }), remove('d')],
        overrides,
      )
      assert.deepEqual(landed, counts({ updated: 1, stale: 3 }))
      // Its own pages are in log order.
      await again.page([upsert('c', { v: 2 })], overrides)
      assert.deepEqual(await readLiveRows(store), [
        ['a', { v: 9 }],
        ['c', { v: 2 }],
        ['d', { v: 9 }],
      ])
    },
  ),
  rule(
    'XB14 a change that a log repeats while a backfill reads it again is logged once, so that the backfill finds it newer',
    async ({ store }) => {
      const delta = await SyncDriver.acquire(store)
      const again = await SyncDriver.acquire(store, { sync: 'again' })
      await delta.cycle([
        upsert('a', { v: 1 }),
        upsert('b', { v: 1 }),
        upsert('c', { v: 1 }),
        upsert('t', { v: 1 }, { at: 5 }),
      ])
      await delta.cycle([remove('b')])
      await again.begin()
      const restateSince = await store.headSequence()
      const told = [upsert('a', { v: 1 }), remove('b'), remove('n'), upsert('t', { v: 1 }, { at: 5 })]
      await delta.begin()
      assert.deepEqual(
        (await delta.page(told, { forceLogSince: restateSince })).counts,
        counts({ updated: 1, deleted: 2, unchanged: 1 }),
      )
      // Once: a logged change is not logged again.
      assert.deepEqual(
        (await delta.page(told, { forceLogSince: restateSince })).counts,
        counts({ unchanged: 2, missing: 2 }),
      )
      // If the backfill was the last to write, it would continue from there.
      await again.page([upsert('w', { v: 1 })], { readAtSequence: restateSince, isHistoricalLog: true })
      assert.deepEqual(
        (await delta.page([upsert('w', { v: 1 })], { forceLogSince: restateSince })).counts,
        counts({ updated: 1 }),
      )
      await again.page(
        [remove('w'), upsert('a', { v: 0 }), upsert('b', { v: 0 }), upsert('n', { v: 0 }), upsert('c', { v: 0 })],
        { readAtSequence: restateSince, isHistoricalLog: true },
      )
      assert.deepEqual(await readLiveRows(store), [
        ['a', { v: 1 }],
        ['c', { v: 0 }],
        ['t', { v: 1 }],
        ['w', { v: 1 }],
      ])
      const entries = await store.changes({ after: restateSince, limit: 10 })
      assert.deepEqual(
        entries.map(({ key, action }) => [key, action]),
        [
          ['a', 'updated'],
          ['b', 'deleted'],
          ['n', 'deleted'],
          ['w', 'created'],
          ['w', 'updated'],
          ['c', 'updated'],
        ],
      )
    },
  ),
  rule(
    'XB14 a time that increases while a listing runs is logged, so that an older page of the same time overlaps it',
    async ({ store }) => {
      const delta = await SyncDriver.acquire(store)
      const listing = await SyncDriver.acquire(store, { sync: 'listing' })
      await delta.cycle([upsert('a', { on: true }, { at: 5 }), upsert('n', { on: true })])
      await listing.cycle([upsert('l', { on: true }, { at: 9 })])
      await listing.begin()
      const restateSince = await store.headSequence()
      // At 9 the listing reads `on: false`; still at 9, all are set back before the delta reads them.
      const page = [
        upsert('a', { on: false }, { at: 9 }),
        upsert('l', { on: false }, { at: 9 }),
        upsert('n', { on: false }),
      ]
      const told = [
        upsert('a', { on: true }, { at: 9 }),
        upsert('l', { on: true }, { at: 9 }),
        upsert('n', { on: true }, { at: 9 }),
      ]
      await delta.begin()
      assert.deepEqual((await delta.page(told, { forceLogSince: restateSince })).counts, counts({ updated: 3 }))
      // Once: nothing has changed since.
      assert.deepEqual((await delta.page(told, { forceLogSince: restateSince })).counts, counts({ unchanged: 3 }))
      const outcome = await listing.send(
        await listing.draft(listing.nextPage(), page, { readAtSequence: restateSince }),
      )
      assert.deepEqual(outcome, { kind: 'overlap', keys: ['a', 'l', 'n'] })
      await listing.page(told)
      assert.deepEqual(
        await readLiveRows(store),
        ['a', 'l', 'n'].map((key) => [key, { on: true }]),
      )
    },
  ),
  rule(
    'XB14 with times, a repeated row is not logged where its own sync wrote it, or the running listing',
    async ({ store }) => {
      const delta = await SyncDriver.acquire(store)
      const listing = await SyncDriver.acquire(store, { sync: 'listing' })
      await delta.cycle([upsert('a', { on: true }, { at: 5 })])
      await listing.begin()
      const restateSince = await store.headSequence()
      await listing.page([upsert('b', { on: true }, { at: 5 })])
      const told = [upsert('a', { on: true }, { at: 5 }), upsert('b', { on: true }, { at: 5 })]
      await delta.begin()
      assert.deepEqual((await delta.page(told, { forceLogSince: restateSince })).counts, counts({ unchanged: 2 }))
    },
  ),
  rule('a sync never overlaps itself: its pages are sequential', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { v: 1 })], { readAtSequence: 0 })
    await driver.begin()
    await driver.page([upsert('a', { v: 2 })], { readAtSequence: 0 })
    await driver.page([upsert('a', { v: 3 })], { readAtSequence: 0 })
    assert.deepEqual(await readLiveRows(store), [['a', { v: 3 }]])
  }),
]
