import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { runVendorWorld } from '../../src/testing/simulation/vendors/vendor-world.ts'
import { SQLITE_IN_MEMORY } from '../../src/testing/simulation/world-store-factory.ts'

setFlagsFromString('--expose_gc')
const collectGarbage = runInNewContext('gc') as () => void

test('a finished world keeps nothing in memory, also when its processes crashed', async () => {
  const stores: WeakRef<object>[] = []
  let crashes = 0
  for (let seed = 1; seed <= 12; seed++) {
    const { faults } = await runVendorWorld({
      seed,
      overrides: { rates: { crash: 0.05 } },
      store: {
        open: async (now) => {
          const store = await SQLITE_IN_MEMORY.open(now)
          stores.push(new WeakRef(store))
          return store
        },
      },
    })
    crashes += faults.length
  }
  await new Promise((resolve) => setImmediate(resolve))
  collectGarbage()
  expect(crashes).toBeGreaterThan(0)
  // The frames of the last world may still be reachable.
  expect(stores.slice(0, -1).filter((store) => store.deref() !== undefined)).toEqual([])
})
