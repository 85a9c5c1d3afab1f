import { describe, expect, test } from 'vitest'
import { RandomStream } from '../../src/testing/index.ts'
import {
  ACCOUNTS,
  fillAccount,
  ManualClock,
  applyWrite,
  type AccountName,
  type VendorSimulator,
} from '../../simulators/src/index.ts'

const WRITES = 2_000
const STEP_MS = 1_000
const KEEP_MS = 100 * STEP_MS

/** A seeded account with many writes, which drops old versions periodically or never. */
function lived(name: AccountName, forgets: boolean): VendorSimulator {
  const clock = new ManualClock()
  const random = new RandomStream(7, 'account')
  const account = ACCOUNTS[name]
  const vendor = account.createSimulator({ clock, random })
  fillAccount(vendor, account)
  for (let n = 0; n < WRITES; n++) {
    clock.advance(STEP_MS)
    applyWrite(vendor, account, n, random)
    if (forgets && n % 50 === 0) vendor.prune(clock.now() - KEEP_MS)
  }
  if (forgets) vendor.prune(clock.now() - KEEP_MS)
  return vendor
}

describe.each(Object.keys(ACCOUNTS) as AccountName[])('the simulated account of %s', (name) => {
  test('has as many records after thousands of writes as at first', () => {
    if (ACCOUNTS[name].isAppendOnly === true) return
    const vendor = lived(name, false)
    for (const [type, { count }] of Object.entries(ACCOUNTS[name].types)) {
      const alive = vendor.records.current(type).length
      expect(alive).toBeGreaterThanOrEqual(count * 0.8 - 1)
      expect(alive).toBeLessThanOrEqual(count * 1.2 + 1)
    }
  })

  test('drops old versions without a visible change', () => {
    const [whole, light] = [lived(name, false), lived(name, true)]
    for (const type of Object.keys(ACCOUNTS[name].types)) {
      expect(ids(light, type)).toEqual(ids(whole, type))
      const kept = light.records.latest(type).flatMap(({ id }) => light.records.history(type, id))
      if (ACCOUNTS[name].isAppendOnly !== true)
        expect(kept.length).toBeLessThanOrEqual(light.records.current(type).length + (2 * KEEP_MS) / STEP_MS)
    }
    expect(light.records.latest('event').length).toBeLessThanOrEqual((2 * KEEP_MS) / STEP_MS)
    expect(light.requests.count()).toBe(0)
  })
})

function ids(vendor: VendorSimulator, type: string): unknown[] {
  return vendor.records.current(type).map(({ id, fields }) => [id, fields])
}
