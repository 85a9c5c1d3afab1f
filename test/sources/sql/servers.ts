import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'
import { hasMariadb, startMariadb } from '../../setup/mariadb-server.ts'

/** A database to read from, with a second way in for the test. */
export interface Source {
  readonly url: string
  /** Statements of this database's own; `;` between them. */
  exec(sql: string): Promise<void>
  query(sql: string): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

export interface SourceKind {
  readonly name: 'postgres' | 'mariadb' | 'sqlite'
  readonly isHere: (postgresUrl: string) => boolean
  open(postgresUrl: string): Promise<Source>
  /** A timestamp that the test writes, and one of the server's clock. */
  readonly stampType: string
  readonly now: string
  readonly ago: (seconds: number) => string
}

export const SOURCES: readonly SourceKind[] = [
  {
    name: 'postgres',
    isHere: (url) => url !== '',
    stampType: 'timestamptz',
    now: 'clock_timestamp()',
    ago: (seconds) => `clock_timestamp() - interval '${seconds} seconds'`,
    async open(server) {
      const url = await createDatabase(server)
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      return {
        url,
        exec: async (sql) => void (await client.query(sql)),
        query: async (sql) => (await client.query(sql)).rows,
        close: async () => {
          await client.end()
          await dropDatabase(server, url)
        },
      }
    },
  },
  {
    name: 'mariadb',
    isHere: () => hasMariadb,
    stampType: 'timestamp(6)',
    now: 'utc_timestamp(6)',
    ago: (seconds) => `utc_timestamp(6) - interval ${seconds} second`,
    async open() {
      const server = await startMariadb()
      const connection = await mysql.createConnection({
        uri: server.url.replace('mariadb:', 'mysql:'),
        multipleStatements: true,
      })
      await connection.query("set time_zone = '+00:00'")
      return {
        url: server.url,
        exec: async (sql) => void (await connection.query(sql)),
        query: async (sql) => (await connection.query(sql))[0] as Record<string, unknown>[],
        close: async () => {
          connection.destroy()
          await server.stop()
        },
      }
    },
  },
  {
    name: 'sqlite',
    isHere: () => true,
    stampType: 'text',
    now: "strftime('%Y-%m-%d %H:%M:%f', 'now')",
    ago: (seconds) => `strftime('%Y-%m-%d %H:%M:%f', 'now', '${-seconds} seconds')`,
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'tidemark-sql-'))
      const file = join(folder, 'shop.db')
      const db = new DatabaseSync(file)
      db.exec('pragma journal_mode = wal')
      return {
        url: `sqlite:${file}`,
        exec: async (sql) => db.exec(sql),
        query: async (sql) => db.prepare(sql).all() as Record<string, unknown>[],
        close: async () => {
          db.close()
          rmSync(folder, { recursive: true, force: true })
        },
      }
    },
  },
]
