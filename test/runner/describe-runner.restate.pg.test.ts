import { afterAll, describe, inject, test } from 'vitest'
import { describeRunner } from '../../src/testing/describe-runner.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { RestateHarness } from './restate-harness.ts'

const server = inject('postgresUrl')
const made: string[] = []

describe.skipIf(server === '')('Restate and PostgreSQL', () => {
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
