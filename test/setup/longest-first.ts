import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes longest, the longest first: begun last, one would run alone on a machine with nothing else left to do. */
const LONGEST = [
  'process/postgres.pg', 'process/sqlite.', 'runner/restate/chaos', 'mutants/vendor-mutants', 'mutants/mutants', 'cli/canaries', 'process/memory', 'simulation/', 'sources/promise/vendors', 'runner/chaos',
  'runner/describe-runner.restate', 'console/console', 'sources/postgres-cdc/chaos', 'cli/restate', 'cli/init', 'docs/', 'server/no-gap', 'runs/', 'export/killed', 'client/killed', 'examples/',
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = LONGEST.findIndex((name) => moduleId.includes(`/test/${name}`))
      return found === -1 ? LONGEST.length : found
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}
