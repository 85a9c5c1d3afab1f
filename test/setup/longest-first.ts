import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Approximate CPU seconds of a file, or of each file of a folder; only their order counts. A long file that starts last
 * runs alone while the other cores are idle.
 */
const SECONDS: Readonly<Record<string, number>> = {
  'runs/runs': 55,
  'process/postgres.pg': 45,
  'runner/restate/chaos': 45,
  'cli/templates': 43,
  'stores/postgres.pg': 40,
  'simulation/seeds.pg': 40,
  'runner/describe-runner.restate': 36,
  'mutants/mutants': 35,
  'process/sqlite.': 33,
  'simulation/vendors': 31,
  'simulation/seeds-': 29,
  'cli/canaries': 29,
  'cli/exit-codes': 27,
  'mutants/vendor-mutants': 25,
  'sources/promise/vendors': 25,
  'cli/interrupt': 25,
  'registry/data-keys.pg': 24,
  'cli/start': 22,
  'cli/init.': 22,
  'strategies/frontier-mutants': 21,
  'cli/restate': 20,
  'cli/init-sources': 19,
  'runner/describe-runner': 18,
  'runner/chaos': 14,
  'console/console': 14,
  'sources/postgres-cdc/chaos': 14,
  'cli/preview': 13,
  'docs/': 12,
  'process/memory': 12,
  'server/no-gap': 10,
  'cli/keys': 10,
  'cli/init-postgres-cdc': 10,
  'cli/state': 9,
  'export/killed': 8,
  'runs/killed': 8,
  'cli/documents': 8,
  'cli/webhooks': 8,
  'cli/demo': 8,
  'client/killed': 3,
  'examples/': 3,
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = ({ moduleId }: TestSpecification): number => {
      const found = Object.entries(SECONDS).filter(([name]) => moduleId.includes(`/test/${name}`))
      return Math.max(0, ...found.map(([, seconds]) => seconds))
    }
    return (await super.sort(files)).toSorted((a, b) => secondsOf(b) - secondsOf(a))
  }
}
