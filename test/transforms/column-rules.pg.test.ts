import pg from 'pg'
import { inject } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { describeColumnRules } from './column-rule-cases.ts'

const server = inject('postgresUrl')

describeColumnRules('postgres', async () => {
  const url = await createDatabase(server)
  const store = await openPostgresStore({ url, poolMax: 4 })
  return {
    store,
    async dump() {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      try {
        await client.query("set tidemark.tenant = 'default'")
        const { rows: tables } = await client.query<{ name: string }>(
          "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('tidemark', 'public')",
        )
        const texts: string[] = []
        for (const { name } of tables)
          texts.push(JSON.stringify((await client.query(`select t::text from ${name} t`)).rows))
        return texts.join('\n')
      } finally {
        await client.end()
      }
    },
    async close() {
      await store.close()
      await dropDatabase(server, url)
    },
  }
})
