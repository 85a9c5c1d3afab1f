import { randomUUID } from 'node:crypto'
import { accessSync, constants, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite'
import { SyncError, type ErrorCode } from '../../contract/index.ts'
import { createQueryTooLongError } from '../kit/query-too-long-error.ts'
import { DROP_OLD_TABLES, migrateLog, type MigrationProgress } from './migrate-log.ts'
import { MIGRATIONS, SCHEMA_VERSION, SCHEMA_VERSION_MIN } from './schema.ts'
import { required } from '../../values/required.ts'

export interface ConnectionOptions {
  /** A path, or `:memory:`. */
  readonly file: string
  /** `full` survives a power loss after every acknowledged change; `normal` may lose the last ones, never the order. */
  readonly synchronous?: 'full' | 'normal' | 'off'
  readonly busyTimeoutMs?: number
  /** Called repeatedly while a store of an older version is migrated, which can take minutes. */
  readonly onMigration?: (progress: MigrationProgress) => void
}

/** Statements that create the tables of the current version, read from the first new store of this process. */
let currentTables: string | undefined

/** The share of rows whose read checks the clock: a call from SQLite costs as much as reading several rows. */
const DEADLINE_EVERY = 64
/** True until the deadline of `withDeadline`, for a statement that may read many rows with a `_sequence`. */
export const DEADLINE_CONDITION = `(_sequence % ${DEADLINE_EVERY} <> 0 or tidemark_in_time())`

/** One SQLite connection and its prepared statements. */
export class Connection {
  readonly #db: DatabaseSyncInstance
  readonly #statements = new Map<string, StatementSyncInstance>()
  readonly #arrayStatements = new Map<string, StatementSyncInstance>()
  readonly #synchronous: string
  /** Syncs whose last page could be undone, and so probably the next one; see `writeUndoable`. */
  readonly undoableSyncs = new Set<string>()
  #deadline: { readonly until: number; isOver: boolean } | null = null
  /** Unique per connection, because every connection counts its own changes. */
  readonly #id = randomUUID()

  constructor(options: ConnectionOptions) {
    const { file, synchronous = 'full', busyTimeoutMs = 5_000 } = options
    this.#synchronous = synchronous
    try {
      if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true })
      this.#db = new DatabaseSync(file)
    } catch (error) {
      throw new SyncError(
        isReadOnlyPath(file) ? 'STORE_READONLY' : 'STORE_UNAVAILABLE',
        `Cannot open the SQLite file ${file}: ${errorMessage(error)}.`,
        { cause: error },
      )
    }
    try {
      this.#db.exec(`pragma busy_timeout = ${busyTimeoutMs}`)
      // Read before the first write: a file of another program must not be modified.
      this.#readVersion(file)
      this.#db.exec('pragma page_size = 8192')
      if (file !== ':memory:') this.#enableWal(busyTimeoutMs)
      this.#db.exec(
        `pragma synchronous = ${synchronous}; pragma cache_size = -8192; pragma wal_autocheckpoint = 2000; pragma journal_size_limit = 67108864`,
      )
      this.#migrate(file, options.onMigration)
    } catch (error) {
      this.#db.close()
      throw toSyncError(error, file)
    }
  }

  prepare(sql: string): StatementSyncInstance {
    let statement = this.#statements.get(sql)
    if (statement === undefined) this.#statements.set(sql, (statement = this.#db.prepare(sql)))
    return statement
  }

  /** Returns rows as arrays of values: a third cheaper for many rows. */
  prepareArrays(sql: string): StatementSyncInstance {
    const known = this.#arrayStatements.get(sql)
    if (known !== undefined) return known
    const statement = this.#db.prepare(sql)
    statement.setReturnArrays(true)
    this.#arrayStatements.set(sql, statement)
    return statement
  }

  /** Rows as tuples of their values, in the order of the select list. */
  tuples<Tuple extends readonly unknown[]>(sql: string, ...parameters: Parameter[]): Tuple[] {
    return this.prepareArrays(sql).all(...parameters) as unknown[] as Tuple[]
  }

  tuple<Tuple extends readonly unknown[]>(sql: string, ...parameters: Parameter[]): Tuple | undefined {
    return this.prepareArrays(sql).get(...parameters) as unknown as Tuple | undefined
  }

  get<Row>(sql: string, ...parameters: Parameter[]): Row | undefined {
    return this.prepare(sql).get(...parameters) as Row | undefined
  }

  /** Like `get`, for a statement that always returns a row. */
  one<Row>(sql: string, ...parameters: Parameter[]): Row {
    return required(this.get<Row>(sql, ...parameters), 'The row of a statement that always returns one')
  }

  all<Row>(sql: string, ...parameters: Parameter[]): Row[] {
    return this.prepare(sql).all(...parameters) as Row[]
  }

  /** Rows as tuples, of a statement that is not kept: its text varies with the request. */
  queryOnce(sql: string, parameters: readonly Parameter[]): unknown[][] {
    const statement = this.#db.prepare(sql)
    statement.setReturnArrays(true)
    return statement.all(...parameters) as unknown as unknown[][]
  }

  /**
   * Stops statements that contain DEADLINE_CONDITION after this time. SQLite blocks the thread while it runs, so the
   * statement itself has to check the clock.
   */
  withDeadline<T>(deadlineMs: number, body: () => T): T {
    this.#registerDeadline()
    this.#deadline = { until: performance.now() + deadlineMs, isOver: false }
    try {
      return body()
    } catch (error) {
      throw this.#deadline.isOver ? createQueryTooLongError(deadlineMs) : error
    }
  }

  #registerDeadline(): void {
    if (this.#deadline !== null) return
    this.#db.function('tidemark_in_time', { deterministic: false }, () => {
      const deadline = required(this.#deadline, 'The deadline of the statement')
      deadline.isOver ||= performance.now() > deadline.until
      if (deadline.isOver) throw new Error('too late')
      return 1
    })
  }

  /** Reads row by row, and stops when the caller stops. */
  iterate<Row>(sql: string, ...parameters: Parameter[]): Iterable<Row> {
    return this.prepare(sql).iterate(...parameters) as Iterable<Row>
  }

  run(sql: string, ...parameters: Parameter[]): { changes: number; lastInsertRowid: number } {
    const { changes, lastInsertRowid } = this.prepare(sql).run(...parameters)
    return { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) }
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  /** Runs `body` atomically. It may undo everything by returning `rollback(value)`. */
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
      throw toSyncError(error)
    }
  }

  /** Like `write`, without waiting for the disk: a power cut may undo it, and never what was committed before it. */
  writeUndoable<T>(body: () => T | Rollback<T>): T {
    if (this.#synchronous !== 'full') return this.write(body)
    this.#db.exec('pragma synchronous = normal')
    try {
      return this.write(body)
    } finally {
      this.#db.exec('pragma synchronous = full')
    }
  }

  /** Runs several statements on one snapshot of the file. */
  read<T>(body: () => T): T {
    try {
      this.#db.exec('begin')
      try {
        return body()
      } finally {
        this.#rollback()
      }
    } catch (error) {
      throw toSyncError(error)
    }
  }

  /**
   * Changes when the file changes, by this connection or another. It describes the state that the current transaction
   * sees.
   */
  readChangeMark(): string {
    const { own } = this.one<{ own: number }>('select total_changes() as own from sqlite_schema limit 1')
    const { data_version: others } = this.one<{ data_version: number }>('pragma data_version')
    return `${this.#id}/${own}/${others}`
  }

  /**
   * The driver releases the file only when its statements are garbage-collected, which for the thread is its end.
   * Another process may read the file before that, so the log is checkpointed here.
   */
  close(): void {
    this.#statements.clear()
    this.#arrayStatements.clear()
    if (!this.#db.isOpen) return
    try {
      this.#db.exec('pragma busy_timeout = 0; pragma wal_checkpoint(truncate)')
    } catch {
      // Another process is active, or the disk is full: the log stays beside the file, and the next reader uses both.
    }
    this.#db.close()
  }

  #rollback(): void {
    // SQLite has already rolled back after some errors, such as a full disk.
    if (this.#db.isTransaction) this.#db.exec('rollback')
  }

  /**
   * Switching to WAL reads the file first and then needs it exclusively. SQLite does not wait for that, because two
   * processes that switch at once would deadlock. A refused process releases the file and retries, so the wait is
   * implemented here.
   */
  #enableWal(busyTimeoutMs: number): void {
    this.#db.exec('pragma busy_timeout = 0')
    for (let leftMs = busyTimeoutMs; ; leftMs -= BUSY_RETRY_MS) {
      try {
        this.#db.exec('pragma journal_mode = wal')
        break
      } catch (error) {
        if (((extendedErrorCode(error) ?? 0) & 0xff) !== SQLITE_BUSY || leftMs <= 0) throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_RETRY_MS)
      }
    }
    this.#db.exec(`pragma busy_timeout = ${busyTimeoutMs}`)
  }

  #migrate(file: string, onMigration?: (progress: MigrationProgress) => void): void {
    if (this.#readVersion(file) !== SCHEMA_VERSION) {
      this.write(() => {
        // Another process may have migrated the file meanwhile.
        const version = this.#readVersion(file)
        if (version === 0) this.#createTables(file)
        else for (const migration of MIGRATIONS.slice(version)) this.#runMigration(file, migration)
        this.#db.exec(`pragma user_version = ${SCHEMA_VERSION}`)
      })
    }
    migrateLog(this, onMigration)
  }

  /** SQLite renames no column while a view or trigger of the user refers to something that does not exist. */
  #runMigration(file: string, migration: string): void {
    try {
      this.#db.exec(migration)
    } catch (error) {
      const [, broken] = /^error in ((?:view|trigger) .+)$/.exec(errorMessage(error)) ?? []
      if (broken === undefined) throw error
      throw new SyncError(
        'STORE_FOREIGN',
        `${file} cannot be upgraded because of an error in the ${broken}. Drop or correct it, then open the store again.`,
        { cause: error },
      )
    }
  }

  /** The first new store of a process runs the migrations. The next ones copy its tables, in a tenth of the time. */
  #createTables(file: string): void {
    if (currentTables !== undefined) return this.#db.exec(currentTables)
    for (const migration of MIGRATIONS) this.#runMigration(file, migration)
    this.#db.exec(DROP_OLD_TABLES)
    // The file may also contain tables of the user. Implicit indexes have no text.
    currentTables = this.all<{ sql: string }>(
      `select sql from sqlite_schema where tbl_name like 'tidemark\\_%' escape '\\' and sql is not null order by rowid`,
    )
      .map(({ sql }) => sql)
      .join(';\n')
  }

  /**
   * Returns 0 before the first migration. The number alone proves nothing: other programs also store their version
   * there.
   */
  #readVersion(file: string): number {
    const { version, ownTable } = this.one<{ version: number; ownTable: string | null }>(
      `select (select user_version from pragma_user_version) as version,
         (select min(name) from sqlite_schema where name like 'tidemark\\_%' escape '\\') as ownTable`,
    )
    if (version > 0 && ownTable === null)
      throw new SyncError('STORE_FOREIGN', `${file} is a database of another program.`)
    if (version > SCHEMA_VERSION)
      throw new SyncError(
        'STORE_NEWER',
        `${file} has schema version ${version}; this version of tidemark supports up to ${SCHEMA_VERSION}.`,
      )
    if (version > 0 && version < SCHEMA_VERSION_MIN) {
      throw new SyncError(
        'STORE_OLDER',
        `${file} has schema version ${version}; this version of tidemark reads ${SCHEMA_VERSION_MIN} and later.`,
      )
    }
    if (version === 0 && ownTable !== null)
      throw new SyncError('STORE_FOREIGN', `${file} already has a table ${ownTable}, but no schema version.`)
    return version
  }
}

