import { afterAll, describe, inject } from 'vitest'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { describeFleet } from './fleet-cases.ts'

const server = inject('postgresUrl')
const made: string[] = []

describe.skipIf(server === '')('PostgreSQL', () => {
  afterAll(async () => {
    for (const url of made) await dropDatabase(server, url)
  })
  describeFleet('PostgreSQL database', async () => {
    const url = await createDatabase(server)
    made.push(url)
    return url
  })
})
