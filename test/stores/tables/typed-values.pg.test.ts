import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Store } from '../../../src/contract/index.ts'
import { openPostgresStore } from '../../../src/stores/postgres/store.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'
import { query } from '../postgres-harness.ts'
import { checkValues, VALUE_CASES, type ReadColumn } from './typed-values.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('XD17 XD24 values in typed columns of PostgreSQL', () => {
  let url: string
  let store: Store
  beforeAll(async () => {
    url = await createDatabase(server)
    // Settings of the operator, which must not affect a record.
    const name = new URL(url).pathname.slice(1)
    await query(
      url,
      `alter database ${name} set timezone = 'Asia/Kolkata'; alter database ${name} set datestyle = 'German'`,
    )
    store = await openPostgresStore({ url })
  })
  afterAll(async () => {
    await store.close()
    await dropDatabase(server, url)
  })

  const TYPES = {
    bigint: 'bigint',
    boolean: 'boolean',
    date: 'date',
    double: 'double precision',
    json: 'jsonb',
    numeric: 'numeric',
    text: 'text',
    timestamp: 'timestamp with time zone',
  } as const

  const column: ReadColumn = async (database, type) => {
    const [info] = await query<{ type: string }>(
      url,
      `select format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = 'public."${database}"'::regclass and attname = 'm'`,
    )
    expect(info?.type).toBe(TYPES[type])
    const shown = {
      timestamp: `to_char(m at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
      date: "to_char(m, 'YYYY-MM-DD')",
      json: 'null::text',
    } as Record<string, string>
    const rows = await query<{ key: string; m: string | null }>(
      url,
      `select _key as key, ${shown[type] ?? 'm::text'} as m from public."${database}"`,
    )
    return new Map(rows.map(({ key, m }) => [key, m]))
  }

  test.each(Object.entries(VALUE_CASES))('%s come back exactly, and their column shows them', async (name, values) => {
    await checkValues(store, name.replaceAll(/[^a-z0-9]+/g, '_'), values, column)
  })
})
