import { createPool, type Pool, type PoolConnection, type ResultSetHeader } from 'mysql2/promise'
import { SyncError, type ErrorCode } from 'tidemark/store'

export interface ConnectionOptions {
  /** mariadb://user:password@host:port/database */
  readonly url: string
  readonly poolMax?: number
  /** Limit for one statement. */
  readonly statementTimeoutMs?: number
  /** Limit for waiting on another writer's lock. */
  readonly lockTimeoutMs?: number
}

const ATTEMPTS_MAX = 8
const RETRY_DELAY_MS = 5

export class Connection {
  readonly #pool: Pool
  /** For `runOutsideTransaction`: a transaction waits for it, so it must not wait for a connection of the same pool. */
  readonly #ddlPool: Pool
  readonly #where: string
  /** Limit per statement, so that it fits into a packet of the server. */
  bytesMax = 1_000_000

  constructor({ url, poolMax = 10, statementTimeoutMs = 120_000, lockTimeoutMs = 10_000 }: ConnectionOptions) {
    const { hostname, port, pathname } = new URL(url)
    this.#where = `MariaDB ${hostname}:${port || 3306}${pathname}`
    const settings = [
      // Settings of the server or the account must not change the meaning of a statement.
      "sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,NO_ENGINE_SUBSTITUTION'",
      "time_zone = '+00:00'",
      "tx_isolation = 'READ-COMMITTED'",
      `innodb_lock_wait_timeout = ${Math.ceil(lockTimeoutMs / 1_000)}`,
      `lock_wait_timeout = ${Math.ceil(lockTimeoutMs / 1_000)}`,
      `max_statement_time = ${statementTimeoutMs / 1_000}`,
      'autocommit = 1',
      // A table may have more columns than fit at their full length: `fitRow` keeps the rows within the limit.
      'innodb_strict_mode = 0',
    ]
      .map((setting) => `session ${setting}`)
      .join(', ')
    this.#pool = makePool(url, poolMax, settings)
    this.#ddlPool = makePool(url, DDL_POOL_MAX, settings)
  }

  /** Runs `body` atomically. It may undo everything by returning `rollback(value)`. */
  write<T>(body: (transaction: Transaction) => Promise<T | Rollback<T>>): Promise<T> {
    return this.#retryAborted([DEADLOCK], () => this.#transact(['start transaction'], body))
  }

