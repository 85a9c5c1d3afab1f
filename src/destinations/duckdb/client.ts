import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api'
import { SyncError } from '../../contract/index.ts'
import type { ColumnValue } from '../../stores/kit/tables/encode-record.ts'
import { appendRows } from './append-rows.ts'
import { DatabaseFile } from './database-file.ts'
import type { ValueConverter } from './duckdb-values.ts'
import { parseError, toDestinationError } from './errors.ts'
import { loadDuckdb, type Duckdb } from './load-duckdb.ts'

/** One connection to a file. Errors leave it as SyncErrors. */
export class DuckdbClient {
  readonly duckdb: Duckdb
  readonly #file: DatabaseFile
  readonly #connection: DuckDBConnection
  readonly #where: string

  private constructor(duckdb: Duckdb, file: DatabaseFile, connection: DuckDBConnection, where: string) {
    this.duckdb = duckdb
    this.#file = file
    this.#connection = connection
    this.#where = where
  }

  static async open(path: string, where: string): Promise<DuckdbClient> {
    const duckdb = await loadDuckdb()
    const file = await DatabaseFile.open(duckdb, path)
    try {
      return new DuckdbClient(duckdb, file, await file.connect(), where)
    } catch (error) {
      await file.close()
      throw toDestinationError(error, where)
    }
  }

  async query<Row extends object>(sql: string, values: readonly DuckDBValue[] = []): Promise<Row[]> {
    try {
      const reader = await this.#connection.runAndReadAll(sql, values.length === 0 ? undefined : [...values])
      return reader.getRowObjects() as Row[]
    } catch (error) {
      throw toDestinationError(error, this.#where)
    }
  }

  /** The columns of a table, in their order. */
  async columnNames(table: string): Promise<readonly string[]> {
    try {
      return (await this.#connection.runAndReadAll(`from ${table} limit 0`)).columnNames()
    } catch (error) {
      throw toDestinationError(error, this.#where)
    }
  }

  async run(sql: string): Promise<void> {
    try {
      await this.#connection.run(sql)
    } catch (error) {
      throw toDestinationError(error, this.#where)
    }
  }

  /** Appends to all columns of a table, in their order. */
  async append(
    { catalog, schema, table }: { readonly catalog?: string; readonly schema: string; readonly table: string },
    converters: readonly ValueConverter[],
    rows: Iterable<readonly ColumnValue[]>,
  ): Promise<void> {
    try {
      const appender = await this.#connection.createAppender(table, schema, catalog)
      try {
        appendRows(this.duckdb, appender, converters, rows)
      } catch (error) {
        // Without it, closing would append the rows again, and its error would hide the first one.
        appender.clear()
        throw error
      } finally {
        appender.closeSync()
      }
    } catch (error) {
      throw toDestinationError(error, this.#where)
    }
  }

  transaction<T>(body: () => Promise<T>): Promise<T> {
    return this.#file.runAlone(async () => {
      await this.run('begin')
      let result: T
      try {
        result = await body()
      } catch (error) {
        await this.#connection.run('rollback').catch(() => {})
        throw error
      }
      await this.#commit()
      return result
    })
  }

  /** A commit that DuckDB rejects was rolled back. After any other error, only the stored token shows the outcome. */
  async #commit(): Promise<void> {
    try {
      await this.#connection.run('commit')
    } catch (error) {
      const { type, message } = parseError(error)
      if (type === 'TransactionContext') throw toDestinationError(error, this.#where)
      throw new SyncError('COMMIT_UNKNOWN', `${this.#where}: COMMIT failed: ${message}`, {
        cause: error,
      })
    }
  }

  async close(): Promise<void> {
    this.#connection.closeSync()
    await this.#file.close()
  }
}
