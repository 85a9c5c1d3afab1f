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

const options: UserWorkspaceConfig['test'] = {
  // Real processes, servers and files: slow machines are no reason to fail.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 60_000 } },
  pool: 'forks',
  // Cases of a runner wait for leases and slots: a few of them at a time.
  maxConcurrency: 3,
  // For the stores that need a key to be given: any will do.
  env: { TIDEMARK_KEY: Buffer.alloc(32, 'tidemark').toString('base64') },
}

/** The sources of the workspace, so that tests and the simulation share one copy of its modules. */
const resolve = {
  alias: { '@tidemark/simulators': fileURLToPath(new URL('simulators/src/index.ts', import.meta.url)) },
}

export default defineConfig({
  test: {
    // One private PostgreSQL for the run.
    globalSetup: ['test/setup/postgres.ts'],
    sequence: { sequencer: LongestFirst },
    // Most of a test is waiting for a process or a server: a core is not kept free for the reporter.
    maxWorkers: availableParallelism() + 1,
    projects: [
      { resolve, test: { ...options, name: 'own worker', include: ['test/**/*.test.ts'], exclude: SHARED_WORKERS } },
      { resolve, test: { ...options, name: 'shared workers', include: SHARED_WORKERS, isolate: false } },
    ],
  },
})
