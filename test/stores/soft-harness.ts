import assert from 'node:assert/strict'
import type { Commit, Store } from '../../src/contract/index.ts'
import { describeStore, type TestRunner } from '../../src/testing/describe-store.ts'
import { atomicityCases } from '../../src/testing/store-cases/atomicity.ts'
import { backfillCases } from '../../src/testing/store-cases/backfills.ts'
import { contestCases } from '../../src/testing/store-cases/contests.ts'
import { feedCases } from '../../src/testing/store-cases/feed.ts'
import type { StoreCase, StoreHarness } from '../../src/testing/store-cases/harness.ts'
import { landingCases } from '../../src/testing/store-cases/landing.ts'
import { serverSupportCases } from '../../src/testing/store-cases/server-support.ts'
import { sweepCases } from '../../src/testing/store-cases/sweep.ts'
import { tableCases } from '../../src/testing/store-cases/tables.ts'
import { tenantCases } from '../../src/testing/store-cases/tenants.ts'

/**
 * The guarantees of a store hold whatever a delete does to its row. In this harness every delete is soft, and a select
 * on a table leaves out the deleted rows.
 */
export function describeSoftStore(
  name: string,
  open: () => Promise<StoreHarness>,
  tombstonesOf: TombstonesOf,
  runner: TestRunner,
  cases: ReadonlySet<StoreCase> = SOFT_CASES,
): void {
  describeStore(`${name} with soft deletes`, async () => softly(await open(), tombstonesOf), {
    runner,
    only: (storeCase) => cases.has(storeCase),
  })
}

/** The keys that have a tombstone, by the name of their table. */
export type TombstonesOf = (harness: StoreHarness) => Promise<ReadonlyMap<string, ReadonlySet<string>>>

/** The cases of the groups that delete rows. */
export const DELETING_CASES: ReadonlySet<StoreCase> = new Set([
  ...landingCases,
  ...sweepCases,
  ...contestCases,
  ...feedCases,
  ...atomicityCases.filter(({ name }) => !/\((?:abandon|set|replay)\)/.test(name)),
])

/** The cases in which rows are deleted, or compared. */
export const SOFT_CASES: ReadonlySet<StoreCase> = new Set([
  ...DELETING_CASES,
  ...atomicityCases,
  ...tableCases,
  ...tenantCases,
  ...backfillCases,
  ...serverSupportCases,
])

function softly(harness: StoreHarness, tombstonesOf: TombstonesOf): StoreHarness {
  const { store, supports, reopen, close } = harness
  const select = supports!.select!
  return {
    ...harness,
    store: softStore(store),
    reopen: async () => softStore(await reopen()),
    async close() {
      await checkDeleted(harness, tombstonesOf)
      await close()
    },
    supports: {
      ...supports,
      select: async (view) => (await select(view)).filter((row) => (row['_deleted_at'] ?? null) === null),
      crashDuringCommit: (commit, statement) => supports!.crashDuringCommit!(softCommit(commit), statement),
    },
  }
}

function softStore(store: Store): Store {
  return {
    ...store,
    commit: (commit) => store.commit(softCommit(commit)),
    forTenant: (tenant) => softStore(store.forTenant(tenant)),
  }
}

function softCommit(commit: Commit): Commit {
  const databases = [
    ...Object.keys(commit.columns),
    ...[...commit.landings, ...commit.quarantined].map(({ database }) => database),
    'things',
    'people',
  ]
  return { deletes: Object.fromEntries(databases.map((database) => [database, 'soft'])), ...commit }
}

/** Every kept row has a tombstone, and no live row has one. */
async function checkDeleted(harness: StoreHarness, tombstonesOf: TombstonesOf): Promise<void> {
  const tombstones = await tombstonesOf(harness)
  for (const [table, keys] of tombstones) {
    for (const row of await harness.supports!.select!(table)) {
      const [key, isDeleted] = [String(row['_key']), (row['_deleted_at'] ?? null) !== null]
      assert.equal(
        keys.has(key),
        isDeleted,
        `${table}: ${key} is ${isDeleted ? '' : 'not '}deleted and has ${keys.has(key) ? 'a' : 'no'} tombstone`,
      )
    }
  }
}
