import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Checkpoint, CheckpointSummary, SyncStatusRow, Store, SyncRef } from '../../contract/index.ts'
import { rule, START, type StoreCase, SyncDriver, upsert } from './harness.ts'
import { required } from '../../values/required.ts'

export const syncStatusCases: readonly StoreCase[] = [
  rule(
    'the status of all syncs is read at once, equals that of each one, and has the requested number of cycles',
    async ({ store }) => {
      assert.deepEqual((await store.listSyncStatus({ at: START, recent: 2 })).syncs, [])
      for (const sync of ['a', 'b']) {
        const driver = await SyncDriver.acquire(store, { sync })
        for (let n = 0; n < 3; n++) await driver.cycle([upsert(`${sync}${n}`, { n })])
        await driver.begin()
        await driver.page([upsert(sync, { n: 1 })], { tidemark: '2026-01-01T00:00:00.000000Z' })
        if (sync === 'a')
          await driver.release({
            stopReason: 'error',
            error: { code: 'SOURCE_TIMEOUT', message: 'no answer' },
            retryAt: START + 60_000,
          })
      }
      await store.signalSync({ worker: 'crm', sync: 'c' }, { kind: 'pause', actor: 'ana', at: START })
      await store.signalSync({ worker: 'crm', sync: 'c' }, { kind: 'trigger', actor: 'ana', at: START + 1 })
      const { syncs } = await store.listSyncStatus({ at: START, recent: 2 })
      assert.deepEqual(syncs.map(({ sync }) => sync).toSorted(), ['a', 'b', 'c'])
      for (const status of syncs) {
        const { worker, sync } = status
        assert.deepEqual(status, {
          worker,
          sync,
          checkpoint: outlineOf(await store.readCheckpoint({ worker, sync })),
          recent: await store.cycles({ worker, sync }, { limit: 2 }),
        })
        assert.deepEqual((await store.listSyncStatus({ at: START, recent: 2, ref: { worker, sync } })).syncs, [status])
      }
      assert.deepEqual(
        (await store.listSyncStatus({ at: START, recent: 1, ref: { worker: 'crm', sync: 'd' } })).syncs,
        [],
      )
    },
  ),
  rule('any change of a sync since the mark is reported, from any process', async ({ store, reopen }) => {
    const other = await reopen()
    const watch = new SyncStatusWatcher(store)
    const moves: Array<(driver: SyncDriver) => Promise<unknown>> = [
      (driver) => driver.begin(),
      (driver) => driver.page([upsert('a', { n: 1 })]),
      (driver) => driver.store.renew(driver.lease, { ttlMs: 9_000_000, at: START }),
      (driver) => driver.store.signalSync(driver.ref, { kind: 'pause', actor: 'ana', at: START }),
      (driver) => driver.store.signalSync(driver.ref, { kind: 'resume', actor: 'ana', at: START }),
      (driver) => driver.store.signalSync(driver.ref, { kind: 'trigger', actor: 'ana', at: START }),
      (driver) => driver.complete([]),
      (driver) => driver.set('"by hand"'),
      (driver) => driver.release({ stopReason: 'cancelled' }),
    ]
    for (const by of [store, other]) {
      const driver = await SyncDriver.acquire(by, { sync: by === store ? 'here' : 'there' })
      await watch.expectCurrent(driver.ref)
      for (const move of moves) {
        await move(driver)
        await watch.expectCurrent(driver.ref)
      }
    }
    const { now, changeToken: mark } = await store.listSyncStatus({ at: START, recent: 1 })
    assert.ok(Number.isFinite(now) && typeof mark === 'string')
  }),
  rule('XB2 repeated reads while others write miss no change', async ({ store, reopen }) => {
    const refs = Array.from({ length: 6 }, (_, i) => ({ worker: 'crm', sync: `s${i}` }))
    const writers = [await reopen(), await reopen()]
    const watch = new SyncStatusWatcher(store)
    const writing = new Set(writers)
    const written = Promise.all(
      writers.map(async (writer, w) => {
        for (let n = 0; n < 40; n++)
          await writer.signalSync(required(refs[(n * (w + 1)) % refs.length], 'refs[…]'), {
            kind: 'trigger',
            actor: 'ana',
            at: START + 2 * n + w,
          })
        writing.delete(writer)
      }),
    )
    while (writing.size > 0) await watch.poll()
    await written
    for (const ref of refs) await watch.expectCurrent(ref)
  }),
  rule('the sync status of a tenant is its own', async ({ store }) => {
    await SyncDriver.acquire(store)
    assert.deepEqual((await store.forTenant('another').listSyncStatus({ at: START, recent: 1 })).syncs, [])
  }),
  rule(
    'a signal and a released lease are notified at once, to the listeners of that tenant',
    async ({ store, reopen }) => {
      const heard: string[] = []
      let live = false
      const listening = store.subscribe({
        tenants: [store.tenant],
        onChange: (tenant) => heard.push(tenant),
        onConnected: (is) => (live = is),
      })
      try {
        await waitUntil('the listener to be connected', () => live)
        const other = await reopen()
        const driver = await SyncDriver.acquire(other.forTenant('second'))
        listening.addTenant('second')
        await other.forTenant('stranger').signalSync(driver.ref, { kind: 'trigger', actor: 'ana', at: START })
        for (const [told, act] of [
          [store.tenant, () => other.signalSync(driver.ref, { kind: 'trigger', actor: 'ana', at: START })],
          [store.tenant, () => other.signalSync(driver.ref, { kind: 'resume', actor: 'ana', at: START })],
          ['second', () => driver.release()],
        ] as const) {
          assert.deepEqual(heard.splice(0), [])
          await act()
          await waitUntil('the notification', () => heard.length > 0)
          assert.deepEqual(heard, [told])
          heard.length = 0
        }
      } finally {
        await listening.close()
      }
    },
    { needs: 'notifies' },
  ),
]

