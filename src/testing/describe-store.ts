import { storeCases } from './store-cases/index.ts'
import type { StoreCase, StoreHarness } from './store-cases/harness.ts'

export interface DescribeStoreOptions {
  /** Where to register; else the globals of Vitest or Jest, else `node:test`. */
  readonly runner?: TestRunner
  /** Milliseconds for one case. */
  readonly timeoutMs?: number
  /** Whether to register a case; all when absent. */
  only?(storeCase: StoreCase): boolean
}

/** What Vitest, Jest and node:test have in common. */
export interface TestRunner {
  describe(name: string, body: () => void): unknown
  test(name: string, body: (context?: unknown) => Promise<void>, timeoutMs?: number): unknown
}

/**
 * Registers the promise of a store as tests; a store's whole test file is
 *
 *     import { describeStore } from 'tidemark/testing'
 *     import { openHarness } from './harness.ts'
 *     describeStore('my store', openHarness)
 *
 * `open` is called once per case and must give an empty store.
 */
export function describeStore(name: string, open: () => Promise<StoreHarness>, options: DescribeStoreOptions = {}): void {
  const { describe, test } = options.runner ?? findTestRunner()
  describe(`${name} store`, () => {
    for (const storeCase of storeCases.filter((storeCase) => options.only?.(storeCase) !== false)) {
      test(storeCase.name, async (context) => {
        const reason = await runStoreCase(storeCase, open)
        if (reason !== null) skipTest(context, `${storeCase.name}: ${reason}`)
      }, options.timeoutMs ?? 120_000)
    }
  })
}

/** Null when the store keeps the promise, the reason when the case does not apply to it; throws when it breaks it. */
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
  // Kept rows can only be seen in their table.
  return needs === 'supportsSoftDeletes' ? store.supportsSoftDeletes === true && supports?.select !== undefined : supports?.[needs] !== undefined
}

const SKIP_REASONS: Record<StoreNeed, string> = {
  supportsSoftDeletes: 'the store does not say `supportsSoftDeletes`, or the harness offers no `supports.select`',
  ownClock: 'the harness does not say `supports.ownClock`',
  notifies: 'the harness does not say `supports.notifies`',
  select: 'the harness offers no `supports.select`',
  crashDuringCommit: 'the harness offers no `supports.crashDuringCommit`',
}

/** Whatever tests are written with here. */
export function findTestRunner(): TestRunner {
  const { describe, test } = globalThis as Partial<TestRunner>
  if (describe !== undefined && test !== undefined) return { describe, test }
  return process.getBuiltinModule('node:test') as unknown as TestRunner
}

/** Vitest throws out of `skip`, node:test marks the test, Jest cannot: there the reason is printed. */
export function skipTest(context: unknown, reason: string): void {
  console.info(`skipped: ${reason}`)
  const { skip: mark } = Object(context) as { skip?: (reason: string) => void }
  mark?.call(context, reason)
}
