import { findTestRunner, skipTest, type TestRunner } from './describe-store.ts'
import { destinationCases } from './destination-cases/cases.ts'
import { DestinationBench, type DestinationCase, type DestinationHarness } from './destination-cases/harness.ts'

/** Options of `describeDestination`. */
export interface DescribeDestinationOptions {
  /** Test framework to register with; defaults to the globals of Vitest or Jest, then `node:test`. */
  readonly runner?: TestRunner
  /** Timeout of one case, in milliseconds. */
  readonly timeoutMs?: number
}

/**
 * Registers the contract of a destination as tests. `open` is called once per case and must return an empty destination.
 */
export function describeDestination(
  name: string,
  open: () => Promise<DestinationHarness>,
  options: DescribeDestinationOptions = {},
): void {
  const { describe, test } = options.runner ?? findTestRunner()
  describe(`${name} destination`, () => {
    for (const destinationCase of destinationCases) {
      test(
        destinationCase.name,
        async (context) => {
          const reason = await runDestinationCase(destinationCase, open)
          if (reason !== null) skipTest(context, `${destinationCase.name}: ${reason}`)
        },
        options.timeoutMs ?? 120_000,
      )
    }
  })
}

/** Returns null when the destination passes, the reason when the case does not apply; throws when it fails the case. */
export async function runDestinationCase(
  destinationCase: DestinationCase,
  open: () => Promise<DestinationHarness>,
): Promise<string | null> {
  const harness = await open()
  const bench = await DestinationBench.open(harness)
  try {
    const { needs } = destinationCase
    if (needs === 'append' || needs === 'history') {
      if (!harness.destination.supports.modes.includes(needs)) return `the destination does not support ${needs}`
    } else if (needs === 'children' && harness.destination.supports.children !== true) {
      return 'the destination has no child tables'
    } else if (needs !== undefined && harness[needs] === undefined) return `the harness offers no \`${needs}\``
    await destinationCase.run(bench)
    return null
  } finally {
    await bench.store.close()
    await harness.close()
  }
}
