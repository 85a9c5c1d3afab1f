import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { STORE_METHODS } from '../../src/stores/sqlite/store-methods.ts'
import { describeStore } from '../../src/testing/describe-store.ts'
import { atomicityCases } from '../../src/testing/store-cases/atomicity.ts'
import { auditChainCases } from '../../src/testing/store-cases/audit-chain.ts'
import { backfillCases } from '../../src/testing/store-cases/backfills.ts'
import { beginCases } from '../../src/testing/store-cases/begin.ts'
import { commitCases } from '../../src/testing/store-cases/commit.ts'
import { contestCases } from '../../src/testing/store-cases/contests.ts'
import { feedCases } from '../../src/testing/store-cases/feed.ts'
import type { StoreCase } from '../../src/testing/store-cases/harness.ts'
import { landingCases } from '../../src/testing/store-cases/landing.ts'
import { leaseCases } from '../../src/testing/store-cases/leases.ts'
import { pacerCases } from '../../src/testing/store-cases/pacers.ts'
import { pauseCases } from '../../src/testing/store-cases/pauses.ts'
import { softDeleteCases } from '../../src/testing/store-cases/soft-deletes.ts'
import { sweepCases } from '../../src/testing/store-cases/sweep.ts'
import { syncStatusCases } from '../../src/testing/store-cases/sync-status.ts'
import { tableCases } from '../../src/testing/store-cases/tables.ts'
import { buildPackage } from '../cli/package.ts'
import { openHarnessOf, type SqliteModules } from './sqlite-harness.ts'

/**
 * The thread passes calls on to the code that sqlite.test.ts checks with every case, and starting it takes a tenth of a
 * second. Of groups that share their methods with others, two cases are enough; `npm run campaign:process` runs all.
 */
const SAMPLED = [
  atomicityCases,
  auditChainCases,
  backfillCases,
  beginCases,
  commitCases,
  contestCases,
  feedCases,
  landingCases,
  leaseCases,
  pacerCases,
  pauseCases,
  softDeleteCases,
  sweepCases,
  syncStatusCases,
  tableCases,
]
const omitted: ReadonlySet<StoreCase> = new Set(
  process.env['TIDEMARK_LONG'] === '1' ? [] : SAMPLED.flatMap((cases) => cases.slice(2)),
)
/** Tested with their commands, on files. */
const OTHERWISE_TESTED = [
  'advanceSchemaChange',
  'beginSchemaChange',
  'columnKeys',
  'offerColumnKey',
  'recordReveal',
  'removeDataKey',
  'reseal',
  'schema',
  'schemaDrift',
  'sealedTexts',
  'wrappingKeys',
]
const called = new Set<string>()

// The store of a file runs in its own thread, which only compiled code can start.
const compiled = join(buildPackage(), 'dist/stores/sqlite/store.js')
describeStore(
  'sqlite, in a thread,',
  async () => {
    const modules = (await import(compiled)) as SqliteModules
    const { supports, store, ...harness } = await openHarnessOf(modules)
    // Another thread cannot be stopped between two statements; the same code is stopped everywhere in sqlite.test.ts.
    return { ...harness, store: recordCalls(store), supports: { select: supports!.select! } }
  },
  { runner: { describe, test }, only: (storeCase) => !omitted.has(storeCase) },
)

test('the cases call every method of the store', () => {
  const missing = STORE_METHODS.filter((method) => !called.has(method))
  expect(missing.toSorted()).toEqual(OTHERWISE_TESTED)
})

function recordCalls(store: Store): Store {
  const methods = STORE_METHODS.map((method) => [
    method,
    (...args: readonly unknown[]) => {
      called.add(method)
      return (store[method] as (...given: readonly unknown[]) => unknown)(...args)
    },
  ])
  return { ...store, ...Object.fromEntries(methods), forTenant: (tenant) => recordCalls(store.forTenant(tenant)) }
}
