import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { inject } from 'vitest'
import type { Store } from '../../../src/contract/index.ts'
import { openPostgresStore } from '../../../src/stores/postgres/store.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'

export type SqlRow = Record<string, unknown>

/** An empty store, and a user's connection to its database. */
export interface StoreFixture {
  readonly store: Store
  /** Reopens the store, as a later program does. */
  reopen(meanwhile: () => Promise<void>): Promise<void>
  sql(text: string): Promise<SqlRow[]>
  /** The type of each field's column by name, and whether it is not null. */
  columns(table?: string): Promise<Record<string, string>>
  close(): Promise<void>
}

export const STORE_FIXTURES: Readonly<Record<string, () => Promise<StoreFixture>>> = {
  sqlite: openSqlite,
  postgres: openPostgres,
}

async function openSqlite(): Promise<StoreFixture> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-shapes-'))
  const file = join(folder, 'store.db')
  const open = (): Promise<Store> => openSqliteStore({ file, synchronous: 'off' })
  let store = await open()
  const sql = async (text: string): Promise<SqlRow[]> => {
    const db = new DatabaseSync(file)
    try {
      return db.prepare(text).all() as SqlRow[]
    } finally {
      db.close()
    }
  }
  return {
    get store() {
      return store
    },
    async reopen(meanwhile) {
      await store.close()
      await meanwhile()
      store = await open()
    },
    sql,
    async columns(table = 'things') {
      const rows = await sql(
        `select name, type, "notnull" as required from pragma_table_info('${table}') where name not like '\\_%' escape '\\' order by cid`,
      )
      return Object.fromEntries(
        rows.map(({ name, type, required }) => [String(name), `${String(type)}${required === 1 ? ' not null' : ''}`]),
      )
    },
    async close() {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function openPostgres(): Promise<StoreFixture> {
  const url = await createDatabase(inject('postgresUrl'))
  const open = (): Promise<Store> => openPostgresStore({ url, poolMax: 2 })
  let store = await open()
  const sql = async (text: string): Promise<SqlRow[]> => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return (await client.query(text)).rows as SqlRow[]
    } finally {
      await client.end()
    }
  }
  return {
    get store() {
      return store
    },
    async reopen(meanwhile) {
      await store.close()
      await meanwhile()
      store = await open()
    },
    sql,
    async columns(table = 'things') {
      const rows =
        await sql(`select column_name as name, case data_type when 'ARRAY' then substr(udt_name, 2) || '[]' else data_type end as type, is_nullable
        from information_schema.columns where table_schema = 'public' and table_name = '${table}' and column_name not like '\\_%' order by ordinal_position`)
      return Object.fromEntries(
        rows.map(({ name, type, is_nullable: nullable }) => [
          String(name),
          `${String(type)}${nullable === 'NO' ? ' not null' : ''}`,
        ]),
      )
    },
    async close() {
      await store.close()
      await dropDatabase(inject('postgresUrl'), url)
    },
  }
}
