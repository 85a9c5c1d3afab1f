import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite'
import { SyncError, type ErrorCode } from '../../contract/index.ts'
import { POSITIONS_PER_TENANT, SCHEMA, SCHEMA_VERSION, TENANTS_MAX } from './schema.ts'

export interface ConnectionOptions {
  /** A path, or `:memory:`. */
  readonly file: string
  /** `full` survives a power cut after every acknowledged commit; `normal` may lose the last ones, never the order. */
  readonly synchronous?: 'full' | 'normal' | 'off'
  readonly busyTimeoutMs?: number
}

/** One SQLite connection and its prepared statements. */
export class Connection {
  readonly #db: DatabaseSyncInstance
  readonly #statements = new Map<string, StatementSyncInstance>()

  constructor(options: ConnectionOptions) {
    const { file, synchronous = 'full', busyTimeoutMs = 5_000 } = options
    try {
      if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true })
      this.#db = new DatabaseSync(file)
    } catch (error) {
      throw new SyncError('STORE_UNAVAILABLE', `Cannot open the SQLite file ${file}: ${message(error)}.`, { cause: error })
    }
    try {
      this.#db.exec(`pragma busy_timeout = ${busyTimeoutMs}; pragma page_size = 8192`)
      if (file !== ':memory:') this.#db.exec('pragma journal_mode = wal')
      this.#db.exec(`pragma synchronous = ${synchronous}; pragma cache_size = -32768; pragma wal_autocheckpoint = 2000; pragma journal_size_limit = 67108864`)
      this.#migrate(file)
    } catch (error) {
      this.#db.close()
      throw translate(error, file)
    }
  }

  prepare(sql: string): StatementSyncInstance {
    let statement = this.#statements.get(sql)
    if (statement === undefined) this.#statements.set(sql, (statement = this.#db.prepare(sql)))
    return statement
  }

  get<Row>(sql: string, ...parameters: Parameter[]): Row | undefined {
    return this.prepare(sql).get(...parameters) as Row | undefined
  }

  all<Row>(sql: string, ...parameters: Parameter[]): Row[] {
    return this.prepare(sql).all(...parameters) as Row[]
  }

  run(sql: string, ...parameters: Parameter[]): { changes: number; lastInsertRowid: number } {
    const { changes, lastInsertRowid } = this.prepare(sql).run(...parameters)
    return { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) }
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  /** All of it or nothing. `body` may undo everything by returning `rollback(value)`. */
  write<T>(body: () => T | Rollback<T>): T {
    try {
      this.#db.exec('begin immediate')
      let result: T | Rollback<T>
      try {
        result = body()
        if (!(result instanceof Rollback)) {
          this.#db.exec('commit')
          return result
        }
      } catch (error) {
        this.#rollback()
        throw error
      }
      this.#rollback()
      return result.value
    } catch (error) {
      throw translate(error)
    }
  }

  /** Several statements that see one state of the file. */
  read<T>(body: () => T): T {
    try {
      return body()
    } catch (error) {
      throw translate(error)
    }
  }

  close(): void {
    this.#statements.clear()
    if (this.#db.isOpen) this.#db.close()
  }

  #rollback(): void {
    // SQLite has already rolled back after some errors, such as a full disk.
    if (this.#db.isTransaction) this.#db.exec('rollback')
  }

  #migrate(file: string): void {
    const { user_version: version } = this.get<{ user_version: number }>('pragma user_version')!
    if (version === SCHEMA_VERSION) return
    if (version > SCHEMA_VERSION) {
      throw new SyncError('STORE_NEWER', `${file} has schema version ${version}; this tidemark knows ${SCHEMA_VERSION}.`)
    }
    this.write(() => {
      // Another process may have been faster.
      if (this.get<{ user_version: number }>('pragma user_version')!.user_version === SCHEMA_VERSION) return
      const foreign = this.get<{ name: string }>("select name from sqlite_schema where name like 'tidemark\\_%' escape '\\' limit 1")
      if (foreign !== undefined) throw new SyncError('STORE_FOREIGN', `${file} already has a table ${foreign.name}, but no schema version.`)
      this.#db.exec(SCHEMA)
      this.#db.exec(`pragma user_version = ${SCHEMA_VERSION}`)
    })
  }
}

export type Parameter = string | number | null

export class Rollback<T> {
  readonly value: T
  constructor(value: T) {
    this.value = value
  }
}

export function rollback<T>(value: T): Rollback<T> {
  return new Rollback(value)
}

/** A tenant's place in the file: its number and the start of its positions. */
export interface Session {
  readonly connection: Connection
  readonly tenant: string
  readonly tenantId: number
  readonly base: number
}

export function openSession(connection: Connection, tenant: string): Session {
  return connection.write(() => {
    connection.run('insert into tidemark_tenants (name) values (?) on conflict do nothing', tenant)
    const { tenant_id: tenantId } = connection.get<{ tenant_id: number }>('select tenant_id from tidemark_tenants where name = ?', tenant)!
    if (tenantId > TENANTS_MAX) throw new SyncError('STORE_FAILED', `A SQLite store holds at most ${TENANTS_MAX} tenants.`)
    return { connection, tenant, tenantId, base: tenantId * POSITIONS_PER_TENANT }
  })
}

const CODES: Record<number, ErrorCode> = {
  5: 'STORE_BUSY', // SQLITE_BUSY
  6: 'STORE_BUSY', // SQLITE_LOCKED
  8: 'STORE_READONLY',
  10: 'STORE_UNAVAILABLE', // SQLITE_IOERR
  11: 'STORE_FAILED', // SQLITE_CORRUPT
  13: 'STORE_FULL',
  14: 'STORE_UNAVAILABLE', // SQLITE_CANTOPEN
  26: 'STORE_FOREIGN', // SQLITE_NOTADB
}

function translate(error: unknown, file?: string): unknown {
  const extended = (error as { errcode?: unknown } | null)?.errcode
  if (typeof extended !== 'number') return error
  const where = file === undefined ? 'SQLite' : `SQLite file ${file}`
  return new SyncError(CODES[extended & 0xff] ?? 'STORE_FAILED', `${where}: ${message(error)} (code ${extended}).`, { cause: error })
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
