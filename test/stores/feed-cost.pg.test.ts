import pg from 'pg'
import { describe, inject, onTestFinished } from 'vitest'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { describeFeedCost } from './feed-cost-cases.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('the cost of the feed on PostgreSQL', () => {
  describeFeedCost(async () => {
    const url = await createDatabase(server)
    const store = await openPostgresStore({ url, poolMax: 2 })
    onTestFinished(async () => {
      await store.close()
      await dropDatabase(server, url)
    })
    return {
      store,
      async statementsOf(act) {
        // oxlint-disable-next-line typescript/no-explicit-any -- a method of many signatures, passed through as it is
        const { query: send } = pg.Client.prototype as any
        const statements: string[] = []
        pg.Client.prototype.query = function (this: pg.Client, ...parameters: unknown[]) {
          const [given] = parameters as [string | { text?: string }]
          statements.push(typeof given === 'string' ? given : (given.text ?? ''))
          return send.apply(this, parameters)
        } as typeof send
        try {
          await act()
        } finally {
          pg.Client.prototype.query = send
        }
        return statements
      },
      async scansOf(statements) {
        const client = new pg.Client({
          connectionString: Object.assign(new URL(server), { pathname: new URL(url).pathname }).href,
        })
        await client.connect()
        // For small tables the planner would prefer a full scan.
        await client.query('set enable_seqscan = off; set plan_cache_mode = force_generic_plan')
        const scans: string[] = []
        for (const sql of statements.filter((text) => /^\s*select/.test(text) && /sequence/.test(text))) {
          const parameters = new Set(sql.match(/\$\d+/g))
          await client.query(`prepare page as ${sql}`)
          const { rows } = await client.query<{ 'QUERY PLAN': string }>(
            `explain execute page${parameters.size === 0 ? '' : `(${[...parameters].map(() => 'null').join()})`}`,
          )
          await client.query('deallocate page')
          scans.push(...rows.map((row) => row['QUERY PLAN']).filter((step) => /Seq Scan/.test(step)))
        }
        await client.end()
        return scans
      },
    }
  })
})
