import { expect, test } from 'vitest'
import type { StateText, Store } from '../../src/contract/index.ts'
import { SEAL_RULES, sealStore, type SealRules } from '../../src/registry/sealed-store.ts'
import { KeyRing } from '../../src/registry/key-ring.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

interface GrownStore extends Store {
  savedState(): Promise<StateText>
}

interface OptionallyGrownStore extends Store {
  savedState?(): Promise<StateText>
}

// @ts-expect-error A method without a rule: `savedState` must declare how it is sealed before this compiles.
SEAL_RULES satisfies SealRules<GrownStore>
// @ts-expect-error The same for an optional method.
SEAL_RULES satisfies SealRules<OptionallyGrownStore>

;({
  ...SEAL_RULES,
  savedState:
    ({ sealer: states }) =>
    async () =>
      states.open({ worker: '', sync: '' }, null, []),
}) satisfies SealRules<GrownStore>

test('invariant 10: a method without a rule is not reachable through a sealed store', async () => {
  const store = await openSqliteStore({ file: ':memory:' })
  const grown: GrownStore = { ...store, savedState: async () => 'a state that is not sealed' }
  const sealed = sealStore(grown, new KeyRing([{ id: 'k', bytes: Buffer.alloc(32, 1) }]), (bytes) =>
    Buffer.alloc(bytes, 7),
  )
  try {
    expect(Object.keys(sealed).toSorted()).toEqual(
      [...Object.keys(SEAL_RULES), 'tenant', 'isReplica', 'supportsSoftDeletes', 'supportsScopedSweeps'].toSorted(),
    )
    expect('savedState' in sealed).toBe(false)
  } finally {
    await store.close()
  }
})

test('an optional method that a store lacks is missing from the sealed store too', async () => {
  const { rowValues: _, ...store } = await openSqliteStore({ file: ':memory:' })
  const sealed = sealStore(store, new KeyRing([{ id: 'k', bytes: Buffer.alloc(32, 1) }]), (bytes) =>
    Buffer.alloc(bytes, 7),
  )
  expect('rowValues' in sealed).toBe(false)
  await store.close()
})
