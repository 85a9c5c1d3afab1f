import { SCALAR_TYPES, SyncError, type Destination } from '../../contract/index.ts'
import { SqlSession } from '../kit/sql-session.ts'
import { PostgresClient } from './client.ts'
import { PostgresTables } from './tables.ts'

/** Options of `postgres`. */
export interface PostgresDestinationOptions {
  /** `postgres://user:password@host:port/database` */
  readonly url: string
  /** The schema of the tables; created if it does not exist. Default: `public`. */
  readonly schema?: string
}

/**
 * Another PostgreSQL server. Rows arrive by COPY and are merged, with their token, in one transaction.
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { postgres } from 'tidemark/destinations/postgres'
 *
 * const worker = new Worker({ name: 'billing' })
 * worker.database('customers')
 * worker.destination('warehouse', postgres({ url: 'postgres://etl@warehouse/analytics', schema: 'billing' }), {
 *   databases: ['customers'],
 * })
 * ```
 */
export function postgres({ url, schema = 'public' }: PostgresDestinationOptions): Destination {
  if (!/^postgres(?:ql)?:\/\//.test(url) || !URL.canParse(url))
    throw new SyncError('DESTINATION_INVALID', 'The URL of the destination is not postgres://user@host/database.')
  const { host, pathname } = new URL(url)
  return {
    kind: 'postgres',
    location: `PostgreSQL at ${host}${pathname}, schema ${schema}`,
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
      const client = await PostgresClient.connect(url, `PostgreSQL at ${host}${pathname}`)
      return SqlSession.open(new PostgresTables(client, schema), tenant)
    },
  }
}
