import { describe, inject, onTestFinished } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { locateStore } from '../../src/stores/drivers.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { describeTablesGuide } from './tables-cases.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('on PostgreSQL', () => {
  describeTablesGuide(async () => {
    const url = await createDatabase(server)
    const store = await openPostgresStore({ url, poolMax: 2 })
    onTestFinished(async () => {
      await store.close()
      await dropDatabase(server, url)
    })
    return { store, location: locateStore(url, '/') }
  })
})
