import { SyncError, type DestinationMode, type DestinationToken } from '../../contract/index.ts'
import type { TableColumn } from '../../stores/kit/tables/column.ts'
import type { SqlTables } from './sql-tables.ts'
import type { Target } from './table-names.ts'

/** The token of a table, with its columns. */
export interface TableState {
  readonly token: DestinationToken
  readonly mode: DestinationMode
  readonly columns: readonly TableColumn[]
  /** The columns of its child tables, by field. */
  readonly children: ReadonlyMap<string, readonly TableColumn[]>
  /** The next statement of a database with immediate DDL. After a crash it is repeated, or undone; see `SqlSession`. */
  readonly pending?: Pending | null
}

export type Pending = 'create' | 'columns' | 'swap' | 'drop'

export interface TableStates {
  readonly live: TableState | null
  readonly loading: TableState | null
}

/** The database whose rows a table has. Two tenants may otherwise agree on one name: `a__b` with `c`, `a` with `b__c`. */
export interface TableOwner {
  readonly tenant: string
  readonly database: string
}

interface StateRow {
  readonly target: Target
  readonly tenant: string
  readonly database_name: string
  readonly mode: DestinationMode
  readonly columns: string
  readonly children: string
  readonly pending: Pending | null
  readonly store_id: string
  readonly epoch: string | number | bigint
  readonly sequence: string | number | bigint
  readonly committed_at: string | number | bigint
  readonly after: string | null
}

export const STATE_TABLE = '_tidemark_destination'

/** The tokens and columns of the tables, in the table `_tidemark_destination` beside them. */
export class SqlStates {
  readonly #tables: SqlTables

  constructor(tables: SqlTables) {
    this.#tables = tables
  }

  exists(): Promise<boolean> {
    return this.#tables.exists(STATE_TABLE)
  }

  async create(): Promise<void> {
    const { key, text } = this.#tables.stateTypes
    await this.#tables.query(
      `create table if not exists ${this.#table} (
        table_name ${key} not null, target ${key} not null, tenant ${text} not null, database_name ${text} not null,
        mode ${text} not null, columns ${text} not null, children ${text} not null, pending ${text}, store_id ${text} not null,
        epoch bigint not null, sequence bigint not null, committed_at bigint not null, after ${text},
        primary key (table_name, target))`,
      [],
    )
  }

  /** Throws DESTINATION_FOREIGN if the table has the rows of another database. */
  async read(name: string, owner: TableOwner): Promise<TableStates> {
    const rows = await this.#tables.query<StateRow>(`select * from ${this.#table} where table_name = ?`, [name])
    const other = rows.find((row) => row.tenant !== owner.tenant || row.database_name !== owner.database)
    if (other !== undefined)
      throw new SyncError(
        'DESTINATION_FOREIGN',
        `The table ${name} has the rows of the database ${other.database_name} of the tenant ${other.tenant}. Nothing was changed.`,
      )
    const find = (target: Target): TableState | null => {
      const row = rows.find((one) => one.target === target)
      return row === undefined ? null : toTableState(row)
    }
    return { live: find('live'), loading: find('loading') }
  }

  /** Legal in a transaction. */
  async write(name: string, owner: TableOwner, target: Target, state: TableState): Promise<void> {
    const { token, mode, columns, children, pending = null } = state
    const { storeId, epoch, sequence, committedAt, after } = token
    await this.remove(name, target)
    const row = {
      table_name: name,
      target,
      tenant: owner.tenant,
      database_name: owner.database,
      mode,
      columns: JSON.stringify(columns),
      children: JSON.stringify([...children]),
      pending,
      store_id: storeId,
      epoch,
      sequence,
      committed_at: committedAt,
      after,
    } satisfies Record<keyof StateRow | 'table_name', unknown>
    await this.#tables.query(
      `insert into ${this.#table} (${Object.keys(row).join(', ')}) values (${Object.keys(row).fill('?').join(', ')})`,
      Object.values(row),
    )
  }

  async remove(name: string, target: Target): Promise<void> {
    await this.#tables.query(`delete from ${this.#table} where table_name = ? and target = ?`, [name, target])
  }

  /** The state of the load becomes that of the live table. Legal in a transaction. */
  async swap(name: string): Promise<void> {
    await this.remove(name, 'live')
    await this.#tables.query(`update ${this.#table} set target = 'live', pending = null where table_name = ?`, [name])
  }

  get #table(): string {
    return this.#tables.quote(STATE_TABLE)
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
    children: new Map(JSON.parse(row.children) as Array<[string, TableColumn[]]>),
    pending: row.pending,
  }
}