export type Parameter = bigint | string | number | Uint8Array | null

export class Rollback<T> {
  readonly value: T
  constructor(value: T) {
    this.value = value
  }
}

export function rollback<T>(value: T): Rollback<T> {
  return new Rollback(value)
}

/** A tenant of the file, and its id. */
export interface TenantSession {
  readonly connection: Connection
  readonly tenant: string
  readonly tenantId: number
}

export function openSession(connection: Connection, tenant: string): TenantSession {
  return connection.write(() => {
    connection.run('insert into tidemark_tenants (name) values (?) on conflict do nothing', tenant)
    const { tenant_id: tenantId } = connection.one<{ tenant_id: number }>(
      'select tenant_id from tidemark_tenants where name = ?',
      tenant,
    )
    return { connection, tenant, tenantId }
  })
}

/** Returns null for an unknown tenant, without creating it. */
export function findSession(connection: Connection, tenant: string): TenantSession | null {
  const found = connection.read(() =>
    connection.get<{ tenant_id: number }>('select tenant_id from tidemark_tenants where name = ?', tenant),
  )
  return found === undefined ? null : { connection, tenant, tenantId: found.tenant_id }
}

const BUSY_RETRY_MS = 5

const SQLITE_BUSY = 5
const SQLITE_CANTOPEN = 14

