import { findTestRunner, type TestRunner } from './describe-store.ts'
import { runnerCases } from './runner-cases/cases.ts'
import { RunnerCaseFixture, type RunnerCase, type RunnerHarness } from './runner-cases/harness.ts'
import { SourceServerFixture } from './runner-cases/source-server-fixture.ts'

export interface DescribeRunnerOptions {
  /** Where to register; else the globals of Vitest or Jest, else `node:test`. */
  readonly runner?: TestRunner
  /** Milliseconds for one case. */
  readonly timeoutMs?: number
}

/**
 * Registers the promise of a way to run syncs as tests; the whole test file of one is
 *
 *     import { describeRunner } from 'tidemark/testing'
 *     import { openHarness } from './harness.ts'
 *     describeRunner('my fleet', openHarness)
 *
 * `open` is called once per case, with the address of the source; what it starts runs `createFixtureWorker` with that address.
 */
export function describeRunner(name: string, open: (url: string) => Promise<RunnerHarness>, options: DescribeRunnerOptions = {}): void {
  const { describe, test } = options.runner ?? findTestRunner()
  describe(`${name} runner`, () => {
    for (const runnerCase of runnerCases) test(runnerCase.name, () => runRunnerCase(runnerCase, open), options.timeoutMs ?? 120_000)
  })
}

/** Throws when the runner breaks the promise. */
export async function runRunnerCase(runnerCase: RunnerCase, open: (url: string) => Promise<RunnerHarness>): Promise<void> {
  const stage = await SourceServerFixture.open()
  try {
    const harness = await open(stage.url)
    try {
      await runnerCase.run(new RunnerCaseFixture(harness, stage))
    } finally {
      await harness.close()
    }
  } finally {
    await stage.close()
  }
}
