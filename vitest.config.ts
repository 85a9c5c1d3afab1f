import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config'
import { LongestFirst } from './test/setup/longest-first.ts'

/** Suites that start no process and modify nothing global: a worker loads the modules once for all of their files. */
const SHARED_WORKERS = [
  'test/{engine,feed,linter,strategies,values}/**/*.test.ts',
  'test/registry/!(*.pg|rotation-killed).test.ts',
  'test/simulators/*.test.ts',
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
          include: ['test/**/*.test.ts'],
          exclude: [...SHARED_WORKERS, ...WITHOUT_PYICEBERG],
        },
      },
      { resolve, test: { ...options, name: 'shared workers', include: SHARED_WORKERS, isolate: false } },
    ],
  },
})
