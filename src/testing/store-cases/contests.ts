import assert from 'node:assert/strict'
import type { Landing, ListingContext } from '../../contract/index.ts'
import {
  counts,
  readFeed,
  readLiveRows,
  remove,
  rule,
  type StoreCase,
  SWEEP_ALL,
  SyncDriver,
  upsert,
} from './harness.ts'
import { required } from '../../values/required.ts'

/** Later than every sequence: the source has no lag. */
const SETTLED: ListingContext = { settledSequence: Number.MAX_SAFE_INTEGER }
const listing = SETTLED
const confirmationRequest = { listing: { ...SETTLED, lookupDatabase: 'things' } }
const confirmationAnswer = (confirmed: string[], refuted: string[] = []) => ({
  listing: { ...SETTLED, lookupAnswers: { database: 'things', confirmed, refuted } },
})
const currentVersion = (n: number): Landing => upsert('a', { n }, { at: 5 })

/** A backfill whose row `a` was stored with a later time than the source shows now. */
async function contestedRow(store: SyncDriver['store']): Promise<{ backfill: SyncDriver; delta: SyncDriver }> {
  const delta = await SyncDriver.acquire(store, { owner: 'accounts' })
  const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace', owner: 'accounts' })
  await delta.cycle([upsert('a', { n: 1 }, { at: 9 })])
  return { backfill, delta }
}

