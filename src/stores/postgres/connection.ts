import pg from 'pg'
import { SyncError } from '../../contract/index.ts'
import { CopyQuery, CopyRows } from './copy.ts'
import { toConnectError, isCommitRejected, isTransactionAborted, toQueryError, sqlStateOf } from './errors.ts'
import type { PageKind } from './found-rows.ts'
import type { Table } from './table.ts'
import { VALUE_PARSERS } from './value-parsers.ts'
import { required } from '../../values/required.ts'

export interface ConnectionOptions {
  /** postgres://user:password@host:port/database */
  readonly url: string
  readonly poolMax?: number
  /** Limit for one statement. */
  readonly statementTimeoutMs?: number
  /** Limit for waiting on another writer's lock. */
  readonly lockTimeoutMs?: number
  /** Limit for connecting to the server, or for a free connection of the pool. */
  readonly connectTimeoutMs?: number
}

/** A connection, and the tenant that it is used for. */
export interface TenantSession {
  readonly connection: Connection
  readonly tenant: string
  readonly isReplica: boolean
}

const ATTEMPTS_MAX = 5
const RETRY_DELAY_MS = 10

export interface CachedTable extends Pick<Table, 'id' | 'name' | 'live' | 'members'> {
  /** How the last page related to the table. */
  readonly lastPageKind?: PageKind
}

const TENANTS_CACHED_MAX = 1_000
const LONG_QUERY_TIMEOUT_MS = 24 * 3_600_000
/**
 * Transactions after which a connection is replaced: the server keeps the catalog entries of every table that a
 * connection has used, about 40 KB each, until the connection ends.
 */
const TRANSACTIONS_PER_CONNECTION = 2_000

/** SQLSTATE of a statement that names a missing table. */
export const UNDEFINED_TABLE = '42P01'

export const UNDEFINED_COLUMN = '42703'

/** A column has another type than the reader expected. */
export class ColumnsChangedError extends Error {}

/** A pool of connections without session state: every transaction sets what it needs for itself alone. */
export class Connection {
  readonly #pool: pg.Pool
  readonly #poolMax: number
  readonly #where: string
  readonly #settings: string
  readonly #tables = new Map<string, Map<string, CachedTable>>()
  /** Clients whose connection broke; only for these it is certain that no COMMIT was sent. */
  readonly #brokenClients = new WeakSet<object>()

