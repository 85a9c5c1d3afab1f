import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/setup/longest-first.ts'

export default defineConfig({
  // The sources of the workspace, so that tests and the simulation share one copy of its modules.
  resolve: { alias: { '@tidemark/simulators': fileURLToPath(new URL('simulators/src/index.ts', import.meta.url)) } },
  test: {
    include: ['test/**/*.test.ts'],
    // One private PostgreSQL for the run.
    globalSetup: ['test/setup/postgres.ts'],
    // Real processes, servers and files: slow machines are no reason to fail.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // Most of a test is waiting for a process or a server: a core is not kept free for the reporter.
    maxWorkers: availableParallelism() + 1,
    // Cases of a runner wait for leases and slots: a few of them at a time.
    maxConcurrency: 3,
    // For the stores that need a key to be given: any will do.
    env: { TIDEMARK_KEY: Buffer.alloc(32, 'tidemark').toString('base64') },
  },
})
