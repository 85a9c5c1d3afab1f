import assert from 'node:assert/strict'
import { verifyAuditChain } from '../../registry/verify-audit-chain.ts'
import { rule, START, SyncDriver, upsert, type StoreCase } from './harness.ts'
import { required } from '../../values/required.ts'

export const auditChainCases: readonly StoreCase[] = [
  rule(
    'R51 Z22 every checkpoint version is a link of one hash chain per tenant, which can be verified from the start to the head',
    async ({ store }) => {
      assert.deepEqual(await store.auditChain({ after: 0, limit: 10 }), { entries: [], head: '', count: 0 })
      const driver = await SyncDriver.acquire(store)
      await driver.cycle([upsert('a', { n: 1 })])
      await driver.set('"by hand"')
      const other = await SyncDriver.acquire(store, { worker: 'other', sync: 'thing' })
      await other.cycle([upsert('b', { n: 1 })])
      await store.signalSync(driver.ref, { kind: 'pause', actor: 'ana', at: START })
      const trail = await store.auditChain({ after: 0, limit: 10 })
      // A store may create keys on its own; they belong to no sync.
      const ofSyncs = trail.entries.filter(({ sync }) => sync !== null)
      assert.deepEqual(
        ofSyncs.map(({ worker, sync, action, version }) => [worker, sync, action, version]),
        [
          [driver.ref.worker, driver.ref.sync, 'complete', 1],
          [driver.ref.worker, driver.ref.sync, 'set', 2],
          ['other', 'thing', 'complete', 1],
          [driver.ref.worker, driver.ref.sync, 'pause', 2],
        ],
      )
      assert.equal(trail.head, required(trail.entries.at(-1), 'an entry of trail.entries').hash)
      assert.equal(trail.count, trail.entries.length)
      assert.deepEqual(await verifyAuditChain(store), {
        intact: true,
        entries: trail.count,
        head: trail.head,
        brokenAt: null,
        holdsExpected: null,
        states: [],
      })
      assert.equal((await verifyAuditChain(store, required(trail.entries[1], 'trail.entries[1]').hash)).intact, true)
      assert.equal((await verifyAuditChain(store, 'ff'.repeat(32))).intact, false)
    },
  ),
  rule(
    'the audit log can also be read from its end, newest first, page by page, with the same entries',
    async ({ store }) => {
      const driver = await SyncDriver.acquire(store)
      for (let n = 0; n < 5; n++) await driver.cycle([upsert('a', { n })])
      await (await SyncDriver.acquire(store.forTenant('another'))).cycle([upsert('a', { n: 1 })])
      const whole = await store.auditChain({ after: 0, limit: 100 })
      const newest = await store.auditChain({ before: Number.MAX_SAFE_INTEGER, limit: 2 })
      assert.deepEqual(newest, { ...whole, entries: whole.entries.toReversed().slice(0, 2) })
      const older = await store.auditChain({ before: required(newest.entries[1], 'newest.entries[1]').id, limit: 100 })
      assert.deepEqual(older.entries, whole.entries.toReversed().slice(2))
    },
  ),
  rule('Z21 an audit entry records the actor, the lease, the cycle, the version and the reason', async ({ store }) => {
    const driver = await SyncDriver.acquire(store)
    const {
      inflight: { cycle },
    } = await driver.begin()
    await driver.complete([])
    await driver.set('"x"', 'ana', 'a try\nwith "quotes" and \u00e9')
    const { entries } = await store.auditChain({ after: 0, limit: 10 })
    const [complete, set] = entries.filter(({ sync }) => sync !== null)
    assert.deepEqual(
      [
        required(complete, 'complete').epoch,
        required(complete, 'complete').cycle,
        required(complete, 'complete').version,
        required(complete, 'complete').actor,
      ],
      [driver.lease.epoch, cycle, 1, 'engine'],
    )
    assert.deepEqual(
      [
        required(set, 'set').epoch,
        required(set, 'set').version,
        required(set, 'set').actor,
        required(set, 'set').reason,
      ],
      [driver.lease.epoch, 2, 'ana', 'a try\nwith "quotes" and \u00e9'],
    )
    assert.equal((await verifyAuditChain(store)).intact, true)
  }),
  rule('Z22 the audit logs of two tenants are two chains', async ({ store }) => {
    const other = store.forTenant('another')
    const mine = await SyncDriver.acquire(store)
    await mine.cycle([upsert('a', { n: 1 })])
    const theirs = await SyncDriver.acquire(other)
    await theirs.cycle([upsert('a', { n: 1 })])
    await mine.cycle([upsert('a', { n: 2 })])
    const ofSyncs = async (on: typeof store): Promise<number> =>
      (await on.auditChain({ after: 0, limit: 10 })).entries.filter(({ sync }) => sync !== null).length
    assert.deepEqual([await ofSyncs(store), await ofSyncs(other)], [2, 1])
    assert.equal((await verifyAuditChain(store)).intact && (await verifyAuditChain(other)).intact, true)
  }),
  rule('Z22 the chain stays valid when two connections update checkpoints concurrently', async ({ store, reopen }) => {
    const second = await reopen()
    const run = async (on: typeof store, sync: string): Promise<void> => {
      const driver = await SyncDriver.acquire(on, { worker: 'w', sync })
      for (let n = 0; n < 10; n++) await driver.cycle([upsert(`${sync}${n}`, { n })])
    }
    await Promise.all([run(store, 'a'), run(second, 'b')])
    const { entries } = await store.auditChain({ after: 0, limit: 100 })
    assert.equal(entries.filter(({ sync }) => sync !== null).length, 20)
    assert.equal((await verifyAuditChain(store)).intact, true)
  }),
  rule(
    'Z3 data keys are stored in order, wrapped, each once; rewrapped only from the key that is named; and each change is in the audit log',
    async ({ store }) => {
      const by = { actor: 'ana', at: START }
      assert.equal(await store.putDataKey({ id: 'd2', wrappedBy: 'k1', wrapped: 'first' }, by), true)
      assert.equal(await store.putDataKey({ id: 'd1', wrappedBy: 'k1', wrapped: 'second' }, by), true)
      assert.equal(await store.putDataKey({ id: 'd1', wrappedBy: 'k9', wrapped: 'again' }, by), false)
      assert.equal(
        await store.putDataKey({ id: 'd2', wrappedBy: 'k2', wrapped: 'rewrapped' }, { ...by, replaces: 'k0' }),
        false,
      )
      assert.equal(
        await store.putDataKey({ id: 'd2', wrappedBy: 'k2', wrapped: 'rewrapped' }, { ...by, replaces: 'k1' }),
        true,
      )
      assert.deepEqual(await store.dataKeys(), [
        { id: 'd2', wrappedBy: 'k2', wrapped: 'rewrapped' },
        { id: 'd1', wrappedBy: 'k1', wrapped: 'second' },
      ])
      assert.deepEqual(await store.forTenant('another').dataKeys(), [])
      const { entries } = await store.auditChain({ after: 0, limit: 10 })
      assert.deepEqual(
        entries.map(({ worker, sync, action, actor }) => [worker, sync, action, actor]),
        [
          [null, null, 'new-key', 'ana'],
          [null, null, 'new-key', 'ana'],
          [null, null, 'rewrap-key', 'ana'],
        ],
      )
      assert.equal((await verifyAuditChain(store)).intact, true)
    },
  ),
]
