import assert from 'node:assert/strict'
import type { Store } from '../../contract/index.ts'
import { churn, runChurn } from './churn.ts'
import { chance, feed, live, snapshot, START, type StoreCase, SyncDriver, upsert, rule } from './harness.ts'

export const tenantCases: readonly StoreCase[] = [
  rule('a store knows its tenant, and another tenant finds nothing of it', async ({ store }) => {
    const other = store.forTenant('acme')
    assert.equal(other.tenant, 'acme')
    assert.notEqual(store.tenant, 'acme')
    const driver = await SyncDriver.take(store)
    const empty = await snapshot(other)
    await driver.cycle([upsert('a', { n: 1 })], { pacers: { api: 1 }, quarantined: [{ database: 'things', key: 'q', code: 'RECORD_INVALID', message: '', text: '' }] })
    assert.deepEqual(await snapshot(other), empty)
    assert.equal(await other.row('things', 'a'), null)
    assert.deepEqual(await other.history('things', 'a'), [])
    assert.deepEqual(await other.read(driver.ref), { ...(await other.read({ worker: 'never', sync: 'ran' })) })
  }),
  rule('two tenants have their own sequences, leases and rows under the same names', async ({ store }) => {
    const [ours, theirs] = [await SyncDriver.take(store), await SyncDriver.take(store.forTenant('acme'))]
    await ours.cycle([upsert('a', { of: 'us' }), upsert('b', { of: 'us' })])
    assert.equal((await theirs.cycle([upsert('a', { of: 'them' })])).position, 1)
    assert.deepEqual(await live(store), [['a', { of: 'us' }], ['b', { of: 'us' }]])
    assert.deepEqual(await live(store.forTenant('acme')), [['a', { of: 'them' }]])
    assert.deepEqual((await feed(store)).map(({ sequence }) => sequence), [1, 2])
    assert.deepEqual((await feed(store.forTenant('acme'))).map(({ sequence }) => sequence), [1])
  }),
  rule('invariant 10: a lease of one tenant is worth nothing in another', async ({ store }) => {
    const other = store.forTenant('acme')
    const driver = await SyncDriver.take(store)
    const native = await SyncDriver.take(other, { holder: 'runner-2' })
    await driver.begin()
    await native.begin()
    const before = await snapshot(other)
    assert.deepEqual(await other.commit(await driver.draft(driver.nextPage(), [upsert('a', { n: 1 })])), { kind: 'fenced' })
    assert.equal(await other.renew(driver.lease, { ttlMs: 1, at: START }), false)
    await other.release(driver.lease)
    assert.deepEqual(await snapshot(other), before)
  }),
  ...[1, 2].map((seed): StoreCase => ({
    name: `Z13 two tenants at work at once each equal their own solo run (seed ${seed})`,
    async run({ store }, open) {
      const tenants = ['acme', 'Acme'].map((name, n) => ({ name, seed: seed * 10 + n }))
      const works = tenants.map((tenant) => churn(store.forTenant(tenant.name), tenant.seed, 70))
      const random = chance(seed)
      for (let running = works; running.length > 0;) {
        const work = running[Math.floor(random() * running.length)]!
        if ((await work.next()).done === true) running = running.filter((other) => other !== work)
      }
      for (const { name, seed: own } of tenants) {
        const solo = (await open()).store.forTenant(name)
        await runChurn(solo, own, 70)
        assert.deepEqual(await comparable(store.forTenant(name)), await comparable(solo), `tenant ${name}`)
      }
    },
  })),
]

/** Numbers that a store gives out across tenants are told by their rank; the store's own clock is left out. */
async function comparable(store: Store): Promise<unknown> {
  const cycles = (await store.cycles(null, { limit: 10_000 })).map(({ cycle }) => cycle).toReversed()
  const names: Record<string, (value: unknown) => unknown> = {
    cycle: (value) => (value === null ? null : cycles.indexOf(value as number)),
    committedBy: (value) => (value === null ? null : cycles.indexOf(value as number)),
    id: () => 0,
    committedAt: () => 0,
    heldUntil: () => 0,
    view: () => '',
  }
  return JSON.parse(JSON.stringify(await snapshot(store), (name, value: unknown) => (Object.hasOwn(names, name) ? names[name]!(value) : value)))
}
