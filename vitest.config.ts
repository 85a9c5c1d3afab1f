import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config'
import { LongestFirst } from './test/setup/longest-first.ts'

/**
 * Suites that need a worker process of their own: they replace modules or globals, leave processes behind when they
 * fail, or load copies of the sources. The workers of all others load the modules once for many files.
 */
const OWN_WORKER = [
  'test/{bench,cli,console,docs,examples,mutants,notion,package,planted,process,redaction,runner,telemetry}/**',
  'test/config/key-file-durability.test.ts',
  'test/destinations/duckdb-missing-package.test.ts',
  'test/engine/page-signals.test.ts',
  'test/export/killed.test.ts',
  'test/platform/{clock,lease-holder}.test.ts',
  'test/registry/*.pg.test.ts',
  'test/registry/rotation-killed.test.ts',
  'test/sources/{kafka,sql}/missing-package.test.ts',
  'test/stores/{describe-store,feed-cost.pg,postgres-faults.pg}.test.ts',
  'test/stores/{migrations,schema}/*.test.ts',
]

/** For `npm run campaign:lake`: it needs a Python package, which neither npm nor Debian carries. */
const WITHOUT_PYICEBERG = process.env['TIDEMARK_PYICEBERG_PYTHON'] ? [] : ['test/destinations/lake-pyiceberg.test.ts']

/** In the workers and in every process that a test starts. */
const MEMOIZE_TRANSFORM = `--require=${fileURLToPath(new URL('test/setup/memoize-transform.cjs', import.meta.url))}`

const options: UserWorkspaceConfig['test'] = {
  // Real processes, servers and files: slow machines are no reason to fail.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 60_000 } },
  pool: 'forks',
  execArgv: [MEMOIZE_TRANSFORM],
  // Cases of a runner wait for leases and slots: a few of them at a time.
  maxConcurrency: 3,
  env: {
    // For the stores that need a key to be given: any will do.
    TIDEMARK_KEY: Buffer.alloc(32, 'tidemark').toString('base64'),
    NODE_OPTIONS: MEMOIZE_TRANSFORM,
  },
}

/** The sources of the workspace, so that tests and the simulation share one copy of its modules. */
const resolve = {
  alias: {
    '@tidemark/simulators': fileURLToPath(new URL('simulators/src/index.ts', import.meta.url)),
    'tidemark/destinations/http/receiver': fileURLToPath(new URL('src/destinations/http/receiver.ts', import.meta.url)),
  },
}

export default defineConfig({
  test: {
    // One private PostgreSQL for the run.
    globalSetup: ['test/setup/postgres.ts'],
    sequence: { sequencer: LongestFirst },
    // Most of a test is waiting for a process or a server: a core is not kept free for the reporter.
    maxWorkers: availableParallelism() + 1,
    projects: [
      {
        resolve,
        test: {
          ...options,
          name: 'own worker',
          include: OWN_WORKER.map((pattern) => pattern.replace(/\*\*$/, '**/*.test.ts')),
        },
      },
      {
        resolve,
        test: {
          ...options,
          name: 'shared workers',
          include: ['test/**/*.test.ts'],
          exclude: [...OWN_WORKER, ...WITHOUT_PYICEBERG],
          isolate: false,
        },
      },
    ],
  },
})
