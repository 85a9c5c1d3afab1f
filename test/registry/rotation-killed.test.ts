import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { DataKeys } from '../../src/registry/data-keys.ts'
import { KeyRing, generateMasterKey } from '../../src/registry/key-ring.ts'
import { sealStore } from '../../src/registry/sealed-store.ts'
import { verifyAuditChain } from '../../src/registry/verify-audit-chain.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver } from '../../src/testing/store-cases/harness.ts'

const TENANTS = ['acme', 'beta', 'core', 'delta']
const KEYS_EACH = 8
const [old, next] = [generateMasterKey(randomBytes), generateMasterKey(randomBytes)]
const BOTH = new KeyRing([next, old])

class Death extends Error {}

/**
 * A rotation's view of the store: its n-th call crashes, before it reaches the store or before its response returns.
 */
class Mortal {
  calls = 0
  readonly #diesAt: number
  readonly #isLate: boolean

  constructor(diesAt = Number.POSITIVE_INFINITY, isLate = false) {
    this.#diesAt = diesAt
    this.#isLate = isLate
  }

  of(store: Store): Store {
    const call = async <Answer>(act: () => Promise<Answer>): Promise<Answer> => {
      const dies = ++this.calls === this.#diesAt
      if (dies && !this.#isLate) throw new Death()
      const answer = await act()
      if (dies) throw new Death()
      return answer
    }
    return {
      tenant: store.tenant,
      dataKeys: () => call(() => store.dataKeys()),
      putDataKey: (key, by) => call(() => store.putDataKey(key, by)),
    } as Partial<Store> as Store
  }
}

async function rotate(raw: Store, tenants: readonly string[], mortal = new Mortal()): Promise<number> {
  let count = 0
  for (const tenant of tenants)
    count += await new DataKeys(mortal.of(raw.forTenant(tenant)), BOTH, randomBytes).rewrap('ana', 5)
  return count
}

/** A tenant with eight data keys under the old key ring, a sealed state, and an active sync. */
async function fill(raw: Store, tenant: string): Promise<SyncDriver> {
  const store = raw.forTenant(tenant)
  for (let n = 0; n < KEYS_EACH; n++) await new DataKeys(store, new KeyRing([old, next]), randomBytes).add('ana', n)
  const driver = await SyncDriver.acquire(sealStore(store, new KeyRing([old, next]), randomBytes))
  await driver.set('"before"')
  return driver
}

test('Z4 a rotation killed at every step, before and after the store applied it: all stays readable, the others continue, and the next rotation completes it with every key rewrapped once', async () => {
  const raw = await openSqliteStore({ file: ':memory:' })
  onTestFinished(() => raw.close())
  const whole = new Mortal()
  for (const tenant of TENANTS) await fill(raw, tenant)
  expect(await rotate(raw, TENANTS, whole)).toBe(TENANTS.length * KEYS_EACH)
  const deaths = Array.from({ length: whole.calls }, (_, at) =>
    [false, true].map((isLate) => [at + 1, isLate] as const),
  ).flat()
  // One list and one read of the keys per tenant, and one call per key: 80, and twenty real kills in
  // test/cli/keys.test.ts.
  expect(deaths).toHaveLength(2 * TENANTS.length * (KEYS_EACH + 2))
  for (const [at, isLate] of deaths) {
    const where = `${isLate ? 'after' : 'before'} call ${at}`
    const tenants = TENANTS.map((tenant) => `${tenant}-${at}-${isLate ? 'late' : 'early'}`)
    const drivers = await Promise.all(tenants.map((tenant) => fill(raw, tenant)))
    const read = (ring: KeyRing): Promise<(string | null)[]> =>
      Promise.all(
        tenants.map(
          async (tenant, n) =>
            (await sealStore(raw.forTenant(tenant), ring, randomBytes).readCheckpoint(drivers[n]!.ref)).committed,
        ),
      )
    await expect(rotate(raw, tenants, new Mortal(at, isLate)), where).rejects.toBeInstanceOf(Death)
    expect(await read(BOTH), where).toEqual(tenants.map(() => '"before"'))
    // A process with only the old key ring has its data key in memory.
    for (const driver of drivers) await driver.set('"after"')
    await rotate(raw, tenants)
    expect(await read(new KeyRing([next])), where).toEqual(tenants.map(() => '"after"'))
    for (const tenant of tenants) {
      const store = raw.forTenant(tenant)
      const { entries } = await store.auditChain({ after: 0, limit: 100 })
      expect(
        entries.filter(({ action }) => action === 'rewrap-key'),
        where,
      ).toHaveLength(KEYS_EACH)
      expect(await verifyAuditChain(store), where).toMatchObject({ intact: true })
    }
  }
})
