import { AssertionError } from 'node:assert'
import { describe, expect, test } from 'vitest'
import { runStoreCase } from '../../src/testing/describe-store.ts'
import type { StoreCase, StoreHarness } from '../../src/testing/store-cases/harness.ts'
import { storeCases } from '../../src/testing/store-cases/index.ts'
import type { Store } from '../../src/contract/index.ts'
import { faults } from './broken/faults.ts'
import { loadPatched } from './broken/patched-modules.ts'
import { openHarnessOf, type SqliteModules } from './sqlite-harness.ts'

describe('the store suite', () => {
  test('passes the store that is not broken, loaded in the same way as the broken ones', async () => {
    const modules = await loadPatched([])
    const named = new Set(faults.flatMap((fault) => fault.caughtBy).flatMap(casesNamed))
    for (const storeCase of named) expect(await failureOf(storeCase, modules), storeCase.name).toBe(null)
  })

  test.for(faults)('catches a store that $name', async (fault) => {
    const modules = await loadPatched(fault.patches ?? [])
    for (const name of fault.caughtBy) {
      const failures = await Promise.all(casesNamed(name).map((storeCase) => failureOf(storeCase, modules, fault.wrap)))
      // The failure must be an assertion: a store that throws everywhere would prove nothing about the case.
      expect(failures.some(isFinding), `${name}: ${String(failures[0])}`).toBe(true)
    }
  })
})

function casesNamed(beginning: string): StoreCase[] {
  const found = storeCases.filter(({ name }) => name.startsWith(beginning))
  expect(found, `no case begins with "${beginning}"`).not.toHaveLength(0)
  return found
}

async function failureOf(
  storeCase: StoreCase,
  modules: SqliteModules,
  wrap: (store: Store) => Store = (store) => store,
): Promise<unknown> {
  const open = async (): Promise<StoreHarness> => {
    const harness = await openHarnessOf(modules)
    return { ...harness, store: wrap(harness.store), reopen: async () => wrap(await harness.reopen()) }
  }
  try {
    await runStoreCase(storeCase, open)
    return null
  } catch (error) {
    return error
  }
}

/** A violated guarantee was detected: by the suite, or by the store itself, whose records are inconsistent. */
function isFinding(failure: unknown): boolean {
  const code = (failure as { code?: unknown } | null)?.code
  return failure instanceof AssertionError || code === 'STATE_ROLLED_BACK' || code === 'STATE_UNREADABLE'
}
