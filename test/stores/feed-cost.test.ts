import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, onTestFinished } from 'vitest'
import { Connection } from '../../src/stores/sqlite/connection.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { describeFeedCost } from './feed-cost-cases.ts'

describe('the cost of the feed on SQLite', () => {
  describeFeedCost(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-feed-cost-'))
    const file = join(folder, 'store.db')
    const store = await openSqliteStore({ file, synchronous: 'off' })
    onTestFinished(async () => {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    })
    return {
      store,
      async statementsOf(act) {
        const { prepare, prepareArrays } = Connection.prototype
        const statements: string[] = []
        // Includes the number of rows that each returns: reading unneeded rows costs as well.
        const counted = (method: typeof prepare): typeof prepare =>
          function (this: Connection, sql) {
            const statement = method.call(this, sql)
            return {
              all(...parameters: never[]) {
                const rows = statement.all(...parameters)
                statements.push(`${sql} -- ${rows.length <= 2 ? 'few' : rows.length} rows`)
                return rows
              },
              get(...parameters: never[]) {
                statements.push(sql)
                return statement.get(...parameters)
              },
            } as unknown as typeof statement
          }
        Object.assign(Connection.prototype, { prepare: counted(prepare), prepareArrays: counted(prepareArrays) })
        try {
          await act()
        } finally {
          Object.assign(Connection.prototype, { prepare, prepareArrays })
        }
        return statements
      },
      async scansOf(statements) {
        const db = new DatabaseSync(file)
        const plans = statements.flatMap((sql) =>
          db
            .prepare(`explain query plan ${sql}`)
            .all()
            .map((step) => `${(step as { detail: string }).detail}: ${sql}`),
        )
        db.close()
        return plans.filter((step) => /^(?:SCAN(?! CONSTANT)|USE TEMP B-TREE)/.test(step))
      },
    }
  })
})
