import { findTestRunner, skipTest, type TestRunner } from './describe-store.ts'
import { sourceCases } from './source-cases/cases.ts'
import type { SourceCase, SourceHarness, SourceNeed } from './source-cases/harness.ts'
import { SourceFixture } from './source-cases/source-fixture.ts'

/** Options of `describeSource`. */
export interface DescribeSourceOptions {
  /** Test framework to register with; defaults to the globals of Vitest or Jest, then `node:test`. */
  readonly runner?: TestRunner
  /** Timeout of one case, in milliseconds. */
  readonly timeoutMs?: number
}

/**
 * Registers the contract of a source as tests. The whole test file of a source is
 *
 *     import { describeSource } from 'tidemark/testing'
 *     import { openHarness } from './harness.ts'
 *     describeSource('harbour', openHarness)
 *
 * `open` is called once per case and must return an empty system. Cases the source does not support are skipped, with the reason.
 */
export function describeSource(
  name: string,
  open: () => SourceHarness | Promise<SourceHarness>,
  options: DescribeSourceOptions = {},
): void {
  const { describe, test } = options.runner ?? findTestRunner()
  describe(`${name} source`, () => {
    for (const sourceCase of sourceCases) {
      test(
        sourceCase.name,
        async (context) => {
          const reason = await runSourceCase(sourceCase, open)
          if (reason !== null) skipTest(context, `${sourceCase.name}: ${reason}`)
        },
        options.timeoutMs ?? 60_000,
      )
    }
  })
}

/**
 * Returns null when the source passes, the reason when the case does not apply; throws when the source fails the case.
 */
export async function runSourceCase(
  sourceCase: SourceCase,
  open: () => SourceHarness | Promise<SourceHarness>,
): Promise<string | null> {
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
  listing: 'the source cannot list all records',
  delta: 'the source has no delta',
  deletes: 'the harness offers no `remove`',
  reported: 'its delta does not report deletions',
  fetch: "it does not send requests through the context's fetch",
  partitions: 'the harness declares no `partitions`',
  addedPartitions: 'its partitions are fixed',
  removedPartitions: 'its partitions are fixed',
  tidemark: 'the harness offers no `timeOf`',
}