export const contestCases: readonly StoreCase[] = [
  rule(
    'invariant 13: a listing that contradicts a later time wins when a second complete cycle confirms it',
    async ({ store, reopen }) => {
      const { backfill } = await contestedRow(store)
      assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ stale: 1 }))
      assert.deepEqual(await readLiveRows(store), [['a', { n: 1 }]])
      const outcome = await backfill.cycle([currentVersion(2)], { listing })
      assert.deepEqual(outcome.counts, counts({ updated: 1 }))
      assert.deepEqual(await readLiveRows(await reopen()), [['a', { n: 2 }]])
      assert.equal(
        required((await readFeed(store)).at(-1), 'an entry of the result of readFeed').sequence,
        outcome.headSequence,
      )
      // From here on its own time counts.
      assert.deepEqual(
        (await backfill.cycle([upsert('a', { n: 3 }, { at: 6 })], { listing })).counts,
        counts({ updated: 1 }),
      )
    },
  ),
  rule('invariant 13: a deleted row that two complete cycles list with its old time is restored', async ({ store }) => {
    const { backfill, delta } = await contestedRow(store)
    await delta.cycle([remove('a')])
    for (const at of [9, 5]) {
      const restored = upsert('a', { n: at }, { at })
      assert.deepEqual((await backfill.cycle([restored], { listing })).counts, counts({ stale: 1 }), `${at}, first`)
      assert.deepEqual((await backfill.cycle([restored], { listing })).counts, counts({ created: 1 }), `${at}, second`)
      await delta.cycle([remove('a', { at: 20 })])
    }
  }),
  rule(
    'invariant 13: a live row that two complete cycles report as deleted at an earlier time is deleted',
    async ({ store }) => {
      const { backfill } = await contestedRow(store)
      const gone = remove('a', { at: 5 })
      assert.deepEqual((await backfill.cycle([gone], { listing, sweep: null })).counts, counts({ stale: 1 }))
      assert.deepEqual((await backfill.cycle([gone], { listing, sweep: null })).counts, counts({ deleted: 1 }))
    },
  ),
  rule(
    'invariant 6: a second sighting in the same cycle, or after a cycle that did not end, confirms nothing',
    async ({ store }) => {
      const { backfill } = await contestedRow(store)
      await backfill.begin()
      await backfill.page([currentVersion(2)], { listing })
      await backfill.page([currentVersion(2)], { listing })
      await backfill.abandon([])
      assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ stale: 1 }))
      assert.deepEqual(await readLiveRows(store), [['a', { n: 1 }]])
      assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ updated: 1 }))
    },
  ),
  rule('invariant 6: a listing that agrees with the stored version ends the contest', async ({ store }) => {
    for (const agreement of [upsert('a', { n: 1 }, { at: 9 }), upsert('a', { n: 1 }, { at: 10 })]) {
      const { backfill, delta } = await contestedRow(store)
      await backfill.cycle([currentVersion(2)], { listing })
      await backfill.cycle([agreement], { listing })
      assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ stale: 1 }))
      assert.deepEqual(await readLiveRows(store), [['a', { n: 1 }]])
      await delta.release()
      await backfill.release()
    }
  }),
  rule('invariant 6: a version written since the first sighting has to be contested again', async ({ store }) => {
    const { backfill, delta } = await contestedRow(store)
    await backfill.cycle([currentVersion(2)], { listing })
    await delta.cycle([upsert('a', { n: 7 }, { at: 10 })])
    assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ stale: 1 }))
    assert.deepEqual(await readLiveRows(store), [['a', { n: 7 }]])
  }),
  rule(
    'invariant 6: a version younger than the source’s lag is not overruled by a second sighting',
    async ({ store }) => {
      const { backfill } = await contestedRow(store)
      const young = { listing: { settledSequence: 0 } }
      for (let cycle = 0; cycle < 3; cycle++)
        assert.deepEqual((await backfill.cycle([currentVersion(2)], young)).counts, counts({ stale: 1 }))
      assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ updated: 1 }))
    },
  ),
  rule('invariant 6: a version committed while the page was read is not contested', async ({ store }) => {
    const { backfill } = await contestedRow(store)
    assert.deepEqual(
      (await backfill.cycle([currentVersion(2)], { ...confirmationRequest, readAtSequence: 0 })).counts,
      counts({ stale: 1 }),
    )
    assert.deepEqual(
      (await backfill.cycle([currentVersion(2)], { listing, readAtSequence: 0 })).counts,
      counts({ stale: 1 }),
    )
    assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ stale: 1 }))
  }),
  rule('invariant 6: an incremental cycle never contests', async ({ store }) => {
    const { delta } = await contestedRow(store)
    for (let cycle = 0; cycle < 3; cycle++)
      assert.deepEqual((await delta.cycle([currentVersion(2)], { listing })).counts, counts({ stale: 1 }))
  }),
  rule(
    'invariant 13: contested keys are reported before any write, and the source’s answer decides at once',
    async ({ store }) => {
      const { backfill } = await contestedRow(store)
      await backfill.begin()
      const page = [currentVersion(2), upsert('b', { n: 1 }, { at: 1 })]
      assert.deepEqual(await backfill.send(await backfill.draft(backfill.lastPage(), page, confirmationRequest)), {
        kind: 'contested',
        keys: ['a'],
      })
      assert.deepEqual(await readLiveRows(store), [['a', { n: 1 }]])
      assert.deepEqual(
        (await backfill.complete(page, confirmationAnswer(['a']))).counts,
        counts({ created: 1, updated: 1 }),
      )
      assert.deepEqual(await readLiveRows(store), [
        ['a', { n: 2 }],
        ['b', { n: 1 }],
      ])
    },
  ),
  rule(
    'invariant 6: a version that the source refutes is not applied, and the contest is dropped',
    async ({ store }) => {
      const { backfill } = await contestedRow(store)
      await backfill.cycle([currentVersion(2)], { listing })
      assert.deepEqual(
        (await backfill.cycle([currentVersion(2)], confirmationAnswer([], ['a']))).counts,
        counts({ stale: 1 }),
      )
      assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ stale: 1 }))
      assert.deepEqual(await readLiveRows(store), [['a', { n: 1 }]])
    },
  ),
  rule('invariant 6: between two owners that list the same key, the later time decides', async ({ store }) => {
    const east = await SyncDriver.acquire(store, { sync: 'east', mode: 'replace' })
    const west = await SyncDriver.acquire(store, { sync: 'west', mode: 'replace' })
    await east.cycle([upsert('a', { of: 'east' }, { at: 5 })], { listing })
    await west.cycle([upsert('a', { of: 'west' }, { at: 9 })], { listing })
    for (let cycle = 0; cycle < 3; cycle++) {
      for (let n = 0; n < 2; n++) await east.cycle([upsert('a', { of: 'east' }, { at: 5 })], { listing })
      await west.cycle([upsert('a', { of: 'west' }, { at: 9 })], { listing })
    }
    assert.equal((await readFeed(store)).length, 2)
    assert.deepEqual(await readLiveRows(store), [['a', { of: 'west' }]])
  }),
  rule('invariant 13: a row of a sync that never lists anything can be overruled', async ({ store }) => {
    const webhook = await SyncDriver.acquire(store, { sync: 'webhook' })
    const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace' })
    await webhook.cycle([upsert('a', { n: 1 }, { at: 9 })])
    await backfill.cycle([currentVersion(2)], { listing })
    assert.deepEqual((await backfill.cycle([currentVersion(2)], { listing })).counts, counts({ updated: 1 }))
  }),
  rule(
    'invariant 13: a stored time in the future is lowered by the next listing of the same content',
    async ({ store }) => {
      const { backfill, delta } = await contestedRow(store)
      await delta.cycle([upsert('b', { n: 1 }, { at: 4_000_000_000 })])
      await backfill.cycle([upsert('a', { n: 1 }, { at: 9 }), upsert('b', { n: 1 }, { at: 5 })], { listing })
      assert.deepEqual((await delta.cycle([upsert('b', { n: 2 }, { at: 6 })])).counts, counts({ updated: 1 }))
    },
  ),
  rule(
    'invariant 5: a row younger than the source’s lag is not swept, but by the next cycle it is',
    async ({ store }) => {
      const { backfill, delta } = await contestedRow(store)
      const settledSequence = await store.headSequence()
      await delta.cycle([upsert('young', { n: 1 })])
      assert.deepEqual(
        (await backfill.cycle([], { sweep: { ...SWEEP_ALL, settledSequence } })).counts,
        counts({ swept: 1 }),
      )
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['young'],
      )
      assert.deepEqual(
        (await backfill.cycle([], { sweep: { ...SWEEP_ALL, settledSequence: settledSequence + 1 } })).counts,
        counts({ swept: 1 }),
      )
    },
  ),
  rule(
    'invariant 5: a sweep that needs lookups returns a sample of the rows to delete, evenly spaced, and deletes nothing',
    async ({ store }) => {
      const backfill = await SyncDriver.acquire(store, { sync: 'backfill', mode: 'replace' })
      const keys = Array.from({ length: 40 }, (_, n) => `k${String(n).padStart(2, '0')}`)
      await backfill.cycle(keys.map((key) => upsert(key, { n: 1 })))
      await backfill.begin()
      const asks = async (database: string, limit: number) =>
        backfill.send(
          await backfill.draft(backfill.lastPage({ sweep: { ...SWEEP_ALL, confirmAbsent: { database, limit } } }), []),
        )
      assert.deepEqual(await asks('things', 100), { kind: 'absent', keys, count: 40 })
      assert.deepEqual(await asks('things', 4), { kind: 'absent', keys: ['k00', 'k10', 'k20', 'k30'], count: 40 })
      assert.equal((await readLiveRows(store)).length, 40)
      // The delete limit comes first: no lookup is made for a sweep that is refused anyway.
      assert.equal(
        (
          await backfill.send(
            await backfill.draft(
              backfill.lastPage({
                sweep: { maxShare: 0.5, allowEmpty: false, confirmAbsent: { database: 'things', limit: 4 } },
              }),
              [],
            ),
          )
        ).kind,
        'massDeleteBlocked',
      )
      assert.deepEqual((await backfill.complete([])).counts, counts({ swept: 40 }))
    },
  ),
]