/** Caches the reported status, as a runner does, and compares it with the store. */
class SyncStatusWatcher {
  readonly #store: Store
  readonly #known = new Map<string, SyncStatusRow>()
  #mark: string | undefined

  constructor(store: Store) {
    this.#store = store
  }

  async poll(): Promise<void> {
    const { changeToken: mark, syncs } = await this.#store.listSyncStatus({
      at: START,
      recent: 1,
      ...(this.#mark !== undefined && { changedSince: this.#mark }),
    })
    this.#mark = mark
    for (const status of syncs) this.#known.set(status.sync, status)
  }

  async expectCurrent(ref: SyncRef): Promise<void> {
    await this.poll()
    const { checkpoint, recent } = required(this.#known.get(ref.sync), 'an entry of known')
    assert.deepEqual(
      { checkpoint, recent },
      {
        checkpoint: outlineOf(await this.#store.readCheckpoint(ref)),
        recent: await this.#store.cycles(ref, { limit: 1 }),
      },
    )
  }
}

function outlineOf(checkpoint: Checkpoint): CheckpointSummary {
  const {
    version,
    tidemark,
    paused,
    triggeredAt,
    failures,
    lastError,
    retryAt,
    lastSuccessAt,
    completeSince,
    backfillNeeded,
    heldBy,
    heldSince,
    heldUntil,
    inflight,
  } = checkpoint
  const unfinished =
    inflight === null ? null : { cycle: inflight.cycle, page: inflight.page, startedAt: inflight.startedAt }
  return {
    version,
    tidemark,
    paused,
    triggeredAt,
    failures,
    lastError,
    retryAt,
    lastSuccessAt,
    completeSince,
    backfillNeeded,
    heldBy,
    heldSince,
    heldUntil,
    inflight: unfinished,
  }
}

async function waitUntil(what: string, condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    assert.ok(tries < 500, `timed out waiting for ${what}`)
    await sleep(20)
  }
}
