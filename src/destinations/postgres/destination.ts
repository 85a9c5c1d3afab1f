import pg from 'pg'
import {
  SCALAR_TYPES,
  SyncError,
  type Destination,
  type DestinationBatch,
  type DestinationPosition,
  type DestinationSchema,
  type DestinationSession,
  type TokenStep,
} from '../../contract/index.ts'
import { isNextStep } from '../kit/is-next-step.ts'
import { tableNameOf } from '../kit/table-names.ts'
import { PostgresClient } from './client.ts'
import { DestinationTable } from './table.ts'
import { StateTable } from './state-table.ts'

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
      types: SCALAR_TYPES,
    },
    async open({ tenant }) {
      const client = await PostgresClient.connect(url, `PostgreSQL at ${host}${pathname}`)
      try {
        const state = new StateTable(client, schema)
        await state.create()
        return new PostgresSession(client, state, schema, tenant)
      } catch (error) {
        await client.close()
        throw error
      }
    },
  }
}

class PostgresSession implements DestinationSession {
  readonly #client: PostgresClient
  readonly #state: StateTable
  readonly #schema: string
  readonly #tenant: string

  constructor(client: PostgresClient, state: StateTable, schema: string, tenant: string) {
    this.#client = client
    this.#state = state
    this.#schema = schema
    this.#tenant = tenant
  }

  async position(database: string): Promise<DestinationPosition> {
    const { live, loading } = await this.#state.read(this.#nameOf(database))
    return { live: live?.token ?? null, loading: loading?.token ?? null }
  }

  async prepare({ database, mode }: DestinationSchema): Promise<void> {
    const name = this.#nameOf(database)
    const { live } = await this.#state.read(name)
    const [found] = await this.#client.query<{ exists: boolean }>('select to_regclass($1) is not null as exists', [
      `${pg.escapeIdentifier(this.#schema)}.${pg.escapeIdentifier(name)}`,
    ])
    if (live === null && found?.exists === true)
      throw new SyncError(
        'DESTINATION_FOREIGN',
        `The schema ${this.#schema} already has a table ${name} that does not belong to Tidemark. Nothing was changed.`,
      )
    if (live !== null && live.mode !== mode)
      throw new SyncError(
        'DESTINATION_INVALID',
        `The table ${name} was written in mode ${live.mode}, and not ${mode}. Use another schema, or remove the table with \`tidemark destinations remove --drop\`.`,
      )
  }

  async apply(batch: DestinationBatch, step: TokenStep): Promise<'applied' | 'refused'> {
    const name = this.#nameOf(batch.schema.database)
    return this.#client.transaction(async () => {
      const stored = await this.#state.lock(name)
      const position = { live: stored.live?.token ?? null, loading: stored.loading?.token ?? null }
      if (!isNextStep(position, batch, step)) return 'refused'
      const table = new DestinationTable(this.#client, this.#schema, name, batch)
      const columns = await table.write(batch.isFirst ? null : stored[batch.target], step)
      await this.#state.write(name, batch.target, { token: step.next, columns, mode: batch.schema.mode })
      if (batch.isLast) {
        await table.swap()
        await this.#state.swap(name)
      }
      return 'applied'
    })
  }

  async remove(database: string): Promise<void> {
    const name = this.#nameOf(database)
    await this.#client.transaction(async () => {
      const { live, loading } = await this.#state.lock(name)
      await DestinationTable.drop(this.#client, this.#schema, name, { live: live !== null, loading: loading !== null })
      await this.#state.remove(name)
    })
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  #nameOf(database: string): string {
    return tableNameOf(this.#tenant, database)
  }
}
