import { resolve } from 'node:path'
import { SCALAR_TYPES, SyncError, type Destination } from '../../contract/index.ts'
import { SqlSession } from '../kit/sql-session.ts'
import { DuckdbClient } from './client.ts'
import { DuckdbTables } from './tables.ts'

/** Options of `duckdb`. */
export interface DuckdbDestinationOptions {
  /** The database file; created if it does not exist. A relative path starts at the working directory. */
  readonly file: string
  /** The schema of the tables; created if it does not exist. Default: `main`. */
  readonly schema?: string
}

/**
 * A DuckDB file, in this process: needs the package `@duckdb/node-api`. Rows arrive by the Appender, with their token, in
 * one transaction. The file is closed after every run, so that others can read it.
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { duckdb } from 'tidemark/destinations/duckdb'
 *
 * const worker = new Worker({ name: 'billing' })
 * worker.database('customers')
 * worker.destination('analytics', duckdb({ file: 'analytics.duckdb' }), { schedule: '15m' })
 * ```
 */
export function duckdb({ file, schema = 'main' }: DuckdbDestinationOptions): Destination {
  if (file === '' || file.startsWith(':') || file.includes('\0'))
    throw new SyncError('DESTINATION_INVALID', 'The file of a DuckDB destination is a path such as analytics.duckdb.')
  const path = resolve(file)
  return {
    kind: 'duckdb',
    location: `DuckDB file ${path}, schema ${schema}`,
    supports: {
      modes: ['mirror', 'append', 'history'],
      commit: 'transaction',
      mergeByKey: true,
      addColumn: true,
      swap: true,
      children: true,
      values: true,
      types: SCALAR_TYPES,
    },
    async open({ tenant }) {
      const client = await DuckdbClient.open(path, `DuckDB file ${path}`)
      return SqlSession.open(new DuckdbTables(client, schema), tenant)
    },
  }
}
