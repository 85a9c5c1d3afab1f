import assert from 'node:assert/strict'
import type { Store } from '../../contract/index.ts'
import { verifyAuditChain } from '../../registry/verify-audit-chain.ts'
import { churn, runChurn } from './churn.ts'
import {
  seededRandom,
  readFeed,
  readLiveRows,
  makeQuarantined,
  readSnapshot,
  START,
  type StoreCase,
  SyncDriver,
  upsert,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

export const tenantCases: readonly StoreCase[] = [
  rule('R44 a store is bound to its tenant, and another tenant finds nothing of it', async ({ store }) => {
    const other = store.forTenant('acme')
    assert.equal(other.tenant, 'acme')
    assert.notEqual(store.tenant, 'acme')
    const driver = await SyncDriver.acquire(store)
    const empty = await readSnapshot(other)
    await driver.cycle([upsert('a', { n: 1 })], {
      quarantined: [{ database: 'things', key: 'q', code: 'RECORD_INVALID', message: '', text: '' }],
    })
    assert.deepEqual(await readSnapshot(other), empty)
    assert.equal(await other.row('things', 'a'), null)
    assert.deepEqual(await other.history('things', 'a'), [])
    assert.deepEqual(await other.readCheckpoint(driver.ref), {
      ...(await other.readCheckpoint({ worker: 'never', sync: 'ran' })),
    })
  }),
  rule('R33 R44 two tenants have their own sequences, leases and rows under the same names', async ({ store }) => {
    const [ours, theirs] = [await SyncDriver.acquire(store), await SyncDriver.acquire(store.forTenant('acme'))]
    await ours.cycle([upsert('a', { of: 'us' }), upsert('b', { of: 'us' })])
    assert.equal((await theirs.cycle([upsert('a', { of: 'them' })])).headSequence, 1)
    assert.deepEqual(await readLiveRows(store), [
      ['a', { of: 'us' }],
      ['b', { of: 'us' }],
    ])
    assert.deepEqual(await readLiveRows(store.forTenant('acme')), [['a', { of: 'them' }]])
    assert.deepEqual(
      (await readFeed(store)).map(({ sequence }) => sequence),
      [1, 2],
    )
    assert.deepEqual(
      (await readFeed(store.forTenant('acme'))).map(({ sequence }) => sequence),
      [1],
    )
  }),
  rule('invariant 10: a lease of one tenant is invalid in another', async ({ store }) => {
    const other = store.forTenant('acme')
    const driver = await SyncDriver.acquire(store)
    const native = await SyncDriver.acquire(other, { holder: 'runner-2' })
    await driver.begin()
    await native.begin()
    const before = await readSnapshot(other)
    assert.deepEqual(await other.commit(await driver.draft(driver.nextPage(), [upsert('a', { n: 1 })])), {
      kind: 'fenced',
    })
    assert.equal(await other.renew(driver.lease, { ttlMs: 1, at: START }), false)
    await other.release(driver.lease)
    assert.deepEqual(await readSnapshot(other), before)
  }),
  rule(
    'Z14 every tenant with stored data is listed by its name, whichever tenant the store is bound to',
    async ({ store }) => {
      for (const tenant of ['zeta', 'acme']) await SyncDriver.acquire(store.forTenant(tenant))
      await store
        .forTenant('keys')
        .addApiKey({ id: 'k', name: '', hash: '', scopes: [], rateLimit: 1, createdAt: START, endsAt: null })
      const names = (await store.tenants()).filter((name) => name !== store.tenant)
      assert.deepEqual(names, ['acme', 'keys', 'zeta'])
      assert.deepEqual(
        (await store.forTenant('acme').tenants()).filter((name) => name !== store.tenant),
        names,
      )
    },
  ),
  rule(
    'Z14 erasing a tenant removes all of its data, affects no other, and begins a new audit log that records the actor',
    async ({ store, reopen }) => {
      const [acme, other] = [store.forTenant('acme'), store.forTenant('other')]
      for (const tenant of [acme, other]) await fillTenant(tenant)
      const [untouched, keys] = [await readSnapshot(other), await other.dataKeys()]
      const position = await acme.headSequence()
      const erased = await acme.eraseTenant({ actor: 'ana', at: START })
      assert.equal(erased.kind, 'erased')
      assert.ok(erased.kind === 'erased' && erased.syncs === 1 && erased.entries > 5)
      for (const seen of [acme, (await reopen()).forTenant('acme')]) {
        assert.deepEqual(await readSnapshot(seen), {
          position,
          feed: [],
          databases: [],
          rows: [],
          quarantined: [],
          checkpoints: [],
          cycles: [],
        })
        assert.deepEqual(
          [
            await seen.dataKeys(),
            await seen.apiKeys(),
            await seen.webhooks(),
            await seen.deliveries({ webhook: 'w', failed: false, limit: 9 }),
          ],
          [[], [], [], []],
        )
        assert.deepEqual(await seen.lastSlotTimes('crm'), {})
        assert.equal(await seen.apiKey('key-acme'), null)
        const { entries } = await seen.auditChain({ after: 0, limit: 9 })
        assert.deepEqual(
          entries.map(({ action, actor, sync }) => [action, actor, sync]),
          [['erase', 'ana', null]],
        )
        assert.equal((await verifyAuditChain(seen)).intact, true)
      }
      // A reader that continues from an old sequence learns that the data is gone.
      assert.equal((await acme.feed({ after: 0, limit: 1, scanMax: 1 })).floor, position)
      assert.deepEqual([await readSnapshot(other), await other.dataKeys()], [untouched, keys])
      assert.ok((await store.tenants()).includes('acme'))
      // A second erasure finds nothing, and keeps the record of the first.
      assert.deepEqual(await acme.eraseTenant({ actor: 'eve', at: START }), { ...erased, syncs: 0, entries: 0 })
      assert.equal(required((await acme.auditChain({ after: 0, limit: 9 })).entries[0], 'entries[0]').actor, 'ana')
      // The tenant may be created again, from the start.
      await fillTenant(acme)
      assert.deepEqual(await readLiveRows(acme), [['a', { n: 1 }]])
      assert.equal(await acme.headSequence(), position + 1)
    },
  ),
  rule('Z14 a tenant with a running sync is not erased: nothing changes', async ({ store }) => {
    const driver = await SyncDriver.acquire(store, { ttlMs: 60_000 })
    await driver.cycle([upsert('a', { n: 1 })])
    const before = await readSnapshot(store)
    const refused = await store.eraseTenant({ actor: 'ana', at: START })
    assert.deepEqual(refused.kind === 'held' && [refused.ref, refused.holder], [driver.ref, driver.lease.holder])
    assert.deepEqual(await readSnapshot(store), before)
    await driver.release()
    assert.equal((await store.eraseTenant({ actor: 'ana', at: START })).kind, 'erased')
    assert.deepEqual(
      await store.commit(await driver.draft({ kind: 'set', state: '1', actor: 'late', reason: 'x' }, [])),
      { kind: 'fenced' },
    )
  }),
  rule(
    'Z14 invariant 3: a lease and a claim from before an erasure are invalid after it, even under the same name',
    async ({ store }) => {
      const webhook = {
        id: 'w',
        url: 'https://example.com',
        databases: null,
        actions: null,
        allow: [],
        secrets: 's',
        createdAt: START,
      }
      const claim = { holder: 'h', ttlMs: 60_000, at: START }
      await store.putWebhook(webhook, { sequence: 0, floor: 0 })
      const oldClaim = required(await store.claimWebhook('w', claim), 'the result of claimWebhook')
      const old = await SyncDriver.acquire(store, { ttlMs: 0 })
      await old.begin()
      const page = await old.draft(old.nextPage(), [upsert('a', { n: 1 })])
      const hand = await old.draft({ kind: 'set', state: '1', actor: 'late', reason: 'x' }, [])
      assert.equal((await store.eraseTenant({ actor: 'ana', at: START + 1 })).kind, 'erased')
      assert.deepEqual(await store.commit(page), { kind: 'fenced' })

      const heir = await SyncDriver.acquire(store)
      await heir.begin()
      await store.putWebhook(webhook, { sequence: 0, floor: 0 })
      const newClaim = required(await store.claimWebhook('w', claim), 'the result of claimWebhook')
      assert.equal(heir.lease.holder, old.lease.holder)
      assert.ok(heir.lease.epoch > old.lease.epoch && newClaim.epoch > oldClaim.epoch)
      for (const commit of [page, hand]) assert.deepEqual(await store.commit(commit), { kind: 'fenced' })
      assert.equal(await store.renew(old.lease, { ttlMs: 1, at: START }), false)
      assert.equal(await store.renewWebhook(oldClaim, { ttlMs: 1, at: START }), false)
      await old.release()
      assert.deepEqual(await readLiveRows(store), [])
      await heir.complete([upsert('b', { n: 1 })])
      assert.deepEqual(await readLiveRows(store), [['b', { n: 1 }]])
    },
  ),
  rule(
    'Z14 an automatic run does not recreate an erased tenant; a signal, a key and a manual run do',
    async ({ store }) => {
      const ref = { worker: 'crm', sync: 'delta' }
      const request = { holder: 'runner-1', ttlMs: 60_000, at: START, automatic: true }
      const back: Array<[string, (tenant: Store) => Promise<unknown>]> = [
        ['signal', (tenant) => tenant.signalSync(ref, { kind: 'trigger', actor: 'ana', at: START })],
        [
          'key',
          (tenant) =>
            tenant.addApiKey({
              id: 'new',
              name: '',
              hash: '',
              scopes: [],
              rateLimit: 1,
              createdAt: START,
              endsAt: null,
            }),
        ],
        ['run', async (tenant) => (await SyncDriver.acquire(tenant, { sync: 'other' })).release()],
      ]
      for (const [name, bring] of back) {
        const tenant = store.forTenant(name)
        // A tenant that is merely new to the store is not affected.
        const first = await tenant.acquire(ref, request)
        assert.ok(first.kind === 'acquired')
        await tenant.release(first.lease)
        await tenant.eraseTenant({ actor: 'ana', at: START })
        await assert.rejects(tenant.acquire(ref, request), { code: 'TENANT_ERASED' })
        await assert.rejects(
          tenant.claimInbound({ source: 's', id: 'i' }, { at: START, claimTtlMs: 1, purgeBefore: 0, payload: '{}' }),
          { code: 'TENANT_ERASED' },
        )
        assert.deepEqual(await tenant.pendingInbound({ source: 's', before: START, limit: 9 }), [])
        assert.deepEqual(
          [await tenant.syncs(), (await tenant.auditChain({ after: 0, limit: 9 })).entries.map(({ action }) => action)],
          [[], ['erase']],
        )
        await bring(tenant)
        assert.equal((await tenant.acquire(ref, request)).kind, 'acquired')
      }
    },
  ),
  ...[1, 2].map((seed) =>
    rule(
      `Z13 two tenants that run concurrently each equal their own solo run (seed ${seed})`,
      async ({ store }, open) => {
        const tenants = ['acme', 'Acme'].map((name, n) => ({ name, seed: seed * 10 + n }))
        const works = tenants.map((tenant) => churn(store.forTenant(tenant.name), tenant.seed, 70))
        const random = seededRandom(seed)
        for (let running = works; running.length > 0;) {
          const work = required(running[Math.floor(random() * running.length)], 'running[…]')
          if ((await work.next()).done === true) running = running.filter((other) => other !== work)
        }
        for (const { name, seed: own } of tenants) {
          const solo = (await open()).store.forTenant(name)
          await runChurn(solo, own, 70)
          assert.deepEqual(await readComparable(store.forTenant(name)), await readComparable(solo), `tenant ${name}`)
        }
      },
    ),
  ),
]

/** Writes data of every kind. */
async function fillTenant(store: Store): Promise<void> {
  await store.addApiKey({
    id: `key-${store.tenant}`,
    name: '',
    hash: '',
    scopes: [],
    rateLimit: 1,
    createdAt: START,
    endsAt: null,
  })
  await store.cursorSecrets({ secret: 's', createdAt: START, rotateAfterMs: 1, retainMs: 1 })
  await store.putWebhook(
    { id: 'w', url: 'https://example.com', databases: null, actions: null, allow: [], secrets: 's', createdAt: START },
    { sequence: 0, floor: 0 },
  )
  await store.recordDeliveries(
    required(await store.claimWebhook('w', { holder: 'h', ttlMs: 1, at: START }), 'the result of claimWebhook'),
    {
      progress: {
        sequence: 1,
        floor: 0,
        failureStreak: 0,
        retryAt: null,
        succeededAt: null,
        failedAt: null,
        lastStatus: null,
        lastResponse: null,
        disabledReason: null,
      },
      delivered: [],
      undelivered: [
        {
          sequence: 1,
          messageId: 'm',
          database: 'd',
          key: 'k',
          body: '',
          attempts: 0,
          firstAt: null,
          nextAt: START,
          failed: false,
          lastStatus: null,
          lastResponse: null,
        },
      ],
    },
  )
  await store.takeSlots({ worker: 'crm', pacer: 'api', count: 1, paceMs: 1, at: START })
  await store.recordPause({
    worker: 'crm',
    pacers: ['api'],
    origin: 'https://api.example.com',
    ms: 3_600_000,
    at: START,
  })
  await store.claimInbound({ source: 's', id: 'i' }, { at: START, claimTtlMs: 1, purgeBefore: 0 })
  const driver = await SyncDriver.acquire(store, { mode: 'replace' })
  await driver.begin()
  await driver.page([upsert('a', { n: 1 })], { quarantined: [makeQuarantined('q')] })
  await driver.page([upsert('a', { n: 1 })])
  await driver.release()
  // A store may have created one on its own.
  if ((await store.dataKeys()).length === 0)
    await store.putDataKey({ id: 'd1', wrappedBy: 'k1', wrapped: 'x' }, { actor: 'ana', at: START })
}

/** Numbers that a store assigns across tenants are replaced by their rank; the store's own clock is left out. */
async function readComparable(store: Store): Promise<unknown> {
  const cycles = (await store.cycles(null, { limit: 10_000 })).map(({ cycle }) => cycle).toReversed()
  const names: Record<string, (value: unknown) => unknown> = {
    cycle: (value) => (value === null ? null : cycles.indexOf(value as number)),
    committedBy: (value) => (value === null ? null : cycles.indexOf(value as number)),
    id: () => 0,
    committedAt: () => 0,
    heldSince: () => 0,
    heldUntil: () => 0,
    table: () => '',
    history: () => '',
  }
  return JSON.parse(
    JSON.stringify(await readSnapshot(store), (name, value: unknown) =>
      Object.hasOwn(names, name) ? required(names[name], 'names[name]')(value) : value,
    ),
  )
}