  constructor(options: ConnectionOptions) {
    const {
      url,
      poolMax = 10,
      statementTimeoutMs = 120_000,
      lockTimeoutMs = 10_000,
      connectTimeoutMs = 10_000,
    } = options
    this.#where = describeServer(url)
    this.#poolMax = poolMax
    this.#settings = [
      ['statement_timeout', statementTimeoutMs],
      ['lock_timeout', lockTimeoutMs],
      // A process that freezes inside a transaction must not keep the tenant's row locked forever.
      ['idle_in_transaction_session_timeout', statementTimeoutMs],
      // Every statement reads by a key and in its order. Without statistics the planner assumes a tenant has few rows,
      // and collects and sorts them all; these settings leave it the index.
      ['enable_bitmapscan', 'off'],
      ['enable_sort', 'off'],
      ['jit', 'off'],
      // Values of the tables are read as text.
      ['TimeZone', 'UTC'],
      ['DateStyle', 'ISO, YMD'],
      ['extra_float_digits', '1'],
      ['bytea_output', 'hex'],
      // Objects in a user's schema cannot shadow the functions that statements call.
      ['search_path', 'pg_catalog'],
    ]
      .map(([name, value]) => `set_config('${name}', '${value}', true)`)
      .join(', ')
    this.#pool = new pg.Pool({
      connectionString: url,
      max: poolMax,
      connectionTimeoutMillis: connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      // Longer than the server's own limit: this one covers a server that stops answering.
      query_timeout: statementTimeoutMs + 5_000,
      allowExitOnIdle: true,
      application_name: 'tidemark',
      // Independent statements are pipelined, so that a page costs few round trips.
      pipeline: true,
      types: VALUE_PARSERS,
      maxUses: TRANSACTIONS_PER_CONNECTION,
    })
    this.#pool.on('connect', (client) => client.on('error', () => this.#brokenClients.add(client)))
    // The pool drops an idle client that breaks; without a listener the error would end the process.
    this.#pool.on('error', () => {})
  }

  /** The tables of a tenant as last seen, by database: an optimistic guess that commits verify. */
  cachedTables(tenant: string): Map<string, CachedTable> {
    let tables = this.#tables.get(tenant)
    if (tables === undefined) {
      if (this.#tables.size >= TENANTS_CACHED_MAX) this.#tables.clear()
      this.#tables.set(tenant, (tables = new Map()))
    }
    return tables
  }

  /** Returns false when none were cached. */
  clearCachedTables(tenant: string): boolean {
    const size = this.#tables.get(tenant)?.size ?? 0
    this.#tables.delete(tenant)
    return size > 0
  }

  /** Runs `body` atomically. It may undo everything by returning `rollback(value)`. */
  write<T>(tenant: string, body: (transaction: Transaction) => Promise<T | Rollback<T>>): Promise<T> {
    // Explicit, because the database's default may differ: each statement must see everything committed before it,
    // above all what the last holder of a lock committed.
    return this.#retryAborted(() =>
      this.#transact('read committed', tenant, body, (client, transaction) => this.#commit(client, transaction)),
    )
  }

  /** Runs several statements on one snapshot of the database. */
  read<T>(tenant: string, body: (transaction: Transaction) => Promise<T>): Promise<T> {
    const settled = async (transaction: Transaction): Promise<T> => {
      const result = await body(transaction)
      await transaction.settle()
      return result
    }
    return this.#retryOnColumnChange(() =>
      this.#transact('repeatable read read only', tenant, settled, (client) => this.#rollback(client)),
    )
  }

  /**
   * A reader gets the columns from its snapshot, but PostgreSQL resolves column names against the newest catalog. If a
   * column was renamed, dropped or replaced in between, the read is repeated.
   */
  async #retryOnColumnChange<T>(run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await run()
      } catch (error) {
        const isMoved =
          error instanceof ColumnsChangedError ||
          (error instanceof SyncError && sqlStateOf(error.cause) === UNDEFINED_COLUMN)
        if (!isMoved || attempt === ATTEMPTS_MAX) throw error
      }
    }
  }

  /** Runs a statement that is illegal in a transaction, and may take hours. */
  async runOutsideTransaction(sql: string): Promise<void> {
    const client = await this.#checkOut()
    let clean = false
    try {
      await client.query('set statement_timeout = 0')
      await client.query({ text: sql, query_timeout: LONG_QUERY_TIMEOUT_MS } as pg.QueryConfig)
      await client.query('reset statement_timeout')
      clean = true
    } catch (error) {
      throw toQueryError(error, this.#where)
    } finally {
      client.release(!clean)
    }
  }

  async close(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end()
  }

  async #transact<T>(
    isolation: string,
    tenant: string,
    body: (transaction: Transaction) => Promise<T | Rollback<T>>,
    end: (client: pg.PoolClient, transaction: Transaction) => Promise<boolean>,
  ): Promise<T> {
    const client = await this.#checkOut()
    let clean = false
    try {
      const transaction = new Transaction(client, tenant, this.#where)
      // Not awaited: the first statement is sent with it, and fails if it fails.
      transaction.send(
        `begin isolation level ${isolation}; select set_config('tidemark.tenant', ${pg.escapeLiteral(tenant)}, true), ${this.#settings}`,
      )
      let result: T | Rollback<T>
      try {
        result = await body(transaction)
        if (result instanceof Rollback) await transaction.settle()
      } catch (error) {
        clean = await this.#rollback(client)
        // The first failure is the cause; later ones only follow from it.
        throw transaction.failure ?? error
      }
      if (result instanceof Rollback) {
        clean = await this.#rollback(client)
        return result.value
      }
      clean = await end(client, transaction)
      return result
    } finally {
      // A client in an unknown state never returns to the pool.
      client.release(!clean)
    }
  }

  /**
   * A transaction that the server aborted in favour of another one has changed nothing, and usually succeeds on retry.
   */
  async #retryAborted<T>(run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await run()
      } catch (error) {
        if (!isTransactionAborted(error) || attempt === ATTEMPTS_MAX) throw error
        await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS * 2 ** attempt * (0.5 + Math.random())))
      }
    }
  }

  /**
   * COMMIT is pipelined with the last statements instead of waiting for their answers, which saves a round trip per
   * page. If one of them was refused the server answers COMMIT with ROLLBACK, and that statement's error is the cause.
   */
  async #commit(client: pg.PoolClient, transaction: Transaction): Promise<boolean> {
    // By now a statement that the driver could not send, for example because of a bad parameter, has failed. Without
    // this check the server would commit the others.
    transaction.hold()
    await new Promise((resolve) => setImmediate(resolve))
    if (transaction.failure !== undefined) {
      transaction.flush()
      await this.#rollback(client)
      throw transaction.failure
    }
    if (this.#brokenClients.has(client))
      throw new SyncError('STORE_UNAVAILABLE', `${this.#where}: the connection broke before COMMIT.`)
    const committed = client.query('commit')
    transaction.flush()
    const [sent, answer] = await Promise.allSettled([transaction.settle(), committed])
    if (sent.status === 'rejected' && isServerRefusal(sent.reason)) throw sent.reason
    if (answer.status === 'rejected') {
      if (isCommitRejected(answer.reason)) throw toQueryError(answer.reason, this.#where)
      throw new SyncError('COMMIT_UNKNOWN', `${this.#where}: COMMIT was sent, but the server did not answer.`, {
        cause: answer.reason,
      })
    }
    if (sent.status === 'rejected') {
      throw new SyncError('COMMIT_UNKNOWN', `${this.#where}: COMMIT was sent, but an answer could not be read.`, {
        cause: sent.reason,
      })
    }
    // The server answers COMMIT with ROLLBACK, and no error, when the transaction had already failed.
    if (answer.value.command !== 'COMMIT')
      throw new SyncError('STORE_FAILED', `${this.#where}: the server answered COMMIT with ${answer.value.command}.`)
    return true
  }

  async #rollback(client: pg.PoolClient): Promise<boolean> {
    try {
      await client.query('rollback')
      return true
    } catch {
      return false
    }
  }

  async #checkOut(): Promise<pg.PoolClient> {
    try {
      return await this.#pool.connect()
    } catch (error) {
      const exhausted =
        sqlStateOf(error) === null && this.#pool.totalCount >= this.#poolMax && this.#pool.idleCount === 0
      throw toConnectError(error, this.#where, exhausted)
    }
  }
}

