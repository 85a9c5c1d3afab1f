import assert from 'node:assert/strict'
import type { Commit, DatabaseInfo, Landing, Store } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { currentRows, replay, sortedEntries } from './churn.ts'
import {
  counts,
  DATABASE,
  readFeed,
  readLiveRows,
  remove,
  rule,
  readSnapshot,
  START,
  scenario,
  type CommitOverrides,
  type StoreCase,
  type StoreHarness,
  SyncDriver,
  upsert,
} from './harness.ts'
import { required } from '../../values/required.ts'

const SOFT: CommitOverrides = { deletes: { [DATABASE]: 'soft' } }
const HARD: CommitOverrides = { deletes: { [DATABASE]: 'hard' } }
const NEEDS_SOFT_DELETES = { needs: 'supportsSoftDeletes' } as const

/**
 * Only for stores that declare `supportsSoftDeletes`: `deletes: 'soft'` differs from `hard` in the tables and nowhere
 * else.
 */
export const softDeleteCases: readonly StoreCase[] = [
  rule(
    'a soft delete keeps the row with the values of its last version, and only the table shows it',
    async (harness) => {
      const { store } = harness
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 })], SOFT)
      await driver.cycle([upsert('a', { n: 2, added: 'x' })], SOFT)
      assert.deepEqual((await driver.cycle([remove('a')], SOFT)).counts, counts({ deleted: 1 }))
      assert.deepEqual(await scenario(store), [
        ['created', 'a'],
        ['created', 'b'],
        ['updated', 'a'],
        ['deleted', 'a'],
      ])
      assert.deepEqual(await readLiveRows(store), [['b', { n: 1 }]])
      assert.equal(await store.row(DATABASE, 'a'), null)
      assert.deepEqual(
        (await store.history(DATABASE, 'a')).map(({ action }) => action),
        ['created', 'updated', 'deleted'],
      )
      const { rows, hasDeleted } = await readDatabaseInfo(store)
      assert.deepEqual([rows, hasDeleted], [1, true])
      const [deleted, kept] = await selectRows(harness)
      assert.deepEqual(
        [
          required(deleted, 'deleted')['_key'],
          Number(required(deleted, 'deleted')['n']),
          required(deleted, 'deleted')['added'],
        ],
        ['a', 2, 'x'],
      )
      const entry = required((await readFeed(store)).at(-1), 'an entry of the result of readFeed')
      assert.deepEqual(
        [
          Number(required(deleted, 'deleted')['_sequence']),
          timeOf(required(deleted, 'deleted')['_deleted_at']),
          timeOf(required(deleted, 'deleted')['_synced_at']),
        ],
        [entry.sequence, entry.committedAt, entry.committedAt],
      )
      assert.deepEqual([required(kept, 'kept')['_key'], required(kept, 'kept')['_deleted_at']], ['b', null])
      const versions = await required(harness.supports, 'harness.supports').select!(
        (await readDatabaseInfo(store)).history,
      )
      assert.deepEqual(
        versions
          .map((row) => [row['_key'], Number(row['n']), row['_deleted_at']])
          .toSorted((a, b) => Number(a[1]) - Number(b[1])),
        [
          ['a', 1, null],
          ['a', 2, null],
        ],
      )
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a delete is hard by default',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 })])
      await driver.cycle([remove('a')])
      await driver.cycle([remove('b')], HARD)
      const { hasDeleted } = await readDatabaseInfo(harness.store)
      assert.deepEqual([await selectRows(harness), hasDeleted], [[], undefined])
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a commit without a delete setting leaves it unchanged',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle([upsert('a', { n: 1 })], SOFT)
      await driver.cycle([remove('a')])
      assert.deepEqual(await listKeys(harness), { live: [], deleted: ['a'] })
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a database created by its first commit follows the setting of that commit',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle([upsert('a', { n: 1 }, { database: 'late' })], { deletes: { late: 'soft' } })
      assert.equal((await readDatabaseInfo(harness.store, 'late')).hasDeleted, true)
      await driver.cycle([remove('a', { database: 'late' })])
      assert.deepEqual(await listKeys(harness, 'late'), { live: [], deleted: ['a'] })
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a record that returns unchanged is live again, with a new sequence',
    async (harness) => {
      const { store } = harness
      const driver = await SyncDriver.acquire(store)
      // Enough of them to be looked up as a block.
      const all = ['a', 'b', 'c', 'd'].map((key) => upsert(key, { of: key }))
      await driver.cycle(all, SOFT)
      await driver.cycle([remove('b'), remove('c')], SOFT)
      assert.deepEqual((await driver.cycle(all, SOFT)).counts, counts({ created: 2, unchanged: 2 }))
      assert.deepEqual(await listKeys(harness), { live: ['a', 'b', 'c', 'd'], deleted: [] })
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['a', 'b', 'c', 'd'],
      )
      assert.deepEqual((await scenario(store)).slice(4), [
        ['deleted', 'b'],
        ['deleted', 'c'],
        ['created', 'b'],
        ['created', 'c'],
      ])
      assert.deepEqual((await driver.cycle(all, SOFT)).counts, counts({ unchanged: 4 }))
      await assertReplay(store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a block with one deleted row is not unchanged',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      const all = Array.from({ length: 40 }, (_, n) => upsert(`k${n + 10}`, { n }))
      await driver.cycle(all, SOFT)
      await driver.cycle(all, SOFT)
      await driver.cycle(
        all.filter(({ key }) => key !== 'k20'),
        SOFT,
      )
      assert.deepEqual((await driver.cycle(all, SOFT)).counts, counts({ created: 1, unchanged: 39 }))
      assert.equal((await readLiveRows(store)).length, 40)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a block of deleted rows is not unchanged',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      const kept = Array.from({ length: 40 }, (_, n) => upsert(`a${n + 10}`, { n }))
      const all = Array.from({ length: 40 }, (_, n) => upsert(`k${n + 10}`, { n }))
      await driver.cycle([...kept, ...all], SOFT)
      assert.deepEqual((await driver.cycle(kept, SOFT)).counts, counts({ unchanged: 40, swept: 40 }))
      await driver.begin()
      assert.deepEqual((await driver.page(kept, SOFT)).counts, counts({ unchanged: 40 }))
      assert.deepEqual((await driver.page(all, SOFT)).counts, counts({ created: 40 }))
      assert.deepEqual((await driver.complete(all, SOFT)).counts, counts({ unchanged: 40 }))
      assert.equal((await readLiveRows(store)).length, 80)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a record that returns changed is live again with its new content, in the same row',
    async (harness) => {
      const { store } = harness
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 1, gone: 'x' }, { at: 1 })], SOFT)
      await driver.cycle([remove('a', { at: 2 })], SOFT)
      await driver.cycle([upsert('a', { n: 'two', added: true }, { at: 3 }), upsert('b', { n: 2 })], SOFT)
      assert.deepEqual(await readLiveRows(store), [
        ['a', { n: 'two', added: true }],
        ['b', { n: 2 }],
      ])
      const [row] = await selectRows(harness)
      assert.deepEqual(
        [
          required(row, 'row')['gone'],
          required(row, 'row')['_deleted_at'],
          Number(required(row, 'row')['_sequence']),
          Number(required(row, 'row')['_created_sequence']),
        ],
        [null, null, 3, 3],
      )
      await driver.cycle([upsert('a', { n: 4 }, { at: 4 })], SOFT)
      assert.deepEqual(
        (await store.history(DATABASE, 'a')).map(({ action, text }) => [
          action,
          text === null ? null : parseJson(text),
        ]),
        [
          ['created', { n: 1, gone: 'x' }],
          ['deleted', null],
          ['created', { n: 'two', added: true }],
          ['updated', { n: 4 }],
        ],
      )
      await assertReplay(store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'invariant 6: an older version does not restore a soft-deleted row, a newer one does',
    async (harness) => {
      const { store } = harness
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 1 }, { at: 10 })], SOFT)
      await driver.cycle([remove('a', { at: 20 })], SOFT)
      for (const at of [10, 15, 20])
        assert.deepEqual(
          (await driver.cycle([upsert('a', { n: at }, { at })], SOFT)).counts,
          counts({ stale: 1 }),
          `at ${at}`,
        )
      assert.deepEqual(await listKeys(harness), { live: [], deleted: ['a'] })
      assert.deepEqual((await driver.cycle([remove('a', { at: 15 })], SOFT)).counts, counts({ missing: 1 }))
      assert.deepEqual((await driver.cycle([upsert('a', { n: 21 }, { at: 21 })], SOFT)).counts, counts({ created: 1 }))
      assert.deepEqual(await readLiveRows(store), [['a', { n: 21 }]])
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'invariant 5: rows deleted by a sweep are kept too, and are not swept again',
    async (harness) => {
      const { store } = harness
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle(upserts('a', 'b', 'c', 'd'), SOFT)
      assert.deepEqual((await driver.cycle(upserts('a', 'b'), SOFT)).counts, counts({ unchanged: 2, swept: 2 }))
      assert.deepEqual(await listKeys(harness), { live: ['a', 'b'], deleted: ['c', 'd'] })
      const [, , swept] = await selectRows(harness)
      const entry = required(
        (await readFeed(store)).find(({ key, action }) => key === 'c' && action === 'deleted'),
        'the match in the result of readFeed',
      )
      assert.deepEqual(
        [Number(required(swept, 'swept')['_sequence']), timeOf(required(swept, 'swept')['_deleted_at'])],
        [entry.sequence, entry.committedAt],
      )
      assert.deepEqual((await driver.cycle(upserts('a', 'b'), SOFT)).counts, counts({ unchanged: 2 }))
      assert.deepEqual((await driver.cycle(upserts('a', 'b', 'c'), SOFT)).counts, counts({ unchanged: 2, created: 1 }))
      assert.deepEqual((await driver.cycle(upserts('a', 'b', 'c'), SOFT)).counts, counts({ unchanged: 3 }))
      assert.deepEqual((await scenario(store)).slice(4), [
        ['deleted', 'c'],
        ['deleted', 'd'],
        ['created', 'c'],
      ])
      await assertReplay(store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a sweep without a record on its page follows the setting of its commit',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store, { mode: 'replace' })
      await driver.cycle(upserts('a', 'b'))
      assert.deepEqual((await driver.cycle([], SOFT)).counts, counts({ swept: 2 }))
      assert.deepEqual(await listKeys(harness), { live: [], deleted: ['a', 'b'] })
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'invariant 11: deleted rows do not count for the share that a sweep may delete',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle(upserts('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'), SOFT)
      await driver.cycle(upserts('a', 'b', 'c', 'd'), SOFT)
      await driver.begin()
      const commit = await driver.draft(
        driver.lastPage({ sweep: { maxShare: 0.3, allowEmpty: false } }),
        upserts('a', 'b'),
        SOFT,
      )
      assert.deepEqual(await store.commit(commit), {
        kind: 'massDeleteBlocked',
        database: DATABASE,
        owned: 4,
        toDelete: 2,
      })
      assert.equal((await readLiveRows(store)).length, 4)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'the feed has one entry per soft delete, and its live entries are the live rows',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      const keys = Array.from({ length: 30 }, (_, n) => `k${n + 10}`)
      await driver.cycle(
        keys.map((key) => upsert(key, { of: key })),
        SOFT,
      )
      for (const key of keys.slice(0, 20)) await driver.cycle([remove(key)], SOFT)
      await driver.cycle([upsert(required(keys[3], 'keys[3]'), { of: 'back' })], SOFT)
      const all = await readFeed(store)
      assert.deepEqual(
        all.map(({ sequence }) => sequence),
        Array.from({ length: 51 }, (_, n) => n + 1),
      )
      assert.equal(all.filter(({ action }) => action === 'deleted').length, 20)
      const found: string[] = []
      for (let after = 0, position = Infinity; after < position;) {
        const page = await store.feed({ after, limit: 3, liveOnly: true, scanMax: 1_000 })
        found.push(...page.entries.map(({ key }) => key))
        ;[after, position] = [page.scannedSequence, page.headSequence]
      }
      assert.deepEqual(found, [...keys.slice(20), keys[3]])
      assert.deepEqual(
        (await store.rows({ database: DATABASE, limit: 4 })).map(({ key }) => key),
        [keys[3], ...keys.slice(20, 23)],
      )
      await assertReplay(store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a soft-deleted row outlives the history, and stays deleted',
    async (harness) => {
      const { store } = harness
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 1 }, { at: 1 }), upsert('b', { n: 1 })], SOFT)
      const { headSequence: position } = await driver.cycle([remove('a', { at: 5 })], SOFT)
      await driver.cycle([upsert('c', { n: 1 })], SOFT)
      while ((await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 2 })).hasMore);
      assert.deepEqual(
        [await listKeys(harness), await scenario(store)],
        [
          { live: ['b', 'c'], deleted: ['a'] },
          [
            ['created', 'b'],
            ['created', 'c'],
          ],
        ],
      )
      // Nor does any entry remain of the commit that deleted it.
      assert.equal((await store.feed({ after: position, limit: 1, scanMax: 10 })).afterCommittedAt, null)
      assert.deepEqual((await driver.cycle([upsert('a', { n: 2 }, { at: 4 })], SOFT)).counts, counts({ stale: 1 }))
      assert.deepEqual((await driver.cycle([upsert('a', { n: 2 }, { at: 6 })], SOFT)).counts, counts({ created: 1 }))
      assert.deepEqual(await readLiveRows(store), [
        ['a', { n: 2 }],
        ['b', { n: 1 }],
        ['c', { n: 1 }],
      ])
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'from hard to soft: rows deleted before stay removed',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle(upserts('a', 'b', 'c'), HARD)
      await driver.cycle([remove('a')], HARD)
      await driver.cycle([remove('b')], SOFT)
      assert.deepEqual(await listKeys(harness), { live: ['c'], deleted: ['b'] })
      // The removed row and the kept one are restored alike.
      assert.deepEqual((await driver.cycle(upserts('a', 'b', 'c'), SOFT)).counts, counts({ created: 2, unchanged: 1 }))
      assert.deepEqual(await listKeys(harness), { live: ['a', 'b', 'c'], deleted: [] })
      await assertReplay(harness.store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'from soft to hard: kept rows are removed in steps that can be interrupted, and no live row with them',
    async (harness) => {
      const { store, reopen } = harness
      const driver = await SyncDriver.acquire(store)
      const keys = Array.from({ length: 60 }, (_, n) => `k${n + 10}`)
      await driver.cycle(upserts(...keys), SOFT)
      await driver.cycle(
        keys.slice(0, 50).map((key) => remove(key)),
        SOFT,
      )
      // Restored before its step, so it is live when the step runs.
      await driver.cycle(upserts(required(keys[30], 'keys[30]')), SOFT)
      await driver.cycle([], HARD)
      const before = await readConsumerView(store)
      let steps = 0
      for (let more = true; more; steps++) {
        more = (await (await reopen()).compact({ before: 0, scanMax: 7 })).hasMore
        assert.deepEqual(await readConsumerView(store), before)
      }
      assert.ok(steps >= 7, `${steps} steps of 7 for 49 rows`)
      assert.deepEqual(await listKeys(harness), {
        live: [required(keys[30], 'keys[30]'), ...keys.slice(50)],
        deleted: [],
      })
      assert.equal((await readDatabaseInfo(store)).hasDeleted, undefined)
      await driver.cycle([remove(required(keys[55], 'keys[55]'))], HARD)
      assert.deepEqual((await listKeys(harness)).deleted, [])
      await driver.cycle([remove(required(keys[56], 'keys[56]'))], SOFT)
      assert.deepEqual((await listKeys(harness)).deleted, [keys[56]])
      await assertReplay(store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'from soft to hard: commits alone remove the kept rows',
    async (harness) => {
      const { store } = harness
      const driver = await SyncDriver.acquire(store)
      const keys = Array.from({ length: 2_500 }, (_, n) => `k${n + 1_000}`)
      await driver.cycle(upserts(...keys, 'z'), SOFT)
      await driver.cycle(
        keys.map((key) => remove(key)),
        SOFT,
      )
      const left: number[] = []
      for (let n = 0; n < 5; n++) {
        // One is restored before its step; one is deleted meanwhile, and removed at once.
        await driver.cycle(
          n === 0
            ? [upsert(required(keys[2_400], 'keys[2_400]'), { of: 'back' }), upsert('y', { n })]
            : n === 1
              ? [remove('z')]
              : [upsert('y', { n })],
          HARD,
        )
        left.push((await listKeys(harness)).deleted.length)
      }
      assert.equal(left.at(-1), 0)
      assert.ok(
        left.every((count, at) => at === 0 || count <= required(left[at - 1], 'left[at - 1]')),
        String(left),
      )
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        [keys[2_400], 'y'],
      )
      await assertReplay(store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'from soft to hard: a restored row is not removed, and can be deleted again',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle(upserts('a', 'b'), SOFT)
      await driver.cycle([remove('a'), remove('b')], SOFT)
      await driver.cycle(upserts('a'), SOFT)
      await driver.cycle([remove('a')], SOFT)
      await driver.cycle(upserts('a'), SOFT)
      assert.deepEqual((await driver.cycle([remove('a')], HARD)).counts, counts({ deleted: 1 }))
      assert.deepEqual((await driver.cycle(upserts('a'), HARD)).counts, counts({ created: 1 }))
      while ((await harness.store.compact({ before: 0, scanMax: 1 })).hasMore);
      assert.deepEqual(await listKeys(harness), { live: ['a'], deleted: [] })
      await assertReplay(harness.store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'from soft to hard and back: rows not removed yet are kept',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle(upserts('a', 'b', 'c', 'd', 'e'), SOFT)
      await driver.cycle(
        ['a', 'b', 'c', 'd'].map((key) => remove(key)),
        SOFT,
      )
      await driver.cycle([], HARD)
      assert.equal((await harness.store.compact({ before: 0, scanMax: 2 })).hasMore, true)
      await driver.cycle([], SOFT)
      while ((await harness.store.compact({ before: 0, scanMax: 2 })).hasMore);
      assert.deepEqual(await listKeys(harness), { live: ['e'], deleted: ['c', 'd'] })
      // Starts again from the first key.
      await driver.cycle([remove('e')], SOFT)
      await driver.cycle([], HARD)
      while ((await harness.store.compact({ before: 0, scanMax: 2 })).hasMore);
      assert.deepEqual(await listKeys(harness), { live: [], deleted: [] })
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'F7 two owners of one database: a restored soft-deleted row belongs to the sync that restored it',
    async (harness) => {
      const { store } = harness
      const east = await SyncDriver.acquire(store, { sync: 'east', mode: 'replace' })
      const west = await SyncDriver.acquire(store, { sync: 'west', mode: 'replace' })
      await east.cycle(upserts('e', 'shared'), SOFT)
      await west.cycle(upserts('w', 'shared'), SOFT)
      await east.cycle(upserts('e'), SOFT)
      assert.deepEqual(
        (await readLiveRows(store)).map(([key]) => key),
        ['e', 'shared', 'w'],
      )
      await west.cycle(upserts('w'), SOFT)
      assert.deepEqual(await listKeys(harness), { live: ['e', 'w'], deleted: ['shared'] })
      await east.cycle(upserts('e', 'shared'), SOFT)
      assert.deepEqual((await west.cycle(upserts('w'), SOFT)).counts, counts({ unchanged: 1 }))
      assert.deepEqual((await east.cycle(upserts('e'), SOFT)).counts, counts({ unchanged: 1, swept: 1 }))
      assert.deepEqual(await listKeys(harness), { live: ['e', 'w'], deleted: ['shared'] })
      await assertReplay(store)
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'databases have their own setting, and so do tenants',
    async (harness) => {
      const { store } = harness
      const other = store.forTenant('other')
      for (const [tenant, deletes] of [
        [store, { [DATABASE]: 'soft', hard: 'hard' }],
        [other, { [DATABASE]: 'hard' }],
      ] as const) {
        const driver = await SyncDriver.acquire(tenant)
        await driver.begin({ databases: Object.keys(deletes) })
        await driver.complete(
          Object.keys(deletes).map((database) => upsert('a', { n: 1 }, { database })),
          { deletes },
        )
        await driver.begin({ databases: Object.keys(deletes) })
        await driver.complete(
          Object.keys(deletes).map((database) => remove('a', { database })),
          { deletes },
        )
      }
      assert.deepEqual(await listKeys(harness), { live: [], deleted: ['a'] })
      assert.deepEqual(await listKeys(harness, 'hard'), { live: [], deleted: [] })
      assert.deepEqual(await listKeys(harness, DATABASE, other), { live: [], deleted: [] })
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'Z14 a tenant is erased together with its kept rows, and can start again',
    async (harness) => {
      const { store } = harness
      const driver = await SyncDriver.acquire(store)
      await driver.cycle(upserts('a', 'b'), SOFT)
      await driver.cycle([remove('a')], SOFT)
      await driver.release()
      assert.equal((await store.eraseTenant({ actor: 'me', at: START })).kind, 'erased')
      const again = await SyncDriver.acquire(store)
      assert.deepEqual((await again.cycle(upserts('a'), SOFT)).counts, counts({ created: 1 }))
      assert.deepEqual(await listKeys(harness), { live: ['a'], deleted: [] })
      await again.cycle([remove('a')], SOFT)
      assert.deepEqual(await listKeys(harness), { live: [], deleted: ['a'] })
    },
    NEEDS_SOFT_DELETES,
  ),
  rule(
    'a field named like the column of a soft delete has its own column',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store)
      await driver.cycle([upsert('a', { _deleted_at: 'never', n: 1 }), upsert('b', { _deleted_at: 'late' })], SOFT)
      await driver.cycle([remove('b'), upsert('c', { _deleted_at: 'new' })], SOFT)
      assert.deepEqual(await readLiveRows(harness.store), [
        ['a', { _deleted_at: 'never', n: 1 }],
        ['c', { _deleted_at: 'new' }],
      ])
      assert.deepEqual(await listKeys(harness), { live: ['a', 'c'], deleted: ['b'] })
      assert.deepEqual(
        (await selectRows(harness)).map((row) =>
          Object.values(row).filter((value) => ['never', 'late', 'new'].includes(String(value))),
        ),
        [['never'], ['late'], ['new']],
      )
    },
    NEEDS_SOFT_DELETES,
  ),
  ...(['hard', 'soft'] as const).map((to) =>
    rule(
      `XA3 a crash before any statement of a commit that changes deletes to ${to} leaves everything as it was`,
      async (harness) => {
        const { store, reopen, supports } = harness
        if (supports?.crashDuringCommit === undefined) return
        const driver = await SyncDriver.acquire(store, { mode: 'replace' })
        await driver.cycle(upserts('a', 'b', 'c', 'd', 'e'), to === 'hard' ? SOFT : HARD)
        await driver.cycle(upserts('a', 'b', 'c', 'd'), to === 'hard' ? SOFT : HARD)
        await driver.begin()
        const commit: Commit = await driver.draft(driver.lastPage(), [...upserts('a', 'e'), remove('b')], {
          deletes: { [DATABASE]: to },
        })
        const seen = async (at: Store): Promise<unknown> => [await readSnapshot(at), await selectRows(harness)]
        const before = await seen(store)
        for (let statement = 0; ; statement++) {
          const outcome = await supports.crashDuringCommit(commit, statement)
          if (outcome !== 'crashed') break
          assert.deepEqual(await seen(store), before, `crashed before statement ${statement}`)
        }
        assert.deepEqual(
          (await readLiveRows(await reopen())).map(([key]) => key),
          ['a', 'e'],
        )
        assert.deepEqual((await listKeys(harness)).live, ['a', 'e'])
        if (to === 'soft') assert.deepEqual((await listKeys(harness)).deleted, ['b', 'c', 'd'])
        await assertReplay(store)
      },
      NEEDS_SOFT_DELETES,
    ),
  ),
]

const upserts = (...keys: string[]): Landing[] => keys.map((key) => upsert(key, { of: key }))

/** The state visible to consumers, which a change of the setting must not alter. */
async function readConsumerView(store: Store): Promise<unknown> {
  const { rows } = await readDatabaseInfo(store)
  return [rows, await readFeed(store), await store.rows({ database: DATABASE, limit: 1_000_000 })]
}

async function assertReplay(store: Store): Promise<void> {
  assert.deepEqual(sortedEntries(replay(await readFeed(store))), sortedEntries(await currentRows(store)))
}

async function selectRows(
  { store, supports }: StoreHarness,
  database = DATABASE,
  tenant = store,
): Promise<Array<Record<string, unknown>>> {
  const rows = await required(supports, 'supports').select!((await readDatabaseInfo(tenant, database)).table)
  return rows.toSorted((a, b) => (String(a['_key']) < String(b['_key']) ? -1 : 1))
}

/** The rows of the table by whether they are deleted. */
async function listKeys(
  harness: StoreHarness,
  database = DATABASE,
  tenant = harness.store,
): Promise<{ live: string[]; deleted: string[] }> {
  const rows = await selectRows(harness, database, tenant)
  const keys = (isLive: boolean): string[] =>
    rows.filter((row) => ((row['_deleted_at'] ?? null) === null) === isLive).map((row) => String(row['_key']))
  return { live: keys(true), deleted: keys(false) }
}

async function readDatabaseInfo(store: Store, database = DATABASE): Promise<DatabaseInfo> {
  const found = (await store.databases()).find(({ name }) => name === database)
  assert.ok(found, `databases() lists ${database}`)
  return found
}

function timeOf(value: unknown): number {
  return value instanceof Date ? value.getTime() : Date.parse(String(value))
}
