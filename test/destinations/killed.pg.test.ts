import pg from 'pg'
import { describe, inject, onTestFinished, test } from 'vitest'
import { KILL_TIMEOUT_MS, killWhileApplying } from './kill-destination.ts'
import { readRows } from './postgres-harness.ts'

const server = inject('postgresUrl')
const suite = server === '' ? describe.skip : describe

suite('PostgreSQL', () => {
  test(
    'processes that are killed leave a destination that ends equal to the store',
    async () => {
      const schema = `killed_${process.pid}`
      const client = new pg.Client({ connectionString: server })
      await client.connect()
      await client.query("set timezone = 'UTC'")
      onTestFinished(async () => {
        await client.query(`drop schema if exists ${schema} cascade`)
        await client.end()
      })
      await killWhileApplying({
        kind: 'postgres',
        options: { url: server, schema },
        page: (after, limit) => readRows(client, schema, 'things', { after, limit }),
      })
    },
    KILL_TIMEOUT_MS,
  )
})
