import { storeCases } from './store-cases/index.ts'
import type { StoreCase, StoreHarness } from './store-cases/harness.ts'

/** Options of `describeStore`. */
export interface DescribeStoreOptions {
  /** Test framework to register with; defaults to the globals of Vitest or Jest, then `node:test`. */
  readonly runner?: TestRunner
  /** Timeout of one case, in milliseconds. */
  readonly timeoutMs?: number
  /** Selects the cases to register; all when absent. */
  only?(storeCase: StoreCase): boolean
}

/** The part of the test API that Vitest, Jest and node:test share. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown
  test(name: string, body: (context?: unknown) => Promise<void>, timeoutMs?: number): unknown
}

/**
 * Registers the contract of a store as tests. The whole test file of a store is
 *
 *     import { describeStore } from 'tidemark/testing'
 *     import { openHarness } from './harness.ts'
 *     describeStore('my store', openHarness)
 *
 * `open` is called once per case and must return an empty store.
 */
export function describeStore(
  name: string,
  open: () => Promise<StoreHarness>,
  options: DescribeStoreOptions = {},
): void {
  const { describe, test } = options.runner ?? findTestRunner()
  describe(`${name} store`, () => {
    for (const storeCase of storeCases.filter((storeCase) => options.only?.(storeCase) !== false)) {
      test(
        storeCase.name,
        async (context) => {
          const reason = await runStoreCase(storeCase, open)
          if (reason !== null) skipTest(context, `${storeCase.name}: ${reason}`)
        },
        options.timeoutMs ?? 120_000,
      )
    }
  })
}

/**
 * Returns null when the store passes, the reason when the case does not apply; throws when the store fails the case.
 */
export async function runStoreCase(storeCase: StoreCase, open: () => Promise<StoreHarness>): Promise<string | null> {
  const opened: StoreHarness[] = []
  const openAnother = async (): Promise<StoreHarness> => {
    const harness = await open()
    opened.push(harness)
    return harness
  }
  try {
    const harness = await openAnother()
    const { needs } = storeCase
    if (needs !== undefined && !isSupported(needs, harness)) return SKIP_REASONS[needs]
    await storeCase.run(harness, openAnother)
    return null
  } finally {
    for (const harness of opened) await harness.close()
  }
}

type StoreNeed = NonNullable<StoreCase['needs']>

function isSupported(needs: StoreNeed, { store, supports }: StoreHarness): boolean {
  if (needs === 'supportsScopedSweeps') return store.supportsScopedSweeps === true
  if (needs === 'searchRows') return store.searchRows !== undefined
  // Soft-deleted rows are visible in their table only.
  return needs === 'supportsSoftDeletes'
    ? store.supportsSoftDeletes === true && supports?.select !== undefined
    : supports?.[needs] !== undefined
}

const SKIP_REASONS: Record<StoreNeed, string> = {
  supportsSoftDeletes: 'the store does not declare `supportsSoftDeletes`, or the harness offers no `supports.select`',
  supportsScopedSweeps: 'the store does not declare `supportsScopedSweeps`',
  searchRows: 'the store has no `searchRows`',
  ownClock: 'the harness does not declare `supports.ownClock`',
  notifies: 'the harness does not declare `supports.notifies`',
  select: 'the harness offers no `supports.select`',
  crashDuringCommit: 'the harness offers no `supports.crashDuringCommit`',
}

/** The test framework this process runs under. */
export function findTestRunner(): TestRunner {
  const { describe, test } = globalThis as Partial<TestRunner>
  if (describe !== undefined && test !== undefined) return { describe, test }
  return process.getBuiltinModule('node:test') as TestRunner
}

/** Vitest throws from `skip`, node:test marks the test, Jest supports neither: there the reason is printed. */
export function skipTest(context: unknown, reason: string): void {
  console.info(`skipped: ${reason}`)
  const { skip: mark } = Object(context) as { skip?: (reason: string) => void }
  mark?.call(context, reason)
}
