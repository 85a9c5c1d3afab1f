import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseAcquired, AcquireRequest, LeaseHeld, Store, SyncRef } from '../../contract/index.ts'
import {
  readFeed,
  readLiveRows,
  readSnapshot,
  START,
  type StoreCase,
  type StoreHarness,
  SyncDriver,
  upsert,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

const REF = { worker: 'crm', sync: 'delta' }

export const leaseCases: readonly StoreCase[] = [
  rule('XB1 a free sync is acquired, and the next runner learns the holder', async ({ store, supports, reopen }) => {
    const before = Date.now()
    const first = expectAcquired(await acquire(store, 'runner-1', { ttlMs: 60_000 }))
    assert.deepEqual(first.lease.ref, REF)
    assert.equal(first.lease.holder, 'runner-1')
    assert.equal(first.checkpoint.version, 0)

    const second = await acquire(await reopen(), 'runner-2')
    if (second.kind !== 'held') assert.fail('two runners hold one sync')
    assert.equal(second.holder, 'runner-1')
    const until = supports?.ownClock === true ? before + 60_000 : START + 60_000
    assert.ok(second.expiresAt >= until - 1_000 && second.expiresAt <= until + 30_000, `held until ${second.expiresAt}`)

    const checkpoint = await store.readCheckpoint(REF)
    assert.equal(checkpoint.heldBy, 'runner-1')
    assert.equal(checkpoint.heldUntil, second.expiresAt)
  }),
  rule(
    'XB1 of many runners that acquire at once, over two connections, exactly one gets the sync',
    async ({ store, reopen }) => {
      const other = await reopen()
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, n) => acquire(n % 2 === 0 ? store : other, `runner-${n}`)),
      )
      assert.equal(answers.filter((answer) => answer.kind === 'acquired').length, 1)
    },
  ),
  rule('the holder of a lease that acquires again is answered that the sync is held', async ({ store }) => {
    await acquire(store, 'runner-1')
    assert.equal((await acquire(store, 'runner-1')).kind, 'held')
  }),
  rule('an expired lease can be acquired by another runner, with a higher epoch', async (harness) => {
    const first = expectAcquired(await acquire(harness.store, 'runner-1', { ttlMs: 200 }))
    const at = await elapse(harness, 300)
    const second = expectAcquired(await acquire(harness.store, 'runner-2', { at }))
    assert.ok(second.lease.epoch > first.lease.epoch)
    assert.equal((await harness.store.readCheckpoint(REF)).heldBy, 'runner-2')
  }),
  rule(
    'XA11 expiry alone takes nothing away: a late holder can still renew, begin and commit until another acquires',
    async (harness) => {
      const driver = await SyncDriver.acquire(harness.store, { ttlMs: 50 })
      const at = await elapse(harness, 100)
      await driver.begin({ at })
      await driver.page([upsert('a', { n: 1 })], { at })
      assert.equal(await harness.store.renew(driver.lease, { ttlMs: 60_000, at }), true)
      assert.deepEqual(await readLiveRows(harness.store), [['a', { n: 1 }]])
      assert.equal((await acquire(harness.store, 'runner-2', { at })).kind, 'held')
    },
  ),
  rule('a renewed lease is held beyond its first expiry', async (harness) => {
    const first = expectAcquired(await acquire(harness.store, 'runner-1', { ttlMs: 200 }))
    assert.equal(await harness.store.renew(first.lease, { ttlMs: 60_000, at: START + 100 }), true)
    const at = await elapse(harness, 300)
    assert.equal((await acquire(harness.store, 'runner-2', { at })).kind, 'held')
  }),
  rule('a renewal that arrives late or asks for less does not shorten a lease', async (harness) => {
    const { lease } = expectAcquired(await acquire(harness.store, 'runner-1', { ttlMs: 60_000 }))
    assert.equal(await harness.store.renew(lease, { ttlMs: 50, at: START }), true)
    const at = await elapse(harness, 100)
    assert.equal((await acquire(harness.store, 'runner-2', { at })).kind, 'held')
  }),
  rule('a holder known to have crashed is evicted at once; naming another holder evicts none', async ({ store }) => {
    const first = expectAcquired(await acquire(store, 'runner-1'))
    assert.equal((await acquire(store, 'runner-2', { evictHolder: 'runner-7' })).kind, 'held')
    const second = expectAcquired(await acquire(store, 'runner-2', { evictHolder: 'runner-1' }))
    assert.ok(second.lease.epoch > first.lease.epoch)
    assert.equal(await store.renew(first.lease, { ttlMs: 1_000, at: START }), false)
  }),
  rule('the epoch increases with every acquire, also after a release', async ({ store }) => {
    let last = 0
    for (let n = 0; n < 4; n++) {
      const { lease } = expectAcquired(await acquire(store, 'runner-1'))
      assert.ok(lease.epoch > last, `epoch ${lease.epoch} after ${last}`)
      last = lease.epoch
      await store.release(lease)
    }
  }),
  rule('a released sync is free at once, and the released lease is invalid', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    await driver.release()
    const { heldBy, heldUntil } = await store.readCheckpoint(REF)
    assert.deepEqual({ heldBy, heldUntil }, { heldBy: null, heldUntil: null })
    assert.equal(await store.renew(driver.lease, { ttlMs: 1_000, at: START }), false)
    assert.deepEqual(await driver.send(await driver.draft(driver.nextPage(), [upsert('a', { n: 1 })])), {
      kind: 'fenced',
    })
    expectAcquired(await acquire(store, 'runner-2'))
  }),
  rule('XB1 invariant 3: the commit of a stale epoch is fenced and writes nothing', async ({ store, reopen }) => {
    const zombie = await SyncDriver.acquire(store)
    await zombie.begin()
    await zombie.page([upsert('a', { n: 1 })])
    const other = await reopen()
    const heir = await SyncDriver.acquire(other, { holder: 'runner-2', evict: 'runner-1' })
    const before = await readSnapshot(other)
    for (const move of [
      zombie.nextPage(),
      zombie.lastPage(),
      { kind: 'abandon', cycle: required(zombie.inflight, 'zombie.inflight').cycle, page: 2, reason: '' },
      { kind: 'set', state: '1', actor: 'x', reason: '' },
    ] as const) {
      assert.deepEqual(await zombie.send(await zombie.draft(move, [upsert('b', { n: 2 })])), { kind: 'fenced' })
    }
    assert.deepEqual(await readSnapshot(other), before)
    await heir.begin()
    await heir.page([upsert('c', { n: 3 })])
    assert.deepEqual(
      (await readFeed(store)).map(({ key }) => key),
      ['a', 'c'],
    )
  }),
  rule('XA11 a stale epoch cannot begin, renew or release, even under the same holder name', async ({ store }) => {
    const zombie = await SyncDriver.acquire(store)
    await zombie.begin()
    const heir = await SyncDriver.acquire(store, { evict: 'runner-1' })
    const before = await readSnapshot(store)
    assert.equal(
      await store.beginCycle(zombie.lease, {
        at: START,
        mode: 'incremental',
        trigger: 'manual',
        fresh: true,
        databases: ['elsewhere'],
      }),
      null,
    )
    assert.equal(await store.renew(zombie.lease, { ttlMs: 9_000_000, at: START }), false)
    await zombie.release({ stopReason: 'error', error: { code: 'SOURCE_TIMEOUT', message: 'late' } })
    assert.deepEqual(await readSnapshot(store), before)
    assert.equal(await store.renew(heir.lease, { ttlMs: 1_000, at: START }), true)
  }),
  rule('a lease that was never granted is invalid', async ({ store }) => {
    const forged = { ref: REF, holder: 'forged', epoch: 1 }
    assert.equal(await store.renew(forged, { ttlMs: 1_000, at: START }), false)
    assert.equal(
      await store.beginCycle(forged, { at: START, mode: 'replace', trigger: 'manual', fresh: false, databases: [] }),
      null,
    )
    await store.release(forged)
    assert.equal((await store.readCheckpoint(REF)).version, 0)
  }),
  rule('each sync of each worker has a lease of its own', async ({ store }) => {
    for (const ref of [REF, { worker: 'crm', sync: 'backfill' }, { worker: 'billing', sync: 'delta' }]) {
      expectAcquired(await acquire(store, 'runner-1', {}, ref))
    }
  }),
]

async function acquire(
  store: Store,
  holder: string,
  request: Partial<AcquireRequest> = {},
  ref: SyncRef = REF,
): Promise<LeaseAcquired | LeaseHeld> {
  return await store.acquire(ref, { holder, ttlMs: 60_000, at: START, ...request })
}

function expectAcquired(answer: LeaseAcquired | LeaseHeld): LeaseAcquired {
  if (answer.kind !== 'acquired') assert.fail(`the sync should be free, but ${answer.holder} holds it`)
  return answer
}

/** The caller's clock after this many milliseconds; for a store with its own clock the case really waits. */
async function elapse({ supports }: StoreHarness, ms: number): Promise<number> {
  if (supports?.ownClock === true) await sleep(ms)
  return START + ms
}
