import assert from 'node:assert/strict'
import type { StateTransition, StateText } from '../../contract/index.ts'
import { expectLanded, rule, START, type StoreCase, SyncDriver, upsert } from './harness.ts'
import { required } from '../../values/required.ts'

const DELTA = { worker: 'crm', sync: 'delta' }
const BACKFILL = { worker: 'crm', sync: 'delta-backfill' }

/** Backfill requests: durable, in one transaction with the state they replace, and fulfilled only by a backfill. */
export const backfillCases: readonly StoreCase[] = [
  rule(
    'XC32 dropping the state and requesting the backfill are one transaction, also for a backfill that never ran',
    async ({ store, reopen }) => {
      const delta = await SyncDriver.acquire(store)
      await delta.cycle([upsert('a', { n: 1 })], { state: '"place"' })
      expectLanded(await delta.send(await delta.draft(orderBackfill(), [])))
      const other = await reopen()
      const { committed, inflight, backfillNeeded } = await other.readCheckpoint(DELTA)
      assert.deepEqual(
        { committed, inflight, backfillNeeded },
        { committed: null, inflight: null, backfillNeeded: null },
      )
      const need = required((await other.readCheckpoint(BACKFILL)).backfillNeeded, 'backfillNeeded')
      assert.deepEqual({ ...need, since: need.since > START }, { since: true, reason: 'events are gone', cycle: null })
      const { syncs } = await other.listSyncStatus({ at: START, recent: 1 })
      assert.deepEqual(syncs.find(({ sync }) => sync === BACKFILL.sync)?.checkpoint.backfillNeeded, need)
    },
  ),
  rule('XC32 a commit that is refused requests nothing', async ({ store }) => {
    const zombie = await SyncDriver.acquire(store)
    const delta = await SyncDriver.acquire(store, { holder: 'runner-2', evict: 'runner-1' })
    assert.equal((await store.commit(await zombie.draft(orderBackfill(), []))).kind, 'fenced')
    assert.equal((await store.commit({ ...(await delta.draft(orderBackfill(), [])), version: 7 })).kind, 'conflict')
    assert.equal((await store.readCheckpoint(BACKFILL)).backfillNeeded, null)
    assert.deepEqual(await store.syncs(), [DELTA])
  }),
  rule('XC32 only a complete backfill that began after the request fulfils it', async ({ store }) => {
    const backfill = await SyncDriver.acquire(store, { ...BACKFILL, mode: 'replace' })
    const {
      inflight: { cycle },
    } = await backfill.begin()
    const delta = await SyncDriver.acquire(store)
    expectLanded(await delta.send(await delta.draft(orderBackfill(), [])))
    const need = required((await store.readCheckpoint(BACKFILL)).backfillNeeded, 'backfillNeeded')
    assert.equal(need.cycle, cycle)
    // The running cycle may have read rows before the changes that were lost.
    await backfill.complete([upsert('a', { n: 1 })])
    await backfill.release({ cycle, stopReason: 'complete' })
    assert.deepEqual((await store.readCheckpoint(BACKFILL)).backfillNeeded, need)

    const second = await SyncDriver.acquire(store, { ...BACKFILL, mode: 'replace' })
    await second.begin()
    await second.page([upsert('a', { n: 1 })])
    await second.release({ stopReason: 'error', error: { code: 'SOURCE_TIMEOUT', message: 'no answer' } })
    assert.deepEqual((await store.readCheckpoint(BACKFILL)).backfillNeeded, need)
    await store.signalSync(BACKFILL, { kind: 'trigger', actor: 'ana', at: START })
    const third = await SyncDriver.acquire(store, { ...BACKFILL, mode: 'replace' })
    await third.begin()
    assert.deepEqual((await store.readCheckpoint(BACKFILL)).backfillNeeded, need)
    await third.complete([])
    assert.equal((await store.readCheckpoint(BACKFILL)).backfillNeeded, null)
  }),
  rule(
    'XC32 a second request keeps the time of the first and does not accept the cycle that began between them',
    async ({ store }) => {
      const delta = await SyncDriver.acquire(store)
      expectLanded(await delta.send(await delta.draft(orderBackfill(), [])))
      const { since } = required((await store.readCheckpoint(BACKFILL)).backfillNeeded, 'backfillNeeded')
      const backfill = await SyncDriver.acquire(store, { ...BACKFILL, mode: 'replace' })
      const {
        inflight: { cycle },
      } = await backfill.begin()
      expectLanded(await delta.send(await delta.draft(orderBackfill('lost again'), [])))
      assert.deepEqual((await store.readCheckpoint(BACKFILL)).backfillNeeded, { since, reason: 'lost again', cycle })
      await backfill.complete([])
      assert.notEqual((await store.readCheckpoint(BACKFILL)).backfillNeeded, null)
    },
  ),
  rule(
    'a sync is complete since its last complete cycle began, or since the time given with its state',
    async ({ store }) => {
      const delta = await SyncDriver.acquire(store)
      assert.equal((await store.readCheckpoint(DELTA)).completeSince, null)
      expectLanded(
        await delta.send(
          await delta.draft({ ...orderBackfill(), state: '"anchor"', completeSince: START - 5 } as StateTransition, []),
        ),
      )
      assert.equal((await store.readCheckpoint(DELTA)).completeSince, START - 5)
      const {
        inflight: { startedAt },
      } = await delta.begin()
      await delta.page([])
      assert.equal((await store.readCheckpoint(DELTA)).completeSince, START - 5)
      await delta.complete([], { state: '"next"' })
      assert.equal((await store.readCheckpoint(DELTA)).completeSince, startedAt)
      await delta.set('"by hand"')
      assert.equal((await store.readCheckpoint(DELTA)).completeSince, startedAt)
    },
  ),
]

function orderBackfill(reason = 'events are gone', state: StateText = null): StateTransition {
  return { kind: 'set', state, actor: 'engine', reason, backfillRequest: { sync: BACKFILL.sync, reason } }
}
