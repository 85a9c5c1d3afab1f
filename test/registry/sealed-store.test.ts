import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { KeyRing, generateMasterKey } from '../../src/registry/key-ring.ts'
import { sealStore } from '../../src/registry/sealed-store.ts'
import { describeStore } from '../../src/testing/describe-store.ts'
import { openHarness } from '../stores/sqlite-harness.ts'

/** A sealed store keeps the whole contract of a store. */
describeStore(
  'sealed sqlite',
  async () => {
    const harness = await openHarness()
    const ring = new KeyRing([generateMasterKey(randomBytes)])
    const { crashDuringCommit: _, ...supports } = harness.supports!
    return {
      ...harness,
      supports,
      store: sealStore(harness.store, ring, randomBytes),
      reopen: async () => sealStore(await harness.reopen(), ring, randomBytes),
    }
  },
  { runner: { describe, test } },
)

test('a store that is a class instance can be sealed as well', async () => {
  const harness = await openHarness()
  class Wrapped {
    readonly tenant = 'default'
    async headSequence(): Promise<number> {
      return await harness.store.headSequence()
    }
  }
  expect(
    await sealStore(new Wrapped() as never, new KeyRing([generateMasterKey(randomBytes)]), randomBytes).headSequence(),
  ).toBe(0)
  await harness.close()
})
