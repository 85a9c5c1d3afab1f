import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../../src/contract/index.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { canonicalizeInstant } from '../../../src/values/instant.ts'
import { checkValues, VALUE_CASES, type ReadColumn } from './typed-values.ts'

describe('XD17 XD24 values in typed columns of SQLite', () => {
  let folder: string
  let store: Store
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tidemark-values-'))
    store = await openSqliteStore({ file: join(folder, 'store.db') })
  })
  afterAll(async () => {
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const TYPES = {
    bigint: 'integer',
    boolean: 'boolean',
    date: 'date',
    double: 'real',
    json: 'json',
    numeric: 'text',
    text: 'text',
    timestamp: 'datetime',
  } as const

  const column: ReadColumn = async (database, type) => {
    using db = new DatabaseSync(join(folder, 'store.db'))
    const info = db.prepare('select name, type from pragma_table_info(?)').all(database) as Array<{
      name: string
      type: string
    }>
    expect(info.find(({ name }) => name === 'm')?.type.toLowerCase()).toBe(TYPES[type])
    // `real` as a number; the rest as SQLite's text.
    const rows = db
      .prepare(
        `select _key as key, typeof(m) as kind, ${type === 'double' ? 'm' : 'cast(m as text) as m'} from "${database}"`,
      )
      .all()
    return new Map(
      (rows as Array<{ key: string; kind: string; m: string | number | null }>).map(({ key, kind, m }) => {
        if (m === null || type === 'json') return [key, null]
        if (type === 'boolean') return [key, { 0: 'false', 1: 'true' }[String(m)] ?? `${kind} ${m}`]
        return [key, type === 'timestamp' ? (canonicalizeInstant(String(m)) ?? String(m)) : String(m)]
      }),
    )
  }

  test.each(Object.entries(VALUE_CASES))('%s come back exactly, and their column shows them', async (name, values) => {
    await checkValues(store, name.replaceAll(/[^a-z0-9]+/g, '_'), values, column)
  })
})
