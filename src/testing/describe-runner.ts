import { findTestRunner, type TestRunner } from './describe-store.ts'
import { runnerCases } from './runner-cases/cases.ts'
import { RunnerCaseFixture, type RunnerCase, type RunnerHarness } from './runner-cases/harness.ts'
import { SourceServerFixture } from './runner-cases/source-server-fixture.ts'

/** Options of `describeRunner`. */
export interface DescribeRunnerOptions {
  /** Test framework to register with; defaults to the globals of Vitest or Jest, then `node:test`. */
  readonly runner?: TestRunner
  /** Timeout of one case, in milliseconds. */
  readonly timeoutMs?: number
}

/**
 * Registers the contract of a runner as tests. The whole test file of a runner is
 *
 *     import { describeRunner } from 'tidemark/testing'
 *     import { openHarness } from './harness.ts'
 *     describeRunner('my fleet', openHarness)
 *
 * `open` is called once per case, with the address of the source fixture. The processes it starts run `createFixtureWorker`
 * with that address.
 */
export function describeRunner(
  name: string,
  open: (url: string) => Promise<RunnerHarness>,
  options: DescribeRunnerOptions = {},
): void {
  const { describe, test } = options.runner ?? findTestRunner()
  describe(`${name} runner`, () => {
    for (const runnerCase of runnerCases)
      test(runnerCase.name, () => runRunnerCase(runnerCase, open), options.timeoutMs ?? 120_000)
  })
}

/** Throws when the runner breaks the contract. */
export async function runRunnerCase(
  runnerCase: RunnerCase,
  open: (url: string) => Promise<RunnerHarness>,
): Promise<void> {
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
