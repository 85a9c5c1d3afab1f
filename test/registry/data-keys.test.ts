import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { describeDataKeys } from './data-key-cases.ts'

describeDataKeys('sqlite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-data-keys-'))
  const file = join(folder, 'store.db')
  const store = await openSqliteStore({ file, synchronous: 'off' })
  return {
    store,
    async sql(text) {
      const db = new DatabaseSync(file)
      try {
        const statement = text.replaceAll('tables.', 'tidemark_')
        return statement.startsWith('select')
          ? (db.prepare(statement).all() as Array<Record<string, unknown>>)
          : (db.exec(statement), [])
      } finally {
        db.close()
      }
    },
    async close() {
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
})
