import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Approximate CPU seconds of a file, or of each file of a folder; only their order counts. A long file that starts last
 * runs alone while the other cores are idle.
 */
const SECONDS: Readonly<Record<string, number>> = {
  'package/package': 60,
  'examples/custom-store': 53,
  'examples/examples': 50,
  'advisor/worker-files': 48,
  'notion/command': 48,
  'runner/restate/chaos': 45,
  'process/postgres.pg': 42,
  'stores/postgres.pg': 40,
  'cli/init.': 38,
  'simulation/crash-matrix': 36,
  'runner/describe-runner.restate': 36,
  'process/sqlite.': 35,
  'cli/templates': 35,
  'mutants/mutants': 35,
  'simulation/rules': 34,
  'console/console': 33,
  'cli/canaries': 31,
  'runs/runs': 30,
  'process/sqlite-file': 29,
  'sources/files/cycles': 29,
  'engine/tidemark-world': 28,
  'cli/exit-codes': 27,
  'mutants/vendor-mutants': 25,
  'cli/interrupt': 25,
  'registry/data-keys.pg': 24,
  'simulation/seeds-': 24,
  'strategies/worlds': 23,
  'cli/init-sources': 23,
  'runner/fleet.pg': 22,
  'simulation/vendors': 22,
  'cli/start': 22,
  'cli/pauses.test': 22,
  'process/hardening': 22,
  'runner/fairness': 21,
  'simulation/soft-deletes': 21,
  'stores/broken-stores': 20,
  'sources/promise/vendors': 20,
  'simulation/seeds.pg': 20,
  'cli/restate': 20,
  'cli/init-postgres-cdc': 20,
  'docs/orm': 20,
  'stores/sqlite-thread': 20,
  'docs/write-a-connector': 19,
  'typings/types': 19,
  'process/stop': 19,
  'runner/describe-runner': 18,
  'server/replica': 17,
  'server/no-gap': 16,
  'stores/sqlite.': 16,
  'sources/odata/worlds': 16,
  'docs/notion-workers': 16,
  'console/demo': 16,
  'cli/redaction': 15,
  'cli/documents': 15,
  'runner/chaos': 14,
  'process/memory': 14,
  'sources/postgres-cdc/chaos': 14,
  'cli/state': 14,
  'cli/keys': 14,
  'cli/example': 14,
  'mcp/mcp': 14,
  'strategies/search': 13,
  'config/discover-vendors': 12,
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

/**
 * A shared worker ends when the next file in the queue needs a worker of its own: the files of shared workers stay
 * together, at the end, where the short ones keep every core busy.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = ({ moduleId }: TestSpecification): number => {
      const found = Object.entries(SECONDS).filter(([name]) => moduleId.includes(`/test/${name}`))
      return Math.max(0, ...found.map(([, seconds]) => seconds))
    }
    const isShared = ({ project }: TestSpecification): number => (project.config.isolate ? 0 : 1)
    return (await super.sort(files)).toSorted((a, b) => isShared(a) - isShared(b) || secondsOf(b) - secondsOf(a))
  }
}
