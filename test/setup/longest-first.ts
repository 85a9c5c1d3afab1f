import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Approximate CPU seconds of a file, or of each file of a folder; only their order counts. A long file that starts last
 * runs alone while the other cores are idle.
 */
const SECONDS: Readonly<Record<string, number>> = {
  'package/package': 60,
  'stores/broken-stores': 55,
  'examples/examples': 50,
  'runner/fleet.pg': 48,
  'advisor/worker-files': 48,
  'notion/command': 48,
  'process/postgres.pg': 45,
  'runner/restate/chaos': 45,
  'cli/templates': 43,
  'stores/postgres.pg': 40,
  'simulation/crash-matrix': 40,
  'simulation/rules': 40,
  'console/console': 39,
  'cli/init.': 38,
  'runner/describe-runner.restate': 36,
  'mutants/mutants': 35,
  'process/sqlite.': 33,
  'simulation/vendors': 31,
  'runs/runs': 30,
  'cli/canaries': 29,
  'sources/files/cycles': 29,
  'engine/tidemark-world': 28,
  'cli/exit-codes': 27,
  'mutants/vendor-mutants': 25,
  'sources/promise/vendors': 25,
  'cli/interrupt': 25,
  'registry/data-keys.pg': 24,
  'simulation/seeds-': 24,
  'strategies/worlds': 23,
  'cli/init-sources': 23,
  'cli/start': 22,
  'runner/fairness': 21,
  'simulation/soft-deletes': 21,
  'simulation/seeds.pg': 20,
  'cli/restate': 20,
  'cli/init-postgres-cdc': 20,
  'docs/orm': 20,
  'examples/custom-store': 20,
  'stores/sqlite-thread': 20,
  'docs/write-a-connector': 19,
  'typings/types': 19,
  'runner/describe-runner': 18,
  'server/replica': 18,
  'server/no-gap': 16,
  'sources/odata/worlds': 16,
  'docs/notion-workers': 16,
  'console/demo': 16,
  'cli/redaction': 15,
  'cli/documents': 15,
  'runner/chaos': 14,
  'sources/postgres-cdc/chaos': 14,
  'cli/state': 14,
  'cli/keys': 14,
  'cli/example': 14,
  'mcp/mcp': 14,
  'strategies/search': 13,
  'process/memory': 12,
  'docs/': 12,
  'stores/schema/postgres': 12,
  'sources/odata/': 12,
  'sources/evm/': 11,
  'sources/stripe-bulk': 11,
  'cli/webhooks': 11,
  'cli/demo': 11,
  'cli/sim': 11,
  'console/': 10,
  'stores/postgres-locks': 8,
  'strategies/frontier-mutants': 8,
  'export/killed': 8,
  'runs/killed': 8,
  'cli/': 7,
  'client/killed': 3,
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
