import pg from 'pg'
import { inject } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { describeRolledBack } from './rolled-back-cases.ts'

const server = inject('postgresUrl')

describeRolledBack('postgres', async () => {
  const url = await createDatabase(server)
  const store = await openPostgresStore({ url, poolMax: 4 })
  // The role of the application, which owns the tables.
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query("set tidemark.tenant = 'default'")
  return {
    store,
    sql: async (text) => (await client.query<Record<string, unknown>>(text.replaceAll('tables.', 'tidemark.'))).rows,
    async close() {
      await client.end()
      await store.close()
      await dropDatabase(server, url)
    },
  }
})
