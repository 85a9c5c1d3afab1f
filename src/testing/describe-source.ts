import { findTestRunner, skipTest, type TestRunner } from './describe-store.ts'
import { sourceCases } from './source-cases/cases.ts'
import type { SourceCase, SourceHarness, SourceNeed } from './source-cases/harness.ts'
import { SourceFixture } from './source-cases/source-fixture.ts'

export interface DescribeSourceOptions {
  /** Where to register; else the globals of Vitest or Jest, else `node:test`. */
  readonly runner?: TestRunner
  /** Milliseconds for one case. */
  readonly timeoutMs?: number
}

/**
 * Registers the promise of a source as tests; a source's whole test file is
 *
 *     import { describeSource } from 'tidemark/testing'
 *     import { openHarness } from './harness.ts'
 *     describeSource('harbour', openHarness)
 *
 * `open` is called once per case and must give an empty system. What the source cannot do is skipped, with the reason.
 */
export function describeSource(name: string, open: () => SourceHarness | Promise<SourceHarness>, options: DescribeSourceOptions = {}): void {
  const { describe, test } = options.runner ?? findTestRunner()
  describe(`${name} source`, () => {
    for (const sourceCase of sourceCases) {
      test(sourceCase.name, async (context) => {
        const reason = await runSourceCase(sourceCase, open)
        if (reason !== null) skipTest(context, `${sourceCase.name}: ${reason}`)
      }, options.timeoutMs ?? 60_000)
    }
  })
}

/** Null when the source keeps the promise, the reason when the case does not apply to it; throws when it breaks it. */
export async function runSourceCase(sourceCase: SourceCase, open: () => SourceHarness | Promise<SourceHarness>): Promise<string | null> {
  const trial = await SourceFixture.open(await open())
  try {
    const missing = await trial.findUnmetNeed(sourceCase.needs)
    if (missing !== undefined) return SKIP_REASONS[missing]
    await sourceCase.run(trial)
    return null
  } finally {
    await trial.close()
  }
}

const SKIP_REASONS: Record<SourceNeed, string> = {
  listing: 'it cannot be read whole',
  delta: 'it cannot be followed',
  deletes: 'the harness offers no `remove`',
  told: 'its delta does not tell of what is gone',
  fetch: 'it does not ask through the context\'s fetch',
}
