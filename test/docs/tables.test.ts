import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, onTestFinished } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { locateStore } from '../../src/stores/drivers.ts'
import { describeTablesGuide } from './tables-cases.ts'

describe('on SQLite', () => {
  describeTablesGuide(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-guide-'))
    const file = join(folder, 'store.db')
    const store = await openSqliteStore({ file, synchronous: 'off' })
    onTestFinished(async () => {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    })
    return { store, location: locateStore(`sqlite:${file}`, '/') }
  })
})
