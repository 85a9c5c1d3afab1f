import { afterAll, describe, inject, test } from 'vitest'
import { describeRunner } from '../../src/testing/describe-runner.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { FleetHarness } from './fleet-harness.ts'

const server = inject('postgresUrl')
const made: string[] = []

describe.skipIf(server === '')('PostgreSQL', () => {
  afterAll(async () => {
    for (const url of made) await dropDatabase(server, url)
  })
  describeRunner(
    'PostgreSQL',
    async (url) => {
      const database = await createDatabase(server)
      made.push(database)
      return FleetHarness.open(database, url)
    },
    { runner: { describe, test: test.concurrent } },
  )
})
