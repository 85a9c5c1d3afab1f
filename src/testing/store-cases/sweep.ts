import assert from 'node:assert/strict'
import { counts, feed, live, poison, remove, snapshot, type StoreCase, story, SWEEP_ALL, SyncDriver, upsert, rule } from './harness.ts'

const one = (...keys: string[]) => keys.map((key) => upsert(key, { of: key }))

export const sweepCases: readonly StoreCase[] = [
  rule('R51 a sweep whose limit somebody lifted is an entry of the audit log; any other is none', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    const lifted = async () => (await store.trail({ after: 0, limit: 100 })).entries.filter(({ action }) => action === 'allow-deletes')
    await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 })], { sweep: SWEEP_ALL })
    assert.deepEqual(await lifted(), [])
    await driver.cycle([], { sweep: { ...SWEEP_ALL, allowedBy: 'ana' } })
    const entries = await lifted()
    assert.deepEqual(entries.map(({ actor, reason, worker, sync }) => [actor, reason, worker, sync]), [['ana', 'the delete limit was lifted; 2 rows swept', driver.ref.worker, driver.ref.sync]])
  }),
  rule('N10 XE9 invariant 5: a complete replace cycle deletes what it did not list, and the feed says so', async ({ store, reopen }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b', 'c'))
    const { inflight } = await driver.begin()
    await driver.page(one('a'))
    const outcome = await driver.complete([upsert('c', { of: 'c, changed' }), ...one('d')])
    assert.deepEqual(outcome.counts, counts({ created: 1, updated: 1, swept: 1 }))
    assert.equal(outcome.position, 6)
    assert.deepEqual((await live(await reopen())).map(([key]) => key), ['a', 'c', 'd'])
    const last = (await feed(store)).at(-1)!
    assert.deepEqual(
      [last.sequence, last.action, last.key, last.text, last.sync, last.cycle, last.page],
      [6, 'deleted', 'b', null, 'delta', inflight.cycle, 2],
    )
    assert.equal((await store.cycles(driver.ref))[0]!.counts.swept, 1)
  }),
  rule('N12 F6 XE1 invariant 5: no page but the last one of a complete cycle sweeps', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b'))
    await driver.begin()
    await driver.page(one('a'))
    await driver.abandon(one('a'))
    await driver.begin()
    await driver.complete(one('a'), { sweep: null })
    await driver.begin()
    await driver.set(null)
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'b'])
  }),
  rule('invariant 5: an incremental cycle sweeps nothing, even when it is asked to', async ({ store }) => {
    const driver = await SyncDriver.take(store)
    await driver.cycle(one('a', 'b'))
    assert.deepEqual((await driver.cycle(one('a'), { sweep: SWEEP_ALL })).counts, counts({ unchanged: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'b'])
  }),
  rule('rows listed unchanged, with a newer time or with an older one are all listed', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 1 }, { at: 5 }), upsert('c', { n: 1 }, { at: 5 }), upsert('d', { n: 1 })])
    const outcome = await driver.cycle([upsert('a', { n: 1 }, { at: 6 }), upsert('b', { n: 0 }, { at: 4 }), upsert('c', { n: 1 }, { at: 5 })])
    assert.deepEqual(outcome.counts, counts({ unchanged: 2, stale: 1, swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'b', 'c'])
  }),
  rule('XE6 invariant 5: a row that any sync wrote since the cycle began is not swept', async ({ store }) => {
    const backfill = await SyncDriver.take(store, { sync: 'backfill', mode: 'replace', owner: 'accounts' })
    const delta = await SyncDriver.take(store, { owner: 'accounts' })
    const stranger = await SyncDriver.take(store, { worker: 'elsewhere' })
    await backfill.cycle(one('a', 'b', 'c', 'd'))
    await backfill.begin()
    await backfill.page(one('a'))
    await delta.cycle([upsert('b', { of: 'b, changed by the delta' }), ...one('new')])
    await stranger.cycle([upsert('c', { of: 'c, changed by a stranger' })])
    assert.deepEqual((await backfill.complete([])).counts, counts({ swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'b', 'c', 'new'])
  }),
  rule('a backfill sweeps what its delta, under the same owner, created before the cycle', async ({ store }) => {
    const delta = await SyncDriver.take(store, { owner: 'accounts' })
    const backfill = await SyncDriver.take(store, { sync: 'backfill', mode: 'replace', owner: 'accounts' })
    await delta.cycle(one('a', 'b'))
    assert.deepEqual((await backfill.cycle(one('a'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a'])
  }),
  rule('invariant 5: a delta of two databases keeps the rows of each with the backfill of that one', async ({ store }) => {
    const delta = await SyncDriver.take(store, { owner: 'accounts' })
    const accounts = await SyncDriver.take(store, { sync: 'accounts', mode: 'replace', owner: 'accounts' })
    const notes = await SyncDriver.take(store, { sync: 'notes', mode: 'replace', owner: 'notes' })
    const note = (key: string) => upsert(key, { of: key }, { database: 'notes' })
    const owners = { notes: 'notes' }
    await delta.cycle([...one('a', 'b'), note('n'), note('m'), note('o')], { owners })
    // One that came back belongs to the same.
    await delta.cycle([remove('o', { database: 'notes' })], { owners })
    await delta.cycle([note('o')], { owners })
    assert.deepEqual((await accounts.cycle(one('a'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual((await live(store, 'notes')).map(([key]) => key), ['m', 'n', 'o'])
    assert.deepEqual((await notes.cycle([note('m')])).counts, counts({ unchanged: 1, swept: 2 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a'])
  }),
  rule('invariant 5: a row that a sync of several databases lists, unchanged, outlives the sweep of its owner', async ({ store }) => {
    const notes = await SyncDriver.take(store, { sync: 'notes', mode: 'replace', owner: 'notes' })
    const both = await SyncDriver.take(store, { sync: 'both', mode: 'replace', owner: 'accounts' })
    const note = (key: string) => upsert(key, { of: key }, { database: 'notes' })
    const owners = { notes: 'notes' }
    await notes.cycle([note('m'), note('n')])
    for (let cycle = 0; cycle < 2; cycle++) await both.cycle([...one('a'), note('m'), note('n')], { owners })
    assert.deepEqual((await notes.cycle([note('m')])).counts, counts({ unchanged: 1 }))
    assert.deepEqual((await live(store, 'notes')).map(([key]) => key), ['m', 'n'])
    assert.deepEqual((await both.cycle([...one('a'), note('m')], { owners })).counts, counts({ unchanged: 2, swept: 1 }))
  }),
  rule('invariant 5: a sync does not sweep rows of another owner that it never listed', async ({ store }) => {
    const delta = await SyncDriver.take(store)
    const backfill = await SyncDriver.take(store, { sync: 'backfill', mode: 'replace' })
    await delta.cycle(one('mine'))
    await backfill.cycle(one('a', 'b'))
    await backfill.cycle(one('a'))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'mine'])
  }),
  rule('a row of an owner that never sweeps passes to the first that lists it, and is swept when that one no longer does', async ({ store }) => {
    const delta = await SyncDriver.take(store)
    const backfill = await SyncDriver.take(store, { sync: 'backfill', mode: 'replace' })
    await delta.cycle(one('a', 'b'))
    await backfill.cycle(one('a', 'b'))
    assert.deepEqual((await backfill.cycle(one('a'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a'])
  }),
  rule('F7 two owners that replace one database sweep only their own rows', async ({ store }) => {
    const east = await SyncDriver.take(store, { sync: 'east', mode: 'replace' })
    const west = await SyncDriver.take(store, { sync: 'west', mode: 'replace' })
    await east.cycle(one('e1', 'e2'))
    await west.cycle(one('w1', 'w2'))
    assert.deepEqual((await east.cycle(one('e1'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual((await west.cycle(one('w2'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['e1', 'w2'])
  }),
  rule('F7 a row that two owners list lives until neither does', async ({ store }) => {
    const east = await SyncDriver.take(store, { sync: 'east', mode: 'replace' })
    const west = await SyncDriver.take(store, { sync: 'west', mode: 'replace' })
    await east.cycle(one('e', 'shared'))
    await west.cycle(one('w', 'shared'))
    assert.deepEqual((await east.cycle(one('e'))).counts, counts({ unchanged: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['e', 'shared', 'w'])
    await west.cycle(one('w', 'shared'))
    assert.deepEqual((await west.cycle(one('w'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['e', 'w'])
  }),
  rule('F7 a shared row that its second owner stops listing first still dies with the first', async ({ store }) => {
    const east = await SyncDriver.take(store, { sync: 'east', mode: 'replace' })
    const west = await SyncDriver.take(store, { sync: 'west', mode: 'replace' })
    await east.cycle(one('e', 'shared'))
    await west.cycle(one('w', 'shared'))
    await west.cycle(one('w'))
    assert.deepEqual((await live(store)).map(([key]) => key), ['e', 'shared', 'w'])
    assert.deepEqual((await east.cycle(one('e'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['e', 'w'])
  }),
  rule('F7 invariant 5: a row that comes back belongs to the sync that brought it', async ({ store }) => {
    const east = await SyncDriver.take(store, { sync: 'east', mode: 'replace' })
    const west = await SyncDriver.take(store, { sync: 'west', mode: 'replace' })
    await east.cycle(one('e', 'swept', 'deleted'))
    await east.cycle([...one('e'), remove('deleted')])
    await west.cycle(one('w', 'swept', 'deleted'))
    assert.deepEqual((await east.cycle(one('e'))).counts, counts({ unchanged: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['deleted', 'e', 'swept', 'w'])
    assert.deepEqual((await west.cycle(one('w'))).counts, counts({ unchanged: 1, swept: 2 }))
  }),
  rule('XE6 invariant 5: a sweep under way keeps every row that other syncs reported, page after page', async ({ store }) => {
    const backfill = await SyncDriver.take(store, { sync: 'backfill', mode: 'replace', owner: 'accounts' })
    const delta = await SyncDriver.take(store, { owner: 'accounts' })
    await backfill.cycle(one('a', 'b', 'c', 'd', 'e'))
    await backfill.begin()
    await backfill.page(one('a'))
    await delta.begin()
    await delta.page(one('b'))
    await delta.page(one('d'))
    await delta.complete(one('c'))
    assert.deepEqual((await backfill.complete([])).counts, counts({ swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'b', 'c', 'd'])
  }),
  rule('a key that could not be landed counts as listed: its row is not swept', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b', 'c'))
    await driver.begin()
    await driver.page([], { quarantined: [poison('a'), poison(null)] })
    assert.deepEqual((await driver.complete(one('c'), { quarantined: [poison('never seen')] })).counts, counts({ unchanged: 1, swept: 1, quarantined: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'c'])
  }),
  rule('a key that could not be landed counts as listed, also beside a page of nothing but new keys', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b'))
    await driver.cycle(one('x', 'y', 'z'), { quarantined: [poison('a')] })
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'x', 'y', 'z'])
  }),
  rule('XE2 what an abandoned cycle saw does not count for the next one', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b', 'c'))
    for (const giveUp of [() => driver.abandon(), () => driver.begin({ fresh: true }), () => driver.begin({ mode: 'incremental' }), () => driver.set(null)]) {
      await driver.begin({ fresh: true })
      await driver.page(one('a', 'b', 'c'))
      await giveUp()
      const { swept } = (await driver.cycle(one('a', 'b'))).counts
      assert.equal(swept, 1)
      await driver.cycle(one('a', 'b', 'c'))
    }
  }),
  rule('XE2 what a resumed cycle saw before its interruption does count', async ({ store, reopen }) => {
    const first = await SyncDriver.take(store, { mode: 'replace' })
    await first.cycle(one('a', 'b', 'c', 'd'))
    await first.begin()
    await first.page(one('a'))
    await first.page(one('b'), { quarantined: [poison('d')] })
    const heir = await SyncDriver.take(await reopen(), { mode: 'replace', holder: 'runner-2', evict: 'runner-1' })
    assert.equal((await heir.begin()).resumed, true)
    assert.deepEqual((await heir.complete([])).counts, counts({ swept: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'b', 'd'])
  }),
  rule('a row deleted by name during the cycle is not swept a second time', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b'))
    await driver.begin()
    await driver.page(one('a'))
    assert.deepEqual((await driver.complete([remove('b')])).counts, counts({ deleted: 1 }))
    assert.deepEqual(await story(store, 2), [['deleted', 'b']])
  }),
  rule('a swept row that is listed again with the same time lives again', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 1 }, { at: 5 })])
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 })])
    assert.deepEqual((await driver.cycle([upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 1 }, { at: 5 })])).counts, counts({ created: 1, unchanged: 1 }))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'b'])
  }),
  rule('invariant 6: a swept row keeps its time: an older fact does not bring it back', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 1 }, { at: 5 })])
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 })])
    const delta = await SyncDriver.take(store, { sync: 'other' })
    assert.deepEqual((await delta.cycle([upsert('b', { n: 0 }, { at: 4 })])).counts, counts({ stale: 1 }))
  }),
  rule('invariant 6: a swept row that is then deleted by name stays dead, also for a fact of that very time', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 }, { at: 5 }), upsert('c', { n: 1 }, { at: 5 })])
    await driver.cycle([upsert('a', { n: 1 })])
    const delta = await SyncDriver.take(store, { sync: 'other' })
    assert.deepEqual((await delta.cycle([remove('b', { at: 7 }), remove('c', { at: 5 })])).counts, counts({ missing: 2 }))
    assert.deepEqual((await delta.cycle([upsert('b', { n: 1 }, { at: 7 }), upsert('c', { n: 1 }, { at: 5 })])).counts, counts({ stale: 2 }))
  }),

  // ── the brake ──
  rule('XE3 XE5 invariant 11: a sweep of everything is braked and writes nothing, until it is allowed', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b'))
    await driver.begin()
    const before = await snapshot(store)
    const commit = await driver.draft(driver.lastPage({ sweep: { maxShare: 1, allowEmpty: false } }), [], { quarantined: [poison(null)] })
    assert.deepEqual(await driver.send(commit), { kind: 'braked', database: 'things', owned: 2, doomed: 2 })
    assert.deepEqual(await snapshot(store), before)

    // Really emptied, and said so.
    assert.deepEqual((await driver.complete([], { sweep: { maxShare: 0, allowEmpty: true } })).counts, counts({ swept: 2 }))
    assert.deepEqual(await live(store), [])
  }),
  rule('XE4 invariant 11: a sweep of more than the allowed share is braked, one of exactly that share is not', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b', 'c', 'd'))
    await driver.begin()
    const sweep = { maxShare: 0.25, allowEmpty: false }
    const before = await snapshot(store)
    assert.deepEqual(
      await driver.send(await driver.draft(driver.lastPage({ sweep }), one('a', 'b', 'new'))),
      { kind: 'braked', database: 'things', owned: 4, doomed: 2 },
    )
    assert.deepEqual(await snapshot(store), before)
    assert.deepEqual((await driver.complete(one('a', 'b', 'c'), { sweep })).counts, counts({ unchanged: 3, swept: 1 }))
  }),
  rule('XE4 invariant 11: newcomers do not dilute the share: were every key renamed, all that was there would go', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b'))
    await driver.begin()
    await driver.page(one('n1', 'n2', 'n3', 'n4', 'n5', 'n6'))
    // Told again with another content, they are still newcomers.
    await driver.page(['n1', 'n2', 'n3'].map((key) => upsert(key, { again: true })))
    const sweep = { maxShare: 0.5, allowEmpty: false }
    assert.deepEqual(
      await driver.send(await driver.draft(driver.lastPage({ sweep }), one('n7'))),
      { kind: 'braked', database: 'things', owned: 2, doomed: 2 },
    )
  }),
  rule('invariant 11: rows of other owners do not dilute the share either, and each database is judged alone', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await (await SyncDriver.take(store, { sync: 'other' })).cycle(one('o1', 'o2', 'o3', 'o4'))
    await driver.cycle([...one('a', 'b', 'c', 'd'), upsert('p', { n: 1 }, { database: 'people' })])
    await driver.begin()
    const sweep = { maxShare: 0.5, allowEmpty: false }
    assert.deepEqual(
      await driver.send(await driver.draft(driver.lastPage({ sweep }), one('a', 'b', 'c', 'd'))),
      { kind: 'braked', database: 'people', owned: 1, doomed: 1 },
    )
    assert.deepEqual(
      await driver.send(await driver.draft(driver.lastPage({ sweep }), [...one('a'), upsert('p', { n: 1 }, { database: 'people' })])),
      { kind: 'braked', database: 'things', owned: 4, doomed: 3 },
    )
  }),
  rule('a braked cycle can be abandoned: what it listed has landed, and nothing was deleted', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    await driver.cycle(one('a', 'b'))
    await driver.begin()
    assert.equal((await driver.send(await driver.draft(driver.lastPage({ sweep: { maxShare: 0, allowEmpty: false } }), one('a', 'c')))).kind, 'braked')
    await driver.abandon(one('a', 'c'))
    assert.deepEqual((await live(store)).map(([key]) => key), ['a', 'b', 'c'])
  }),
  rule('a cycle that dooms nothing is never braked, not even over an empty database', async ({ store }) => {
    const driver = await SyncDriver.take(store, { mode: 'replace' })
    const sweep = { maxShare: 0, allowEmpty: false }
    await driver.cycle([], { sweep })
    await driver.cycle(one('a'), { sweep })
    await driver.cycle(one('a', 'b'), { sweep })
    assert.equal(driver.version, 3)
  }),
]
