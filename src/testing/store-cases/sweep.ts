import assert from 'node:assert/strict'
import {
  counts,
  readFeed,
  readLiveRows,
  makeQuarantined,
  remove,
  readSnapshot,
  type StoreCase,
  scenario,
  SWEEP_ALL,
  SyncDriver,
  upsert,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

const upserts = (...keys: string[]) => keys.map((key) => upsert(key, { of: key }))

export const sweepCases: readonly StoreCase[] = [
  rule(
    'R51 a sweep whose delete limit was lifted by an operator has an audit entry; any other has none',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      const lifted = async () =>
        (await store.auditChain({ after: 0, limit: 100 })).entries.filter(({ action }) => action === 'allow-deletes')
      await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 })], { sweep: SWEEP_ALL })
      assert.deepEqual(await lifted(), [])
      await driver.cycle([], { sweep: { ...SWEEP_ALL, allowedBy: 'ana' } })
      const entries = await lifted()
      assert.deepEqual(
        entries.map(({ actor, reason, worker, sync }) => [actor, reason, worker, sync]),
        [['ana', 'the delete limit was lifted; 2 rows swept', driver.ref.worker, driver.ref.sync]],
      )
    },
  ),
  rule(
    'N10 XE9 invariant 5: a complete replace cycle deletes the rows it did not list, and the feed contains the deletes',
    async ({ store, reopen }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle(upserts('a', 'b', 'c'))
      const { inflight } = await driver.begin()
      await driver.page(upserts('a'))
      const outcome = await driver.complete([upsert('c', { of: 'c, changed' }), ...upserts('d')])
      assert.deepEqual(outcome.counts, counts({ created: 1, updated: 1, swept: 1 }))
      assert.equal(outcome.headSequence, 6)
      assert.deepEqual(
        (await readLiveRows(await reopen())).map(([key]) => key),
        ['a', 'c', 'd'],
      )
      const last = required((await readFeed(store)).at(-1), 'an entry of the result of readFeed')
      assert.deepEqual(
        [last.sequence, last.action, last.key, last.text, last.sync, last.cycle, last.page],
        [6, 'deleted', 'b', null, 'delta', inflight.cycle, 2],
      )
      assert.equal(required((await store.cycles(driver.ref))[0], 'the result of cycles[0]').counts.swept, 1)
    },
  ),
  rule('N12 F6 XE1 invariant 5: only the last page of a complete cycle sweeps', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle(upserts('a', 'b'))
    await driver.begin()
    await driver.page(upserts('a'))
    await driver.abandon(upserts('a'))
    await driver.begin()
    await driver.complete(upserts('a'), { sweep: null })
    await driver.begin()
    await driver.set(null)
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'b'],
    )
  }),
  rule('invariant 5: an incremental cycle sweeps nothing, even when the commit requests it', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(upserts('a', 'b'))
    assert.deepEqual((await driver.cycle(upserts('a'), { sweep: SWEEP_ALL })).counts, counts({ unchanged: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'b'],
    )
  }),
  rule('rows listed unchanged, with a newer time or with an older one all count as listed', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle([
      upsert('a', { n: 1 }, { at: 5 }),
      upsert('b', { n: 1 }, { at: 5 }),
      upsert('c', { n: 1 }, { at: 5 }),
      upsert('d', { n: 1 }),
    ])
    const outcome = await driver.cycle([
      upsert('a', { n: 1 }, { at: 6 }),
      upsert('b', { n: 0 }, { at: 4 }),
      upsert('c', { n: 1 }, { at: 5 }),
    ])
    assert.deepEqual(outcome.counts, counts({ unchanged: 2, stale: 1, swept: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'b', 'c'],
    )
  }),
  rule(
    'invariant 5: a sweep within a scope deletes and counts only rows of it',
    async ({ store }) => {
      const of = (project: string | number | null, ...keys: string[]) =>
        keys.map((key) => upsert(key, { 'project Id': project, n: 1 }))
      const keys = async () => (await readLiveRows(store)).map(([key]) => key)
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      const other = await SyncDriver.acquire(store, { sync: 'other', mode: 'replace', owner: 'other' })
      const scopeOf = (...values: string[]) => ({ ...SWEEP_ALL, within: { field: 'project Id', values } })
      await other.cycle(of('y', 'e'))
      await driver.cycle([...of('x', 'a', 'b', 'c'), ...of('y', 'd', 'e'), ...of(null, 'f'), ...of(7, 'g', 'h')])
      const swept = await driver.cycle(of('x', 'a'), { sweep: scopeOf('x') })
      assert.deepEqual(swept.counts, counts({ unchanged: 1, swept: 2 }))
      assert.deepEqual(await keys(), ['a', 'd', 'e', 'f', 'g', 'h'])
      assert.equal((await driver.cycle(of(7, 'h'), { sweep: scopeOf('7', 'z') })).counts.swept, 1)
      assert.equal(
        (await driver.cycle([], { sweep: { ...SWEEP_ALL, within: { field: 'none', values: ['x'] } } })).counts.swept,
        0,
      )
      assert.deepEqual(await keys(), ['a', 'd', 'e', 'f', 'h'])
      // The delete limit is a share of the scope, not of the table.
      await driver.begin()
      const limited = { maxShare: 0.5, allowEmpty: false, within: { field: 'project Id', values: ['x'] } }
      const blocked = await driver.send(await driver.draft(driver.lastPage({ sweep: limited }), of('x', 'new')))
      assert.deepEqual([blocked.kind, blocked.kind === 'massDeleteBlocked' && blocked.owned], ['massDeleteBlocked', 1])
      // The claim on a row outside the scope stays, so that the row outlives its owner's listing.
      assert.equal((await other.cycle([])).counts.swept, 0)
      assert.deepEqual(await keys(), ['a', 'd', 'e', 'f', 'h'])
    },
    { needs: 'supportsScopedSweeps' },
  ),
  rule('XE6 invariant 5: a row that any sync wrote since the cycle began is not swept', async ({ store }) => {
    const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace', owner: 'accounts' })
    const delta = await SyncDriver.acquire(store, { owner: 'accounts' })
    const stranger = await SyncDriver.acquire(store, { worker: 'elsewhere' })
    await backfill.cycle(upserts('a', 'b', 'c', 'd'))
    await backfill.begin()
    await backfill.page(upserts('a'))
    await delta.cycle([upsert('b', { of: 'b, changed by the delta' }), ...upserts('new')])
    await stranger.cycle([upsert('c', { of: 'c, changed by an unrelated sync' })])
    assert.deepEqual((await backfill.complete([])).counts, counts({ swept: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'b', 'c', 'new'],
    )
  }),
  rule('a backfill sweeps rows that its delta, under the same owner, created before the cycle', async ({ store }) => {
    const delta = await SyncDriver.acquire(store, { owner: 'accounts' })
    const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace', owner: 'accounts' })
    await delta.cycle(upserts('a', 'b'))
    assert.deepEqual((await backfill.cycle(upserts('a'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a'],
    )
  }),
  rule(
    'invariant 5: a delta of two databases assigns the rows of each to the backfill of that one',
    async ({ store }) => {
      const delta = await SyncDriver.acquire(store, { owner: 'accounts' })
      const accounts = await SyncDriver.acquire(store, { sync: 'accounts', mode: 'replace', owner: 'accounts' })
      const notes = await SyncDriver.acquire(store, { sync: 'notes', mode: 'replace', owner: 'notes' })
      const note = (key: string) => upsert(key, { of: key }, { database: 'notes' })
      const owners = { notes: 'notes' }
      await delta.cycle([...upserts('a', 'b'), note('n'), note('m'), note('o')], { owners })
      // A restored row belongs to the same owner.
      await delta.cycle([remove('o', { database: 'notes' })], { owners })
      await delta.cycle([note('o')], { owners })
      assert.deepEqual((await accounts.cycle(upserts('a'))).counts, counts({ unchanged: 1, swept: 1 }))
      assert.deepEqual(
        (await readLiveRows(store, 'notes')).map(([key]) => key),
        ['m', 'n', 'o'],
      )
      assert.deepEqual((await notes.cycle([note('m')])).counts, counts({ unchanged: 1, swept: 2 }))
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['a'],
      )
    },
  ),
  rule(
    'invariant 5: a row that a sync of several databases lists, unchanged, outlives the sweep of its owner',
    async ({ store }) => {
      const notes = await SyncDriver.acquire(store, { sync: 'notes', mode: 'replace', owner: 'notes' })
      const both = await SyncDriver.acquire(store, { sync: 'both', mode: 'replace', owner: 'accounts' })
      const note = (key: string) => upsert(key, { of: key }, { database: 'notes' })
      const owners = { notes: 'notes' }
      await notes.cycle([note('m'), note('n')])
      for (let cycle = 0; cycle < 2; cycle++) await both.cycle([...upserts('a'), note('m'), note('n')], { owners })
      assert.deepEqual((await notes.cycle([note('m')])).counts, counts({ unchanged: 1 }))
      assert.deepEqual(
        (await readLiveRows(store, 'notes')).map(([key]) => key),
        ['m', 'n'],
      )
      assert.deepEqual(
        (await both.cycle([...upserts('a'), note('m')], { owners })).counts,
        counts({ unchanged: 2, swept: 1 }),
      )
    },
  ),
  rule('invariant 5: a sync does not sweep rows of another owner that it never listed', async ({ store }) => {
    const delta = await SyncDriver.acquire(store)
    const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace' })
    await delta.cycle(upserts('mine'))
    await backfill.cycle(upserts('a', 'b'))
    await backfill.cycle(upserts('a'))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'mine'],
    )
  }),
  rule(
    'a row of an owner that never sweeps passes to the first that lists it, and is swept when that one no longer does',
    async ({ store }) => {
      const delta = await SyncDriver.acquire(store)
      const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace' })
      await delta.cycle(upserts('a', 'b'))
      await backfill.cycle(upserts('a', 'b'))
      assert.deepEqual((await backfill.cycle(upserts('a'))).counts, counts({ unchanged: 1, swept: 1 }))
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['a'],
      )
    },
  ),
  rule('F7 two owners that replace one database sweep only their own rows', async ({ store }) => {
    const east = await SyncDriver.acquire(store, { sync: 'east', mode: 'replace' })
    const west = await SyncDriver.acquire(store, { sync: 'west', mode: 'replace' })
    await east.cycle(upserts('e1', 'e2'))
    await west.cycle(upserts('w1', 'w2'))
    assert.deepEqual((await east.cycle(upserts('e1'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual((await west.cycle(upserts('w2'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['e1', 'w2'],
    )
  }),
  rule('F7 a row that two owners list stays until neither does', async ({ store }) => {
    const east = await SyncDriver.acquire(store, { sync: 'east', mode: 'replace' })
    const west = await SyncDriver.acquire(store, { sync: 'west', mode: 'replace' })
    await east.cycle(upserts('e', 'shared'))
    await west.cycle(upserts('w', 'shared'))
    assert.deepEqual((await east.cycle(upserts('e'))).counts, counts({ unchanged: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['e', 'shared', 'w'],
    )
    await west.cycle(upserts('w', 'shared'))
    assert.deepEqual((await west.cycle(upserts('w'))).counts, counts({ unchanged: 1, swept: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['e', 'w'],
    )
  }),
  rule(
    'F7 a shared row that its second owner stops listing first is still deleted with the first',
    async ({ store }) => {
      const east = await SyncDriver.acquire(store, { sync: 'east', mode: 'replace' })
      const west = await SyncDriver.acquire(store, { sync: 'west', mode: 'replace' })
      await east.cycle(upserts('e', 'shared'))
      await west.cycle(upserts('w', 'shared'))
      await west.cycle(upserts('w'))
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['e', 'shared', 'w'],
      )
      assert.deepEqual((await east.cycle(upserts('e'))).counts, counts({ unchanged: 1, swept: 1 }))
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['e', 'w'],
      )
    },
  ),
  rule('F7 invariant 5: a restored row belongs to the sync that restored it', async ({ store }) => {
    const east = await SyncDriver.acquire(store, { sync: 'east', mode: 'replace' })
    const west = await SyncDriver.acquire(store, { sync: 'west', mode: 'replace' })
    await east.cycle(upserts('e', 'swept', 'deleted'))
    await east.cycle([...upserts('e'), remove('deleted')])
    await west.cycle(upserts('w', 'swept', 'deleted'))
    assert.deepEqual((await east.cycle(upserts('e'))).counts, counts({ unchanged: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['deleted', 'e', 'swept', 'w'],
    )
    assert.deepEqual((await west.cycle(upserts('w'))).counts, counts({ unchanged: 1, swept: 2 }))
  }),
  rule(
    'XE6 invariant 5: a running sweep keeps every row that other syncs reported, page after page',
    async ({ store }) => {
      const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace', owner: 'accounts' })
      const delta = await SyncDriver.acquire(store, { owner: 'accounts' })
      await backfill.cycle(upserts('a', 'b', 'c', 'd', 'e'))
      await backfill.begin()
      await backfill.page(upserts('a'))
      await delta.begin()
      await delta.page(upserts('b'))
      await delta.page(upserts('d'))
      await delta.complete(upserts('c'))
      assert.deepEqual((await backfill.complete([])).counts, counts({ swept: 1 }))
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['a', 'b', 'c', 'd'],
      )
    },
  ),
  rule('a key that could not be landed counts as listed: its row is not swept', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle(upserts('a', 'b', 'c'))
    await driver.begin()
    await driver.page([], { quarantined: [makeQuarantined('a'), makeQuarantined(null)] })
    assert.deepEqual(
      (await driver.complete(upserts('c'), { quarantined: [makeQuarantined('never seen')] })).counts,
      counts({ unchanged: 1, swept: 1, quarantined: 1 }),
    )
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'c'],
    )
  }),
  rule(
    'a key that could not be landed counts as listed, also beside a page of nothing but new keys',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle(upserts('a', 'b'))
      await driver.cycle(upserts('x', 'y', 'z'), { quarantined: [makeQuarantined('a')] })
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['a', 'x', 'y', 'z'],
      )
    },
  ),
  rule('XE2 the rows an abandoned cycle listed do not count for the next one', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle(upserts('a', 'b', 'c'))
    for (const giveUp of [
      () => driver.abandon(),
      () => driver.begin({ fresh: true }),
      () => driver.begin({ mode: 'incremental' }),
      () => driver.set(null),
    ]) {
      await driver.begin({ fresh: true })
      await driver.page(upserts('a', 'b', 'c'))
      await giveUp()
      const { swept } = (await driver.cycle(upserts('a', 'b'))).counts
      assert.equal(swept, 1)
      await driver.cycle(upserts('a', 'b', 'c'))
    }
  }),
  rule('XE2 the rows a resumed cycle listed before its interruption do count', async ({ store, reopen }) => {
    const first = await SyncDriver.acquire(store, { mode: 'replace' })
    await first.cycle(upserts('a', 'b', 'c', 'd'))
    await first.begin()
    await first.page(upserts('a'))
    await first.page(upserts('b'), { quarantined: [makeQuarantined('d')] })
    const heir = await SyncDriver.acquire(await reopen(), { mode: 'replace', holder: 'runner-2', evict: 'runner-1' })
    assert.equal((await heir.begin()).resumed, true)
    assert.deepEqual((await heir.complete([])).counts, counts({ swept: 1 }))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'b', 'd'],
    )
  }),
  rule('a row deleted by key during the cycle is not swept a second time', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle(upserts('a', 'b'))
    await driver.begin()
    await driver.page(upserts('a'))
    assert.deepEqual((await driver.complete([remove('b')])).counts, counts({ deleted: 1 }))
    assert.deepEqual(await scenario(store, 2), [['deleted', 'b']])
  }),
  rule('a swept row that is listed again with the same time is restored', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 1 }, { at: 5 })])
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 })])
    assert.deepEqual(
      (await driver.cycle([upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 1 }, { at: 5 })])).counts,
      counts({ created: 1, unchanged: 1 }),
    )
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'b'],
    )
  }),
  rule('invariant 6: a swept row keeps its time: an older version does not restore it', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 1 }, { at: 5 })])
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 })])
    const delta = await SyncDriver.acquire(store, { sync: 'other' })
    assert.deepEqual((await delta.cycle([upsert('b', { n: 0 }, { at: 4 })])).counts, counts({ stale: 1 }))
  }),
  rule(
    'invariant 6: a swept row that is then deleted by key stays deleted, also for a version of that very time',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 }, { at: 5 }), upsert('c', { n: 1 }, { at: 5 })])
      await driver.cycle([upsert('a', { n: 1 })])
      const delta = await SyncDriver.acquire(store, { sync: 'other' })
      assert.deepEqual(
        (await delta.cycle([remove('b', { at: 7 }), remove('c', { at: 5 })])).counts,
        counts({ missing: 2 }),
      )
      assert.deepEqual(
        (await delta.cycle([upsert('b', { n: 1 }, { at: 7 }), upsert('c', { n: 1 }, { at: 5 })])).counts,
        counts({ stale: 2 }),
      )
    },
  ),

  // ── the delete limit ──
  rule(
    'XE3 XE5 invariant 11: a sweep of everything exceeds the delete limit and writes nothing, until it is allowed',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle(upserts('a', 'b'))
      await driver.begin()
      const before = await readSnapshot(store)
      const commit = await driver.draft(driver.lastPage({ sweep: { maxShare: 1, allowEmpty: false } }), [], {
        quarantined: [makeQuarantined(null)],
      })
      assert.deepEqual(await driver.send(commit), {
        kind: 'massDeleteBlocked',
        database: 'things',
        owned: 2,
        toDelete: 2,
      })
      assert.deepEqual(await readSnapshot(store), before)

      // Really emptied, and the operator confirmed it.
      assert.deepEqual(
        (await driver.complete([], { sweep: { maxShare: 0, allowEmpty: true } })).counts,
        counts({ swept: 2 }),
      )
      assert.deepEqual(await readLiveRows(store), [])
    },
  ),
  rule(
    'XE4 invariant 11: a sweep of more than the allowed share is blocked, one of exactly that share is not',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle(upserts('a', 'b', 'c', 'd'))
      await driver.begin()
      const sweep = { maxShare: 0.25, allowEmpty: false }
      const before = await readSnapshot(store)
      assert.deepEqual(await driver.send(await driver.draft(driver.lastPage({ sweep }), upserts('a', 'b', 'new'))), {
        kind: 'massDeleteBlocked',
        database: 'things',
        owned: 4,
        toDelete: 2,
      })
      assert.deepEqual(await readSnapshot(store), before)
      assert.deepEqual(
        (await driver.complete(upserts('a', 'b', 'c'), { sweep })).counts,
        counts({ unchanged: 3, swept: 1 }),
      )
    },
  ),
  rule(
    'XE4 invariant 11: new rows do not dilute the share: were every key renamed, all old rows would be deleted',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle(upserts('a', 'b'))
      await driver.begin()
      await driver.page(upserts('n1', 'n2', 'n3', 'n4', 'n5', 'n6'))
      // Updated with other content, they are still new rows.
      await driver.page(['n1', 'n2', 'n3'].map((key) => upsert(key, { again: true })))
      const sweep = { maxShare: 0.5, allowEmpty: false }
      assert.deepEqual(await driver.send(await driver.draft(driver.lastPage({ sweep }), upserts('n7'))), {
        kind: 'massDeleteBlocked',
        database: 'things',
        owned: 2,
        toDelete: 2,
      })
    },
  ),
  rule(
    'invariant 11: rows of other owners do not dilute the share either, and each database is checked separately',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await (await SyncDriver.acquire(store, { sync: 'other' })).cycle(upserts('o1', 'o2', 'o3', 'o4'))
      await driver.cycle([...upserts('a', 'b', 'c', 'd'), upsert('p', { n: 1 }, { database: 'people' })])
      await driver.begin()
      const sweep = { maxShare: 0.5, allowEmpty: false }
      assert.deepEqual(await driver.send(await driver.draft(driver.lastPage({ sweep }), upserts('a', 'b', 'c', 'd'))), {
        kind: 'massDeleteBlocked',
        database: 'people',
        owned: 1,
        toDelete: 1,
      })
      assert.deepEqual(
        await driver.send(
          await driver.draft(driver.lastPage({ sweep }), [
            ...upserts('a'),
            upsert('p', { n: 1 }, { database: 'people' }),
          ]),
        ),
        { kind: 'massDeleteBlocked', database: 'things', owned: 4, toDelete: 3 },
      )
    },
  ),
  rule('a blocked cycle can be abandoned: its listed rows have landed, and nothing was deleted', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle(upserts('a', 'b'))
    await driver.begin()
    assert.equal(
      (
        await driver.send(
          await driver.draft(driver.lastPage({ sweep: { maxShare: 0, allowEmpty: false } }), upserts('a', 'c')),
        )
      ).kind,
      'massDeleteBlocked',
    )
    await driver.abandon(upserts('a', 'c'))
    assert.deepEqual(
      (await readLiveRows(store)).map(([key]) => key),
      ['a', 'b', 'c'],
    )
  }),
  rule('a cycle that would delete nothing is never blocked, not even over an empty database', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    const sweep = { maxShare: 0, allowEmpty: false }
    await driver.cycle([], { sweep })
    await driver.cycle(upserts('a'), { sweep })
    await driver.cycle(upserts('a', 'b'), { sweep })
    assert.equal(driver.version, 3)
  }),
]
