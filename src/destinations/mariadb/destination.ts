import { SCALAR_TYPES, SyncError, type Destination } from '../../contract/index.ts'
import { SqlSession } from '../kit/sql-session.ts'
import { MariadbClient } from './client.ts'
import { MariadbTables, type ServerFacts } from './tables.ts'

/** Options of `mariadb`. */
export interface MariadbDestinationOptions {
  /** `mariadb://user:password@host:port/database`; `mysql://` for MySQL. */
  readonly url: string
  /** The database of the tables; created if it does not exist. Default: that of the URL. */
  readonly database?: string
}

/**
 * A MariaDB or MySQL server. Rows arrive by LOAD DATA LOCAL, or by INSERT where the server does not allow it, and are
 * merged, with their token, in one transaction.
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { mariadb } from 'tidemark/destinations/mariadb'
 *
 * const worker = new Worker({ name: 'billing' })
 * worker.database('customers')
 * worker.destination('warehouse', mariadb({ url: 'mariadb://etl@warehouse/analytics' }), { databases: ['customers'] })
 * ```
 */
export function mariadb({ url, database }: MariadbDestinationOptions): Destination {
  if (typeof url !== 'string' || !/^(?:mariadb|mysql):/.test(url) || !URL.canParse(url))
    throw new SyncError('DESTINATION_INVALID', 'The URL of the destination is not mariadb://user@host/database.')
  const { host, pathname } = new URL(url)
  const name = database ?? decodeURIComponent(pathname.slice(1))
  if (name === '')
    throw new SyncError(
      'DESTINATION_INVALID',
      'The destination has no database. Add it to the URL: mariadb://user@host/database.',
    )
  const where = `MariaDB at ${host}, database ${name}`
  return {
    kind: 'mariadb',
    location: where,
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
      // Without a database in the URL: it may not exist yet.
      const client = await MariadbClient.connect(Object.assign(new URL(url), { pathname: '/' }).href, where)
      const facts = await readFacts(client).catch(async (error: unknown) => {
        await client.close()
        throw error
      })
      return SqlSession.open(new MariadbTables(client, name, facts), tenant)
    },
  }
}

async function readFacts(client: MariadbClient): Promise<ServerFacts> {
  const [row] = await client.query<{ version: string; load: number; fold: number; packet: number }>(
    'select version() as version, @@local_infile as `load`, @@lower_case_table_names as fold, @@max_allowed_packet as packet',
  )
  return {
    isMariadb: /mariadb/i.test(row?.version ?? ''),
    allowsLoadData: row?.load === 1,
    foldsTableNames: row?.fold !== 0,
    packetBytesMax: row?.packet ?? 1 << 20,
    // MySQL asks for a privilege.
    allowsWideTables: await client.run('set session innodb_strict_mode = 0').then(
      () => true,
      () => false,
    ),
  }
}
