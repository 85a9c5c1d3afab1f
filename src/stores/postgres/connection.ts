import pg from 'pg'
import { SyncError } from '../../contract/index.ts'
import { connectFailure, isRefusedCommit, queryFailure, sqlStateOf } from './failures.ts'

export interface ConnectionOptions {
  /** postgres://user:password@host:port/database */
  readonly url: string
  readonly poolMax?: number
  /** How long one statement may take. */
  readonly statementTimeoutMs?: number
  /** How long a statement may wait for another writer. */
  readonly lockTimeoutMs?: number
  /** How long to wait for the server, or for a free place in the pool. */
  readonly connectTimeoutMs?: number
}

/** A tenant's place in the database. */
export interface Session {
  readonly connection: Connection
  readonly tenant: string
  readonly isReplica: boolean
}

/** A pool of connections that keep nothing between transactions: what a transaction needs, it sets for itself alone. */
export class Connection {
  readonly #pool: pg.Pool
  readonly #poolMax: number
  readonly #where: string
  readonly #settings: string
  /** Clients whose connection broke; only then is it sure that a COMMIT was never sent. */
  readonly #lost = new WeakSet<object>()

  constructor(options: ConnectionOptions) {
    const { url, poolMax = 10, statementTimeoutMs = 120_000, lockTimeoutMs = 10_000, connectTimeoutMs = 10_000 } = options
    this.#where = describe(url)
    this.#poolMax = poolMax
    this.#settings = [
      ['statement_timeout', statementTimeoutMs], ['lock_timeout', lockTimeoutMs],
      // A process that is frozen inside a transaction must not keep the tenant's row locked for ever.
      ['idle_in_transaction_session_timeout', statementTimeoutMs],
      // Every statement of ours goes by a key and in its order. A planner that has no statistics yet takes a tenant to have a
      // few rows, gathers all of them and sorts; these leave it the index.
      ['enable_bitmapscan', 'off'], ['enable_sort', 'off'], ['jit', 'off'],
      // Nothing that somebody put into a schema of their own can stand in for a function we call.
      ['search_path', 'pg_catalog'],
    ].map(([name, value]) => `set_config('${name}', '${value}', true)`).join(', ')
    this.#pool = new pg.Pool({
      connectionString: url, max: poolMax, connectionTimeoutMillis: connectTimeoutMs, keepAlive: true, keepAliveInitialDelayMillis: 10_000,
      // Longer than the server's own limit: this one is for a server that no longer answers at all.
      query_timeout: statementTimeoutMs + 5_000, allowExitOnIdle: true, application_name: 'tidemark',
      // Statements that need no answer of each other travel together, so that a page costs few round trips.
      pipeline: true, types: { getTypeParser } as pg.CustomTypesConfig,
    })
    this.#pool.on('connect', (client) => client.on('error', () => this.#lost.add(client)))
    // An idle client that breaks is dropped by the pool; without a listener it would end the process.
    this.#pool.on('error', () => {})
  }

  /** All of it or nothing. `body` may undo everything by returning `rollback(value)`. */
  write<T>(tenant: string, body: (transaction: Transaction) => Promise<T | Rollback<T>>): Promise<T> {
    // Said aloud, since the database's default may be another: each statement must see what was committed before it,
    // above all what the holder of a lock committed before it let go.
    return this.#transact('read committed', tenant, body, (client) => this.#commit(client))
  }

  /** Several statements that see one state of the database. */
  read<T>(tenant: string, body: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#transact('repeatable read read only', tenant, body, (client) => this.#rollback(client))
  }

  async close(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end()
  }

  async #transact<T>(
    isolation: string, tenant: string, body: (transaction: Transaction) => Promise<T | Rollback<T>>, end: (client: pg.PoolClient) => Promise<boolean>,
  ): Promise<T> {
    const client = await this.#checkOut()
    let clean = false
    try {
      const transaction = new Transaction(client, tenant, this.#where)
      // Not awaited: the first statement goes out with it, and fails if it fails.
      transaction.send(`begin isolation level ${isolation}; select set_config('tidemark.tenant', ${pg.escapeLiteral(tenant)}, true), ${this.#settings}`)
      let result: T | Rollback<T>
      try {
        result = await body(transaction)
        await transaction.settle()
      } catch (error) {
        clean = await this.#rollback(client)
        // What the transaction met first is the reason; the rest only follows from it.
        throw transaction.failure ?? error
      }
      if (result instanceof Rollback) {
        clean = await this.#rollback(client)
        return result.value
      }
      clean = await end(client)
      return result
    } finally {
      // A client in an unknown state never goes back to the pool.
      client.release(!clean)
    }
  }

  async #commit(client: pg.PoolClient): Promise<true> {
    if (this.#lost.has(client)) throw new SyncError('STORE_UNAVAILABLE', `${this.#where}: the connection broke before COMMIT.`)
    let command: string
    try {
      command = (await client.query('commit')).command
    } catch (error) {
      if (isRefusedCommit(error)) throw queryFailure(error, this.#where)
      throw new SyncError('COMMIT_UNKNOWN', `${this.#where}: COMMIT was sent and no answer came.`, { cause: error })
    }
    // The server answers COMMIT with ROLLBACK, and no error, when the transaction had already failed.
    if (command !== 'COMMIT') throw new SyncError('STORE_FAILED', `${this.#where}: the server answered COMMIT with ${command}.`)
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
      const exhausted = sqlStateOf(error) === null && this.#pool.totalCount >= this.#poolMax && this.#pool.idleCount === 0
      throw connectFailure(error, this.#where, exhausted)
    }
  }
}

export type Parameter = string | number | boolean | null | Buffer

/** The statements of one transaction. They are answered in the order in which they were given, awaited or not. */
export class Transaction {
  readonly tenant: string
  readonly #client: pg.PoolClient
  readonly #where: string
  readonly #sent: Array<Promise<unknown>> = []
  #failure: unknown

  constructor(client: pg.PoolClient, tenant: string, where: string) {
    this.#client = client
    this.tenant = tenant
    this.#where = where
  }

  /** The first thing that went wrong. */
  get failure(): unknown {
    return this.#failure
  }

  async get<Row extends object>(sql: string, ...parameters: Parameter[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, ...parameters))[0]
  }

  async all<Row extends object>(sql: string, ...parameters: Parameter[]): Promise<Row[]> {
    return (await this.#query(sql, parameters)).rows as Row[]
  }

  /** The number of rows it changed. */
  async run(sql: string, ...parameters: Parameter[]): Promise<number> {
    return (await this.#query(sql, parameters)).rowCount ?? 0
  }

  /** A statement whose answer nobody needs; `settle`, and so COMMIT, waits for it and throws what it met. */
  send(sql: string, ...parameters: Parameter[]): void {
    this.#sent.push(this.#query(sql, parameters).catch(() => {}))
  }

  async settle(): Promise<void> {
    await Promise.all(this.#sent.splice(0))
    if (this.#failure !== undefined) throw this.#failure
  }

  /** True when it worked; false when it was refused for one of these reasons, and then it changed nothing. */
  async attempt(sql: string, { lockTimeoutMs, refusals }: { lockTimeoutMs: number; refusals: readonly string[] }): Promise<boolean> {
    await this.settle()
    const { before } = (await this.get<{ before: string }>("select current_setting('lock_timeout') as before"))!
    await this.run(`savepoint attempt; set local lock_timeout = ${lockTimeoutMs}`)
    try {
      await this.#client.query(sql)
    } catch (error) {
      if (!refusals.includes(sqlStateOf(error) ?? '')) throw (this.#failure = queryFailure(error, this.#where))
      await this.run('rollback to savepoint attempt')
      return false
    }
    await this.run(`release savepoint attempt; set local lock_timeout = '${before}'`)
    return true
  }

  async #query(sql: string, parameters: Parameter[]): Promise<pg.QueryResult> {
    try {
      return await (parameters.length === 0 ? this.#client.query(sql) : this.#client.query(sql, parameters))
    } catch (error) {
      const failure = queryFailure(error, this.#where)
      this.#failure ??= failure
      throw failure
    }
  }
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

const INT8 = 20

/** Sequences, milliseconds and counts stay far below 2^53. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): unknown {
  return oid === INT8 ? Number : pg.types.getTypeParser(oid, format as 'text')
}

/** For messages: without user and password. */
function describe(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url)
    if (protocol === 'postgres:' || protocol === 'postgresql:') return `PostgreSQL at ${host}${pathname}`
  } catch {
    // Said below.
  }
  throw new SyncError('STORE_URL_INVALID', 'The store is not a PostgreSQL URL.')
}
