import { createPool, type Pool, type PoolConnection, type ResultSetHeader } from 'mysql2/promise'
import { SyncError, type ErrorCode } from 'tidemark/store'

export interface ConnectionOptions {
  /** mariadb://user:password@host:port/database */
  readonly url: string
  readonly poolMax?: number
  /** How long one statement may take. */
  readonly statementTimeoutMs?: number
  /** How long a statement may wait for another writer. */
  readonly lockTimeoutMs?: number
}

const ATTEMPTS_MAX = 8
const RETRY_DELAY_MS = 5

/** A pool of connections, and transactions on them. */
export class Connection {
  readonly #pool: Pool
  /** For `alone`: a transaction waits for it, so it must not wait for those that wait. */
  readonly #ddlPool: Pool
  readonly #where: string
  /** Of one statement, so that it fits into a packet of the server. */
  bytesMax = 1_000_000

  constructor({ url, poolMax = 10, statementTimeoutMs = 120_000, lockTimeoutMs = 10_000 }: ConnectionOptions) {
    const { hostname, port, pathname } = new URL(url)
    this.#where = `MariaDB ${hostname}:${port || 3306}${pathname}`
    const settings = [
      // What a server or an account has set otherwise must not change what a statement means.
      "sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,NO_ENGINE_SUBSTITUTION'", "time_zone = '+00:00'", "tx_isolation = 'READ-COMMITTED'",
      `innodb_lock_wait_timeout = ${Math.ceil(lockTimeoutMs / 1_000)}`, `lock_wait_timeout = ${Math.ceil(lockTimeoutMs / 1_000)}`,
      `max_statement_time = ${statementTimeoutMs / 1_000}`, 'autocommit = 1',
      // A table may have more columns than all can be long at once: `fitRow` keeps the rows within the bound.
      'innodb_strict_mode = 0',
    ].map((setting) => `session ${setting}`).join(', ')
    this.#pool = makePool(url, poolMax, settings)
    this.#ddlPool = makePool(url, DDL_POOL_MAX, settings)
  }

  /** All of it or nothing. `body` may undo everything by returning `rollback(value)`. */
  write<T>(body: (transaction: Transaction) => Promise<T | Rollback<T>>): Promise<T> {
    return this.#retryAborted([DEADLOCK], () => this.#transact(['start transaction'], body))
  }

  /** Several statements that see one state of the database. */
  read<T>(body: (transaction: Transaction) => Promise<T>): Promise<T> {
    const begin = ['set transaction isolation level repeatable read', 'start transaction with consistent snapshot, read only']
    // A table that was altered or dropped since the snapshot cannot be read in it.
    return this.#retryAborted([DEADLOCK, TABLE_CHANGED, TABLE_MISSING], () => this.#transact(begin, async (transaction) => rollback(await body(transaction))))
  }