  /** Runs several statements on one snapshot of the database. */
  read<T>(body: (transaction: Transaction) => Promise<T>): Promise<T> {
    const begin = [
      'set transaction isolation level repeatable read',
      'start transaction with consistent snapshot, read only',
    ]
    // A table that was altered or dropped since the snapshot cannot be read in it.
    return this.#retryAborted([DEADLOCK, TABLE_CHANGED, TABLE_MISSING], () =>
      this.#transact(begin, async (transaction) => rollback(await body(transaction))),
    )
  }

  /** Runs statements outside of any transaction: DDL commits implicitly. */
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

  async #transact<T>(
    begin: readonly string[],
    body: (transaction: Transaction) => Promise<T | Rollback<T>>,
  ): Promise<T> {
    const client = await this.#checkOut()
    let clean = false
    const rollBack = async (): Promise<boolean> =>
      client.query('rollback').then(
        () => true,
        () => false,
      )
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
      // A connection in an unknown state never returns to the pool.
      if (clean) client.release()
      else client.destroy()
    }
  }

  async #commit(client: PoolConnection): Promise<void> {
    try {
      await client.query('commit')
    } catch (cause) {
      if (errnoOf(cause) === DEADLOCK) throw toSyncError(cause, this.#where)
      throw new SyncError('COMMIT_UNKNOWN', `${this.#where}: COMMIT was sent, but the server did not answer.`, {
        cause,
      })
    }
  }

  /**
   * A transaction that the server aborted in favour of another one has changed nothing, and usually succeeds on retry.
   */
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
    uri: url.replace(/^[a-z]+:/i, 'mysql:'),
    connectionLimit,
    connectTimeout: 10_000,
    enableKeepAlive: true,
    // FOUND_ROWS: an update counts the rows it matched, including unchanged ones. LOCAL_FILES: the server may not
    // request files of this machine.
    flags: ['+FOUND_ROWS', '-LOCAL_FILES'],
    typeCast: (field) => (NUMBER_TYPES.has(field.type) ? numberOf(field.string()) : textOf(field.buffer())),
  })
  pool.pool.on('connection', (connection) => {
    // Both are sent before any other statement. A connection without them is not used.
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

  /** Like `get`, for a statement that always returns a row. */
  async one<Row extends object>(sql: string, ...values: readonly unknown[]): Promise<Row> {
    const [row] = await this.all<Row>(sql, ...values)
    if (row === undefined)
      throw new SyncError('INTERNAL', `${this.#where}: a statement that always returns a row returned none.`)
    return row
  }

  /** Returns rows as arrays of the texts that MariaDB writes. */
  async textRows(sql: string, ...values: readonly unknown[]): Promise<Array<Array<string | null>>> {
    return (await this.#query({
      sql,
      values,
      rowsAsArray: true,
      typeCast: (field: { buffer(): Buffer | null }) => textOf(field.buffer()),
    })) as Array<Array<string | null>>
  }

  /** Returns the number of matched rows. */
  async run(sql: string, ...values: readonly unknown[]): Promise<number> {
    const { affectedRows = 0, warningStatus = 0 } = (await this.#query({ sql, values })) as Partial<ResultSetHeader>
    // `insert ignore` also ignores values that do not fit. An existing row causes exactly one warning.
    if (sql.startsWith('insert ignore') && warningStatus > (affectedRows === 0 ? 1 : 0)) {
      throw new SyncError('STORE_FAILED', `${this.#where}: a value is too long for its column.`)
    }
    return affectedRows
  }

  /**
   * Sends one statement for as many rows as fit into a packet; `head` ends with `values`, `tail` may follow the rows.
   */
  async insert(
    head: string,
    rows: readonly (readonly Parameter[])[],
    { tuple, tail = '', separator = ',' }: { tuple: string; tail?: string; separator?: string },
  ): Promise<void> {
    for (let from = 0; from < rows.length;) {
      let [to, bytes] = [from, 0]
      while (to < rows.length && to - from < ROWS_MAX && (to === from || bytes < this.#bytesMax))
        bytes += sizeOf(rows[to++] ?? [])
      await this.run(
        `${head} ${Array.from({ length: to - from }, () => tuple).join(separator)} ${tail}`,
        ...rows.slice(from, to).flat(),
      )
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
  return values.reduce<number>(
    (sum, value) => sum + (typeof value === 'string' || Buffer.isBuffer(value) ? value.length * 2 : 8),
    0,
  )
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

// ── values and errors
// ───────────────────────────────────────────────────────────────────────────────────────────────────

const NUMBER_TYPES = new Set(['TINY', 'SHORT', 'LONG', 'INT24', 'LONGLONG', 'NEWDECIMAL', 'FLOAT', 'DOUBLE', 'YEAR'])

function numberOf(text: string | null): number | null {
  return text === null ? null : Number(text)
}

/** Names and keys are binary in MariaDB, so that it neither folds nor pads them; they are UTF-8. */
function textOf(bytes: Buffer | null): string | null {
  return bytes === null ? null : bytes.toString()
}

const DEADLOCK = 1213
const TABLE_CHANGED = 1412
const TABLE_MISSING = 1146
export const LOCK_TIMEOUT = 1205

const ERROR_CODES: Readonly<Record<number, ErrorCode>> = {
  [DEADLOCK]: 'STORE_BUSY',
  [LOCK_TIMEOUT]: 'STORE_BUSY',
  1040: 'STORE_BUSY',
  1203: 'STORE_BUSY',
  1969: 'STORE_BUSY', // connections, max_statement_time
  1044: 'STORE_UNAVAILABLE',
  1045: 'STORE_UNAVAILABLE',
  1049: 'STORE_UNAVAILABLE', // the account, or the database
  1053: 'STORE_UNAVAILABLE',
  1152: 'STORE_UNAVAILABLE',
  1317: 'STORE_UNAVAILABLE',
  1927: 'STORE_UNAVAILABLE', // shutdown, killed
  1142: 'STORE_READONLY',
  1143: 'STORE_READONLY',
  1227: 'STORE_READONLY',
  1290: 'STORE_READONLY',
  1792: 'STORE_READONLY',
  1836: 'STORE_READONLY',
  1021: 'STORE_FULL',
  1114: 'STORE_FULL',
  1451: 'STORE_FOREIGN',
  1050: 'STORE_FOREIGN',
}

/** Wraps an error where it leaves the driver. An error without a server error number comes from the connection. */
function toSyncError(error: unknown, where: string): SyncError {
  const errno = errnoOf(error)
  const message = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
  const code = errno === null ? 'STORE_UNAVAILABLE' : (ERROR_CODES[errno] ?? 'STORE_FAILED')
  return new SyncError(code, `${where}: ${message}${errno === null ? '' : ` (error ${errno})`}.`, { cause: error })
}

/** The server's error number; null for an error of the network or of the driver. */
function errnoOf(error: unknown): number | null {
  const { errno, sqlState } = Object(error) as { errno?: unknown; sqlState?: unknown }
  return typeof errno === 'number' && typeof sqlState === 'string' ? errno : null
}

/** The server's error number of a wrapped error; 0 for none. */
export function errnoOfCause(error: unknown): number {
  return error instanceof SyncError ? (errnoOf(error.cause) ?? 0) : 0
}
