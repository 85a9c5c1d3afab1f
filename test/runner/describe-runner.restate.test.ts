import { join } from 'node:path'
import { afterAll, describe, inject, test } from 'vitest'
import { describeRunner } from '../../src/testing/describe-runner.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { RestateHarness } from './restate-harness.ts'

const server = inject('postgresUrl')
const made: string[] = []
// The cases are about the runner; each store keeps its own contract. `npm run chaos:restate` runs them on both.
const isLong = process.env['TIDEMARK_LONG'] === '1'

describe.runIf(server !== '')('Restate and PostgreSQL', () => {
  afterAll(async () => {
    for (const url of made) await dropDatabase(server, url)
  })
  describeRunner(
    'Restate and PostgreSQL',
    async (url) => {
      const database = await createDatabase(server)
      made.push(database)
      return RestateHarness.open(() => database, url)
    },
    { runner: { describe, test: test.concurrent } },
  )
})

describe.runIf(isLong || server === '')('Restate and SQLite', () => {
  describeRunner(
    'Restate and SQLite',
    (url) => RestateHarness.open((folder) => `sqlite:${join(folder, 'stage.db')}`, url),
    { runner: { describe, test: test.concurrent } },
  )
})