  /** Statements outside of any transaction: those that change tables commit by themselves. */
  async runOutsideTransaction<T>(body: (statements: Transaction) => Promise<T>): Promise<T> {
    const client = await this.#checkOut(this.#ddlPool)
    let clean = false
    try {
      const result = await body(new Transaction(client, this.#where, this.bytesMax))
      clean = true
      return result
    } finally {
      if (clean) client.release()
      else client.destroy()
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#pool.end(), this.#ddlPool.end()])
  }

  async #transact<T>(begin: readonly string[], body: (transaction: Transaction) => Promise<T | Rollback<T>>): Promise<T> {
    const client = await this.#checkOut()
    let clean = false
    const rollBack = async (): Promise<boolean> => client.query('rollback').then(() => true, () => false)
    try {
      const transaction = new Transaction(client, this.#where, this.bytesMax)
      let result: T | Rollback<T>
      try {
        for (const sql of begin) await transaction.run(sql)
        result = await body(transaction)
      } catch (error) {
        clean = await rollBack()
        throw error
      }
      if (result instanceof Rollback) {
        clean = await rollBack()
        return result.value
      }
      await this.#commit(client)
      clean = true
      return result
    } finally {
      // A connection in an unknown state never goes back to the pool.
      if (clean) client.release()
      else client.destroy()
    }
  }

  async #commit(client: PoolConnection): Promise<void> {
    try {
      await client.query('commit')
    } catch (cause) {
      if (errnoOf(cause) === DEADLOCK) throw toSyncError(cause, this.#where)
      throw new SyncError('COMMIT_UNKNOWN', `${this.#where}: COMMIT was sent and no answer came.`, { cause })
    }
  }

  /** A transaction that the server undid for the sake of another one has changed nothing, and mostly succeeds the next time. */
  async #retryAborted<T>(errnos: readonly number[], run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await run()
      } catch (error) {
        if (!errnos.includes(errnoOfCause(error)) || attempt === ATTEMPTS_MAX) throw error
        await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS * 2 ** attempt * (0.5 + Math.random())))
      }
    }
  }

  async #checkOut(pool = this.#pool): Promise<PoolConnection> {
    try {
      return await pool.getConnection()
    } catch (error) {
      throw toSyncError(error, this.#where)
    }
  }
}

const DDL_POOL_MAX = 2

function makePool(url: string, connectionLimit: number, settings: string): Pool {
  const pool = createPool({
    uri: url.replace(/^[a-z]+:/i, 'mysql:'), connectionLimit, connectTimeout: 10_000, enableKeepAlive: true,
    // An update counts the rows it found, also those that it leaves as they were. The server asks for no file of this machine.
    flags: ['+FOUND_ROWS', '-LOCAL_FILES'],
    typeCast: (field) => (NUMBER_TYPES.has(field.type) ? numberOf(field.string()) : textOf(field.buffer())),
  })
  pool.pool.on('connection', (connection) => {
    // Both are sent before any statement of ours. A connection without them is not used.
    for (const sql of ['set names utf8mb4 collate utf8mb4_nopad_bin', `set ${settings}`]) {
      connection.query(sql, (error) => {
        if (error !== null) connection.destroy()
      })
    }
  })
  return pool
}

export type Parameter = string | number | boolean | null | Buffer

/** The statements of one connection. */
export class Transaction {
  readonly #client: PoolConnection
  readonly #where: string
  readonly #bytesMax: number

  constructor(client: PoolConnection, where: string, bytesMax: number) {
    this.#client = client
    this.#where = where
    this.#bytesMax = bytesMax
  }

  async all<Row extends object>(sql: string, ...values: readonly unknown[]): Promise<Row[]> {
    return (await this.#query({ sql, values })) as Row[]
  }

  async get<Row extends object>(sql: string, ...values: readonly unknown[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...values))[0]
  }

