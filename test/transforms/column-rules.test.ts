import { DatabaseSync } from '@photostructure/sqlite'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { describeColumnRules } from './column-rule-cases.ts'

describeColumnRules('sqlite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-columns-'))
  const file = join(folder, 'store.db')
  const store = await openSqliteStore({ file, synchronous: 'off' })
  return {
    store,
    async dump() {
      const database = new DatabaseSync(file)
      try {
        const tables = database.prepare("select name from sqlite_schema where type = 'table'").all() as {
          name: string
        }[]
        return JSON.stringify(
          tables.map(({ name }) => database.prepare(`select * from "${name}"`).all()),
          (_, value: unknown) =>
            typeof value === 'bigint'
              ? String(value)
              : value instanceof Uint8Array
                ? Buffer.from(value).toString('latin1')
                : value,
        )
      } finally {
        database.close()
      }
    },
    async close() {
      await store.close()
      await rm(folder, { recursive: true })
    },
  }
})
