import { Readable } from 'node:stream'
import type { Connection, QueryOptions } from 'mysql2'
import { SyncError, type ErrorCode } from '../../contract/index.ts'
import { importPackage } from '../../values/import-package.ts'

const CONNECT_TIMEOUT_MS = 10_000
const LOCK_TIMEOUT_S = 30

/** Keyed by error number. */
const ERROR_CODES: Record<number, ErrorCode> = {
  1044: 'DESTINATION_REFUSED', // no access to the database
  1045: 'DESTINATION_REFUSED', // wrong password
  1049: 'DESTINATION_REFUSED', // no such database
  1142: 'DESTINATION_REFUSED', // no privilege for the statement
  1227: 'DESTINATION_REFUSED', // a privilege of the server
  1290: 'DESTINATION_REFUSED', // read-only server
  1698: 'DESTINATION_REFUSED',
  1792: 'DESTINATION_REFUSED', // read-only transaction
  1836: 'DESTINATION_REFUSED', // read-only mode
  1050: 'DESTINATION_FOREIGN', // the table exists
  1347: 'DESTINATION_FOREIGN', // it is a view
  1451: 'DESTINATION_FOREIGN', // a user's table refers to the row
  1021: 'DESTINATION_FULL',
  1114: 'DESTINATION_FULL',
  1040: 'DESTINATION_UNAVAILABLE', // too many connections
  1053: 'DESTINATION_UNAVAILABLE', // shutting down
  1205: 'DESTINATION_UNAVAILABLE', // lock wait
  1213: 'DESTINATION_UNAVAILABLE', // deadlock
  1317: 'DESTINATION_UNAVAILABLE', // interrupted
  1927: 'DESTINATION_UNAVAILABLE', // connection killed
  1969: 'DESTINATION_UNAVAILABLE', // max_statement_time
}

/** The server rolled the transaction back. */
const ROLLED_BACK = [1205, 1213]

/** The result of a statement that returns no rows. */
export interface WriteResult {
  readonly affectedRows: number
  readonly warningStatus: number
}

/** One connection. Errors leave it as SyncErrors. */
export class MariadbClient {
  readonly #connection: Connection
  readonly #where: string

  private constructor(connection: Connection, where: string) {
    this.#connection = connection
    this.#where = where
  }

  static async connect(url: string, where: string): Promise<MariadbClient> {
    const { createConnection } = await loadMysql2()
    const connection = createConnection({
      uri: url.replace(/^mariadb:/, 'mysql:'),
      connectTimeout: CONNECT_TIMEOUT_MS,
      supportBigNumbers: true,
      dateStrings: true,
      charset: 'utf8mb4',
      enableKeepAlive: true,
    })
    // Without a listener, a connection that breaks between two statements would end the process.
    connection.on('error', () => {})
    const client = new MariadbClient(connection, where)
    try {
      for (const setting of SETTINGS) await client.query(`set session ${setting}`)
    } catch (error) {
      await client.close()
      throw error
    }
    return client
  }

  async query<Row extends object>(sql: string, values: readonly (string | number | null)[] = []): Promise<Row[]> {
    return (await this.#send({ sql, values: [...values] })) as Row[]
  }

  async run(sql: string): Promise<WriteResult> {
    return (await this.#send({ sql })) as WriteResult
  }

  /** Runs LOAD DATA LOCAL INFILE with this data. The server must accept each chunk as one packet. */
  async load(sql: string, chunks: AsyncIterable<Buffer>): Promise<WriteResult> {
    const stream = Readable.from(chunks)
    let failure: unknown = null
    stream.once('error', (error) => (failure = error))
    try {
      return (await this.#send({ sql, infileStreamFactory: () => stream })) as WriteResult
    } catch (error) {
      // An error of the rows is not one of the server.
      throw failure ?? error
    }
  }

  /** If the answer to COMMIT is lost, the error is COMMIT_UNKNOWN: only the stored token shows the outcome. */
  async transaction<T>(body: () => Promise<T>): Promise<T> {
    await this.run('start transaction')
    let result: T
    try {
      result = await body()
    } catch (error) {
      await this.run('rollback').catch(() => {})
      throw error
    }
    try {
      await this.run('commit')
    } catch (error) {
      const { errno } = (error as SyncError).cause as { errno?: number }
      if (ROLLED_BACK.includes(errno ?? 0)) throw error
      throw new SyncError('COMMIT_UNKNOWN', `${this.#where}: COMMIT was sent, but the server did not answer.`, {
        cause: error,
      })
    }
    return result
  }

  async close(): Promise<void> {
    // Its callback is not called if the server refused the connection.
    this.#connection.end(() => {})
    this.#connection.destroy()
  }

  #send(options: QueryOptions): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#connection.query(options, (error, result) =>
        error === null ? resolve(result) : reject(this.#toError(error)),
      )
    })
  }

  #toError(error: unknown): SyncError {
    const { errno, message, code } = error as { errno?: number; message?: string; code?: string }
    // Numbers below 1000 are system errors: the server did not answer.
    const isLost = errno === undefined || errno < 1_000 || code === 'PROTOCOL_CONNECTION_LOST'
    return new SyncError(
      isLost ? 'DESTINATION_UNAVAILABLE' : (ERROR_CODES[errno] ?? 'DESTINATION_FAILED'),
      `${this.#where}: ${message ?? String(error)}${isLost ? '' : ` (error ${errno})`}.`,
      { cause: error },
    )
  }
}

/** Values that a column cannot hold are errors, and text is escaped with backslashes. */
const SETTINGS = [
  "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'",
  "time_zone = '+00:00'",
  'transaction isolation level read committed',
  `lock_wait_timeout = ${LOCK_TIMEOUT_S}`,
  `innodb_lock_wait_timeout = ${LOCK_TIMEOUT_S}`,
]

function loadMysql2(): Promise<typeof import('mysql2')> {
  return importPackage('mysql2', 'Writing to MariaDB or MySQL needs', () => import('mysql2'))
}