  /** Rows as arrays of the texts that MariaDB writes. */
  async textRows(sql: string, ...values: readonly unknown[]): Promise<Array<Array<string | null>>> {
    return (await this.#query({ sql, values, rowsAsArray: true, typeCast: (field: { buffer(): Buffer | null }) => textOf(field.buffer()) })) as Array<Array<string | null>>
  }

  /** The number of rows it found to change. */
  async run(sql: string, ...values: readonly unknown[]): Promise<number> {
    const { affectedRows = 0, warningStatus = 0 } = (await this.#query({ sql, values })) as Partial<ResultSetHeader>
    // `insert ignore` also ignores values that do not fit. For a row that is there it has one warning.
    if (sql.startsWith('insert ignore') && warningStatus > (affectedRows === 0 ? 1 : 0)) {
      throw new SyncError('STORE_FAILED', `${this.#where}: a value is too long for its column.`)
    }
    return affectedRows
  }

  /** One statement for as many rows as fit into a packet; `head` ends with `values`, `tail` may follow the rows. */
  async insert(head: string, rows: readonly (readonly Parameter[])[], { tuple, tail = '', separator = ',' }: { tuple: string; tail?: string; separator?: string }): Promise<void> {
    for (let from = 0; from < rows.length;) {
      let [to, bytes] = [from, 0]
      while (to < rows.length && to - from < ROWS_MAX && (to === from || bytes < this.#bytesMax)) bytes += sizeOf(rows[to++]!)
      await this.run(`${head} ${Array.from({ length: to - from }, () => tuple).join(separator)} ${tail}`, ...rows.slice(from, to).flat())
      from = to
    }
  }

  async #query(options: object): Promise<unknown> {
    try {
      return (await this.#client.query(options as { sql: string }))[0]
    } catch (error) {
      throw toSyncError(error, this.#where)
    }
  }
}

const ROWS_MAX = 500

function sizeOf(values: readonly Parameter[]): number {
  return values.reduce<number>((sum, value) => sum + (typeof value === 'string' || Buffer.isBuffer(value) ? value.length * 2 : 8), 0)
}

export class Rollback<T> {
  readonly value: T
  constructor(value: T) {
    this.value = value
  }
}

export function rollback<T>(value: T): Rollback<T> {
  return new Rollback(value)
}

// ── values and failures ──────────────────────────────────────────────────────────────────────────────────────────────

const NUMBER_TYPES = new Set(['TINY', 'SHORT', 'LONG', 'INT24', 'LONGLONG', 'NEWDECIMAL', 'FLOAT', 'DOUBLE', 'YEAR'])

function numberOf(text: string | null): number | null {
  return text === null ? null : Number(text)
}

/** Names and keys are bytes to MariaDB, so that it neither folds nor pads them; they are UTF-8. */
function textOf(bytes: Buffer | null): string | null {
  return bytes === null ? null : bytes.toString()
}

const DEADLOCK = 1213
const TABLE_CHANGED = 1412
const TABLE_MISSING = 1146
export const LOCK_TIMEOUT = 1205

const ERROR_CODES: Readonly<Record<number, ErrorCode>> = {
  [DEADLOCK]: 'STORE_BUSY', [LOCK_TIMEOUT]: 'STORE_BUSY', 1040: 'STORE_BUSY', 1203: 'STORE_BUSY', 1969: 'STORE_BUSY', // connections, max_statement_time
  1044: 'STORE_UNAVAILABLE', 1045: 'STORE_UNAVAILABLE', 1049: 'STORE_UNAVAILABLE', // the account, or the database
  1053: 'STORE_UNAVAILABLE', 1152: 'STORE_UNAVAILABLE', 1317: 'STORE_UNAVAILABLE', 1927: 'STORE_UNAVAILABLE', // shutdown, killed
  1142: 'STORE_READONLY', 1143: 'STORE_READONLY', 1227: 'STORE_READONLY', 1290: 'STORE_READONLY', 1792: 'STORE_READONLY', 1836: 'STORE_READONLY',
  1021: 'STORE_FULL', 1114: 'STORE_FULL', 1451: 'STORE_FOREIGN', 1050: 'STORE_FOREIGN',
}

/** Wrapped where it leaves the driver. An error without a number of the server is the connection's. */
function toSyncError(error: unknown, where: string): SyncError {
  const errno = errnoOf(error)
  const message = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
  const code = errno === null ? 'STORE_UNAVAILABLE' : (ERROR_CODES[errno] ?? 'STORE_FAILED')
  return new SyncError(code, `${where}: ${message}${errno === null ? '' : ` (error ${errno})`}.`, { cause: error })
}

/** The server's own; null for an error of the network or of the driver. */
function errnoOf(error: unknown): number | null {
  const { errno, sqlState } = Object(error) as { errno?: unknown; sqlState?: unknown }
  return typeof errno === 'number' && typeof sqlState === 'string' ? errno : null
}

/** The server's number of a failure that was wrapped; 0 for none. */
export function errnoOfCause(error: unknown): number {
  return error instanceof SyncError ? (errnoOf(error.cause) ?? 0) : 0
}
