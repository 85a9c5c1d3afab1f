import pg from 'pg'
import { SyncError, type ErrorCode } from '../../contract/index.ts'
import { CopyQuery } from '../../stores/postgres/copy.ts'
import { isCommitRejected, sqlStateOf } from '../../stores/postgres/errors.ts'
import { VALUE_PARSERS } from '../../stores/postgres/value-parsers.ts'

const STATEMENT_TIMEOUT_MS = 600_000
const CONNECT_TIMEOUT_MS = 10_000

/** SQLSTATEs, the full code first, then its class. */
const ERROR_CODES: Record<string, ErrorCode> = {
  '28': 'DESTINATION_REFUSED', // invalid role or password
  '3D000': 'DESTINATION_REFUSED', // the database does not exist
  '42501': 'DESTINATION_REFUSED', // insufficient_privilege
  '25006': 'DESTINATION_REFUSED', // read_only_sql_transaction
  '2BP01': 'DESTINATION_FOREIGN', // dependent_objects_still_exist
  '42P07': 'DESTINATION_FOREIGN', // duplicate_table
  '42809': 'DESTINATION_FOREIGN', // wrong_object_type
  '23503': 'DESTINATION_FOREIGN', // foreign_key_violation: a user's table refers to the row
  '53100': 'DESTINATION_FULL',
  '53': 'DESTINATION_UNAVAILABLE',
  '55P03': 'DESTINATION_UNAVAILABLE', // lock_not_available
  '57': 'DESTINATION_UNAVAILABLE', // canceled, shutting down, starting up
  '40': 'DESTINATION_UNAVAILABLE', // serialization_failure, deadlock_detected
  '08': 'DESTINATION_UNAVAILABLE',
  '58': 'DESTINATION_UNAVAILABLE',
}

/** One connection. Errors leave it as SyncErrors. */
export class PostgresClient {
  readonly #client: pg.Client
  readonly #where: string

  private constructor(client: pg.Client, where: string) {
    this.#client = client
    this.#where = where
  }

  static async connect(url: string, where: string): Promise<PostgresClient> {
    const client = new pg.Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: STATEMENT_TIMEOUT_MS + 5_000,
      keepAlive: true,
      application_name: 'tidemark',
      types: VALUE_PARSERS,
    })
    // Without a listener, a connection that breaks between two statements would end the process.
    client.on('error', () => {})
    const opened = new PostgresClient(client, where)
    try {
      await client.connect()
      await client.query(
        `select set_config('statement_timeout', '${STATEMENT_TIMEOUT_MS}', false), set_config('lock_timeout', '30000', false),
           set_config('TimeZone', 'UTC', false), set_config('search_path', 'pg_catalog, pg_temp', false)`,
      )
    } catch (error) {
      await client.end().catch(() => {})
      throw opened.#toError(error)
    }
    return opened
  }

  async query<Row extends object>(sql: string, values: readonly unknown[] = []): Promise<Row[]> {
    try {
      return (await this.#client.query<Row>(sql, [...values])).rows
    } catch (error) {
      throw this.#toError(error)
    }
  }

  async run(sql: string): Promise<void> {
    await this.query(sql)
  }

  async copy(sql: string, data: Buffer): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => {
        this.#client.query(new CopyQuery(sql, data, (error) => (error === null ? resolve() : reject(error))))
      })
    } catch (error) {
      throw this.#toError(error)
    }
  }

  /** If the answer to COMMIT is lost, the error is COMMIT_UNKNOWN: only the stored token shows the outcome. */
  async transaction<T>(body: () => Promise<T>): Promise<T> {
    await this.run('begin isolation level read committed')
    let result: T
    try {
      result = await body()
    } catch (error) {
      await this.#client.query('rollback').catch(() => {})
      throw error
    }
    try {
      await this.#client.query('commit')
    } catch (error) {
      if (isCommitRejected(error)) throw this.#toError(error)
      throw new SyncError('COMMIT_UNKNOWN', `${this.#where}: COMMIT was sent, but the server did not answer.`, {
        cause: error,
      })
    }
    return result
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => {})
  }

  #toError(error: unknown): SyncError {
    const state = sqlStateOf(error)
    const code =
      state === null
        ? 'DESTINATION_UNAVAILABLE'
        : (ERROR_CODES[state] ?? ERROR_CODES[state.slice(0, 2)] ?? 'DESTINATION_FAILED')
    const message = error instanceof Error ? error.message : String(error)
    return new SyncError(code, `${this.#where}: ${message}${state === null ? '' : ` (SQLSTATE ${state})`}.`, {
      cause: error,
    })
  }
}