export type Parameter = string | number | boolean | null | Buffer

/** The statements of one transaction. They are answered in the order in which they were sent, awaited or not. */
export class Transaction {
  readonly tenant: string
  readonly #client: pg.PoolClient
  readonly #where: string
  readonly #sent: Array<Promise<unknown>> = []
  #failure: unknown
  #isCorked = false
  #isHeld = false

  constructor(client: pg.PoolClient, tenant: string, where: string) {
    this.#client = client
    this.tenant = tenant
    this.#where = where
  }

  /** The first failure of the transaction. */
  get failure(): unknown {
    return this.#failure
  }

  async get<Row extends object>(sql: string, ...parameters: Parameter[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...parameters))[0]
  }

  /** Like `get`, for a statement that always returns a row. */
  async one<Row extends object>(sql: string, ...parameters: Parameter[]): Promise<Row> {
    return required((await this.all<Row>(sql, ...parameters))[0], 'The row of a statement that always returns one')
  }

  async all<Row extends object>(sql: string, ...parameters: Parameter[]): Promise<Row[]> {
    return (await this.#query(sql, parameters)).rows as Row[]
  }

  /** Returns the number of changed rows. */
  async run(sql: string, ...parameters: Parameter[]): Promise<number> {
    return (await this.#query(sql, parameters)).rowCount ?? 0
  }

  /** Like `run`, for a statement that may take hours: the caller lifts the server's own limit. */
  async runLong(sql: string, ...values: Parameter[]): Promise<number> {
    return (
      (
        await this.#guard(() =>
          this.#client.query({ text: sql, values, query_timeout: LONG_QUERY_TIMEOUT_MS } as pg.QueryConfig),
        )
      ).rowCount ?? 0
    )
  }

  /** Returns rows as arrays of the texts that PostgreSQL writes. */
  textRows(sql: string, ...parameters: Parameter[]): Promise<Array<Array<string | null>>> {
    return this.typedTextRows([], 0, sql, ...parameters)
  }

  /** Like `textRows`, for columns that must have these types from index `from` on. */
  async typedTextRows(
    types: readonly number[],
    from: number,
    sql: string,
    ...parameters: Parameter[]
  ): Promise<Array<Array<string | null>>> {
    const config = {
      text: sql,
      values: parameters,
      rowMode: 'array',
      types: { getTypeParser: () => asText },
    } as pg.QueryArrayConfig
    const { fields, rows } = await this.#guard(() => this.#client.query(config))
    if (types.some((type, at) => fields[from + at]?.dataTypeID !== type))
      throw new ColumnsChangedError('A column was replaced while it was read.')
    return rows as Array<Array<string | null>>
  }

  /** `COPY … FROM STDIN`, without waiting for the answer; see `send`. */
  copy(sql: string, data: Buffer): void {
    this.#sendCopy(sql, data)
  }

  /** Like `copy`, for rows that are encoded while it is sent. No other statement may be sent before it ends. */
  openCopy(sql: string): CopyRows {
    const { query, answered } = this.#sendCopy(sql, null)
    const rows = new CopyRows(query)
    // Each part is sent at once.
    this.flush()
    answered.then(
      () => rows.releaseBuffers(),
      () => {},
    )
    return rows
  }

  #sendCopy(sql: string, data: Buffer | null): { query: CopyQuery; answered: Promise<void> } {
    let settle: (error: Error | null) => void = () => {}
    const answered = new Promise<void>((resolve, reject) => {
      settle = (error) => (error === null ? resolve() : reject(error))
    })
    const query = new CopyQuery(sql, data, settle)
    this.#sent.push(
      this.#guard(() => {
        this.#client.query(query)
        return answered
      }).catch(() => {}),
    )
    return { query, answered }
  }

  /** Sends a statement whose result is not needed; `settle`, and so COMMIT, waits for it and throws its error. */
  send(sql: string, ...parameters: Parameter[]): void {
    this.#sent.push(this.#query(sql, parameters).catch(() => {}))
  }

  /**
   * Collects the messages of the next statements until `flush`: each write to the socket costs the client about as much
   * as a statement, and wakes the server.
   */
  hold(): void {
    this.#isHeld = true
    this.#cork()
  }

  /** Sends the collected messages. Unless they are held, it happens by itself before the next event is handled. */
  flush(): void {
    this.#isHeld = false
    if (!this.#isCorked) return
    this.#isCorked = false
    socketOf(this.#client).uncork()
  }

  #cork(): void {
    if (this.#isCorked) return
    this.#isCorked = true
    socketOf(this.#client).cork()
    process.nextTick(() => {
      if (!this.#isHeld) this.flush()
    })
  }

  async settle(): Promise<void> {
    await Promise.all(this.#sent.splice(0))
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Returns true on success; false when it was refused with one of these SQLSTATEs, in which case nothing changed. */
  async tryRun(
    sql: string,
    { lockTimeoutMs, refusals }: { lockTimeoutMs: number; refusals: readonly string[] },
  ): Promise<boolean> {
    await this.settle()
    const { before } = await this.one<{ before: string }>("select current_setting('lock_timeout') as before")
    await this.run(`savepoint attempt; set local lock_timeout = ${lockTimeoutMs}`)
    try {
      await this.#client.query(sql)
    } catch (error) {
      if (!refusals.includes(sqlStateOf(error) ?? '')) throw (this.#failure = toQueryError(error, this.#where))
      await this.run('rollback to savepoint attempt')
      return false
    }
    await this.run(`release savepoint attempt; set local lock_timeout = '${before}'`)
    return true
  }

  #query(sql: string, parameters: Parameter[]): Promise<pg.QueryResult> {
    return this.#guard(() => (parameters.length === 0 ? this.#client.query(sql) : this.#client.query(sql, parameters)))
  }

  async #guard<T>(send: () => Promise<T>): Promise<T> {
    this.#cork()
    try {
      return await send()
    } catch (error) {
      const failure = toQueryError(error, this.#where)
      this.#failure ??= failure
      throw failure
    }
  }
}

interface Socket {
  cork(): void
  uncork(): void
}

function socketOf(client: pg.PoolClient): Socket {
  return (client as unknown as { readonly connection: { readonly stream: Socket } }).connection.stream
}

/** True when the server refused a statement: the COMMIT behind it had no effect. */
function isServerRefusal(failure: unknown): boolean {
  return failure instanceof SyncError && sqlStateOf(failure.cause) !== null
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

function asText(text: string): string {
  return text
}

/** Name of the server for messages, without user and password. */
function describeServer(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url)
    if (protocol === 'postgres:' || protocol === 'postgresql:') return `PostgreSQL at ${host}${pathname}`
  } catch {
    // The error is thrown below.
  }
  throw new SyncError('STORE_URL_INVALID', 'The store URL is not a PostgreSQL URL.')
}