const ERROR_CODES: Record<number, ErrorCode> = {
  [SQLITE_BUSY]: 'STORE_BUSY',
  6: 'STORE_BUSY', // SQLITE_LOCKED
  8: 'STORE_READONLY',
  10: 'STORE_UNAVAILABLE', // SQLITE_IOERR
  11: 'STATE_UNREADABLE', // SQLITE_CORRUPT: damaged, and never to be treated as empty
  13: 'STORE_FULL',
  [SQLITE_CANTOPEN]: 'STORE_UNAVAILABLE',
  26: 'STORE_FOREIGN', // SQLITE_NOTADB
}

function toSyncError(error: unknown, file?: string): unknown {
  const extended = extendedErrorCode(error)
  if (extended === null) return error
  const where = file === undefined ? 'SQLite' : `SQLite file ${file}`
  // SQLITE_CANTOPEN may concern the WAL or its index beside the file, which SQLite creates when it is allowed to.
  const code =
    file !== undefined && (extended & 0xff) === SQLITE_CANTOPEN && isReadOnlyPath(file)
      ? 'STORE_READONLY'
      : ERROR_CODES[extended & 0xff]
  return new SyncError(code ?? 'STORE_FAILED', `${where}: ${errorMessage(error)} (code ${extended}).`, { cause: error })
}

/** SQLite's extended code: the primary code in its low byte, the detail above it. Null for any other error. */
function extendedErrorCode(error: unknown): number | null {
  const code = (error as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code : null
}

/** True when the file, or its nearest existing folder, is not writable. */
function isReadOnlyPath(file: string): boolean {
  for (let path = file; ; path = dirname(path)) {
    try {
      accessSync(path, constants.W_OK)
      // A writable file in a read-only folder counts as read-only: its log must be created beside it.
      if (path !== file) return false
    } catch (error) {
      if (['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) return true
    }
    if (path === dirname(path)) return false
  }
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
