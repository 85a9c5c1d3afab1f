import assert from 'node:assert/strict'
import type { Landing, Store, VerificationReport } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import {
  counts,
  DATABASE,
  readFeed,
  readLiveRows,
  remove,
  rule,
  START,
  type StoreCase,
  SyncDriver,
  upsert,
} from './harness.ts'

const REPORT: VerificationReport = {
  syncs: ['crm/delta'],
  method: 'listing',
  sinceTime: null,
  endedAt: START + 1_000,
  rows: 3,
  requests: 2,
  differences: { missing: 0, stale: 1, extra: 0 },
  unsettled: 0,
  ignored: 0,
  moved: 0,
  repaired: 0,
  incomplete: null,
  error: null,
  found: [],
}

const request = { holder: 'one', actor: 'ana', ttlMs: 3_600_000, at: START }

/** Commits like a repair whose records were read now. */
async function repair(driver: SyncDriver, landings: readonly Landing[], verification = 7) {
  const readAtSequence = await driver.store.headSequence()
  return await driver.send(
    await driver.draft({ kind: 'repair', actor: 'ana', reason: 'because', verification }, landings, {
      listing: {
        settledSequence: readAtSequence,
        lookupAnswers: { database: DATABASE, confirmed: landings.map(({ key }) => key), refuted: [] },
      },
    }),
  )
}

export const verificationCases: readonly StoreCase[] = [
  rule('a verification is recorded once by its holder, and the audit log has it', async ({ store, reopen }) => {
    const claim = required(await store.beginVerification(DATABASE, request), 'claim')
    assert.equal(await store.beginVerification(DATABASE, { ...request, holder: 'two' }), null)
    assert.deepEqual(await store.lastVerifications(), [])
    assert.deepEqual(await store.verifications({ limit: 5 }), [
      { id: 1, database: DATABASE, actor: 'ana', startedAt: START, heldBy: 'one', report: null },
    ])
    assert.equal(await store.renewVerification(claim, { ttlMs: 3_600_000, at: START }), true)
    assert.equal(await store.endVerification(claim, REPORT), true)
    assert.equal(await store.endVerification(claim, REPORT), false)
    const other = await reopen()
    const stored = { id: 1, database: DATABASE, actor: 'ana', startedAt: START, heldBy: null, report: REPORT }
    assert.deepEqual(await other.lastVerifications(), [stored])
    const { entries } = await other.auditChain({ before: Number.MAX_SAFE_INTEGER, limit: 1 })
    assert.deepEqual(
      entries.map(({ action, actor, reason }) => ({ action, actor, reason })),
      [
        {
          action: 'verify',
          actor: 'ana',
          reason: `verification 1 of ${DATABASE}: 1 stale; 3 rows by listing, 2 requests`,
        },
      ],
    )
  }),
  rule('the last verification of a database is the last one without an error', async ({ store }) => {
    const end = async (database: string, report: Partial<VerificationReport>) => {
      const claim = required(await store.beginVerification(database, request), 'claim')
      assert.equal(await store.endVerification(claim, { ...REPORT, ...report }), true)
      return claim.id
    }
    const good = await end(DATABASE, {})
    await end(DATABASE, { error: { code: 'SOURCE_UNAVAILABLE', message: 'down' } })
    const other = await end('others', {})
    assert.deepEqual(
      (await store.lastVerifications()).map(({ id, database }) => [id, database]),
      [
        [other, 'others'],
        [good, DATABASE],
      ],
    )
    assert.deepEqual(
      (await store.verifications({ database: DATABASE, limit: 1, ended: true })).map(({ id }) => id),
      [2],
    )
  }),
  rule('the holder of a verification that was taken over can no longer record its result', async ({ store }) => {
    const first = required(await store.beginVerification(DATABASE, request), 'claim')
    const second = await store.beginVerification(DATABASE, { ...request, holder: 'two', evictHolder: 'one' })
    assert.equal(required(second, 'claim').id, first.id + 1)
    assert.equal(await store.renewVerification(first, { ttlMs: 1, at: START }), false)
    assert.equal(await store.endVerification(first, REPORT), false)
  }),
  rule('invariant 10: a tenant sees only its own verifications', async ({ store }) => {
    const other: Store = store.forTenant('other')
    const claim = required(await store.beginVerification(DATABASE, request), 'claim')
    assert.deepEqual(await other.verifications({ limit: 5 }), [])
    assert.equal(await other.endVerification(claim, REPORT), false)
    assert.equal(required(await other.beginVerification(DATABASE, request), 'claim').id, 1)
  }),
  rule('invariant 1: a repair lands its rows and moves no checkpoint', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 1 }, { at: 5 })])
    await driver.begin()
    await driver.page([upsert('a', { n: 1 }, { at: 5 })])
    const before = await store.readCheckpoint(driver.ref)
    const outcome = await repair(driver, [upsert('a', { n: 2 }, { at: 5 }), remove('b'), upsert('c', { n: 1 })])
    assert.deepEqual(outcome.kind === 'landed' && outcome.counts, counts({ created: 1, updated: 1, deleted: 1 }))
    assert.deepEqual(await store.readCheckpoint(driver.ref), before)
    assert.deepEqual(
      (await readFeed(store)).slice(-3).map(({ key, action, cycle, page }) => [key, action, cycle, page]),
      [
        ['a', 'updated', 0, 7],
        ['b', 'deleted', 0, 7],
        ['c', 'created', 0, 7],
      ],
    )
    // Invariant 5: the unfinished cycle has not seen the row that the repair wrote.
    await driver.complete([])
    assert.deepEqual(await readLiveRows(store), [
      ['a', { n: 2 }],
      ['c', { n: 1 }],
    ])
  }),
  rule(
    'a repair wins over a later time and over a deletion that were committed before it was read',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 9 }, { at: 9 }), upsert('b', { n: 9 }, { at: 9 })])
      await driver.cycle([remove('b', { at: 9 })])
      const outcome = await repair(driver, [upsert('a', { n: 1 }, { at: 5 }), upsert('b', { n: 9 }, { at: 9 })])
      assert.deepEqual(outcome.kind === 'landed' && outcome.counts, counts({ created: 1, updated: 1 }))
      assert.deepEqual(await readLiveRows(store), [
        ['a', { n: 1 }],
        ['b', { n: 9 }],
      ])
    },
  ),
  rule('invariant 6: a repair never overwrites a row that another sync wrote while it was read', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    const readAtSequence = await store.headSequence()
    const other = await SyncDriver.acquire(store, { sync: 'other' })
    await other.cycle([upsert('a', { n: 2 })])
    const outcome = await driver.send(
      await driver.draft(
        { kind: 'repair', actor: 'ana', reason: 'because', verification: 1 },
        [upsert('a', { n: 1, old: true })],
        {
          readAtSequence,
          listing: {
            settledSequence: readAtSequence,
            lookupAnswers: { database: DATABASE, confirmed: ['a'], refuted: [] },
          },
        },
      ),
    )
    assert.deepEqual(outcome, { kind: 'overlap', keys: ['a'] })
    assert.deepEqual(await readLiveRows(store), [['a', { n: 2 }]])
  }),
  rule('invariant 3: a repair under an old lease is fenced off', async ({ store }) => {
    const old = await SyncDriver.acquire(store)
    await SyncDriver.acquire(store, { holder: 'runner-2', evict: 'runner-1' })
    assert.deepEqual(await repair(old, [upsert('a', { n: 1 })]), { kind: 'fenced' })
  }),
]
