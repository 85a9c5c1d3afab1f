import pg from 'pg'
import type { DestinationMode, DestinationToken } from '../../contract/index.ts'
import type { TableColumn } from '../../stores/kit/tables/column.ts'
import type { PostgresClient } from './client.ts'

/** The token of a table, with its columns. */
export interface TableState {
  readonly token: DestinationToken
  readonly mode: DestinationMode
  readonly columns: readonly TableColumn[]
}

export interface TableStates {
  readonly live: TableState | null
  readonly loading: TableState | null
}

interface StateRow {
  readonly target: 'live' | 'loading'
  readonly mode: DestinationMode
  readonly columns: string
  readonly store_id: string
  readonly epoch: string
  readonly sequence: string
  readonly committed_at: string
  readonly after: string | null
}

/** The tokens and columns of the tables of a schema, in the table `_tidemark_destination` beside them. */
export class StateTable {
  readonly #client: PostgresClient
  readonly #schema: string
  readonly #table: string

  constructor(client: PostgresClient, schema: string) {
    this.#client = client
    this.#schema = schema
    this.#table = `${pg.escapeIdentifier(schema)}._tidemark_destination`
  }

  async create(): Promise<void> {
    const exists = await this.#client.query<{ exists: boolean }>('select to_regclass($1) is not null as exists', [
      this.#table,
    ])
    if (exists[0]?.exists === true) return
    // Two processes that create it at once would otherwise both find it missing.
    await this.#client.transaction(async () => {
      await this.#client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', ['tidemark.destination'])
      await this.#client.run(`create schema if not exists ${pg.escapeIdentifier(this.#schema)}`)
      await this.#client.run(`create table if not exists ${this.#table} (
        table_name text not null, target text not null, mode text not null, columns text not null,
        store_id text not null, epoch bigint not null, sequence bigint not null, committed_at bigint not null, after text,
        primary key (table_name, target))`)
    })
  }

  async read(name: string): Promise<TableStates> {
    const rows = await this.#client.query<StateRow>(`select * from ${this.#table} where table_name = $1`, [name])
    const find = (target: 'live' | 'loading'): TableState | null => {
      const row = rows.find((one) => one.target === target)
      return row === undefined ? null : toTableState(row)
    }
    return { live: find('live'), loading: find('loading') }
  }

  /** Until the transaction ends, no other process applies a batch to this table, or creates it. */
  async lock(name: string): Promise<TableStates> {
    await this.#client.query('select pg_advisory_xact_lock(hashtextextended($1, 1))', [`${this.#table} ${name}`])
    return this.read(name)
  }

  async write(name: string, target: 'live' | 'loading', { token, mode, columns }: TableState): Promise<void> {
    const { storeId, epoch, sequence, committedAt, after } = token
    await this.#client.query(
      `insert into ${this.#table} (table_name, target, mode, columns, store_id, epoch, sequence, committed_at, after)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
       on conflict (table_name, target) do update set mode = excluded.mode, columns = excluded.columns, store_id = excluded.store_id,
         epoch = excluded.epoch, sequence = excluded.sequence, committed_at = excluded.committed_at, after = excluded.after`,
      [name, target, mode, JSON.stringify(columns), storeId, epoch, sequence, committedAt, after],
    )
  }

  /** The state of the load becomes that of the live table. */
  async swap(name: string): Promise<void> {
    await this.#client.query(`delete from ${this.#table} where table_name = $1 and target = 'live'`, [name])
    await this.#client.query(`update ${this.#table} set target = 'live' where table_name = $1`, [name])
  }

  async remove(name: string): Promise<void> {
    await this.#client.query(`delete from ${this.#table} where table_name = $1`, [name])
  }
}

function toTableState(row: StateRow): TableState {
  return {
    token: {
      storeId: row.store_id,
      epoch: Number(row.epoch),
      sequence: Number(row.sequence),
      committedAt: Number(row.committed_at),
      after: row.after,
    },
    mode: row.mode,
    columns: JSON.parse(row.columns) as TableColumn[],
  }
}
