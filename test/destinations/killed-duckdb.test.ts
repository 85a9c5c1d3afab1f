import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished, test } from 'vitest'
import { makeFolder, readRows } from './duckdb-harness.ts'
import { KILL_TIMEOUT_MS, killWhileApplying } from './kill-destination.ts'

test(
  'DuckDB: processes that are killed leave a destination that ends equal to the store',
  async () => {
    const folder = makeFolder()
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'copy.duckdb')
    await killWhileApplying({
      kind: 'duckdb',
      options: { file },
      page: (after, limit) => readRows(file, 'things', 'main', { after, limit }),
    })
  },
  KILL_TIMEOUT_MS,
)
