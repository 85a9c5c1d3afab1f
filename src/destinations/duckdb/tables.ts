import { quoteIdentifier } from '../../stores/kit/column-names.ts'
import type { TableColumn } from '../../stores/kit/tables/column.ts'
import type { NamedColumn, SqlTables, TableRename, TableSpec, TableValues } from '../kit/sql-tables.ts'
import type { DuckdbClient } from './client.ts'
import { sqlTypeOf } from './column-types.ts'
import { DECIMAL_FORMATS } from './decimals.ts'
import { createConverter } from './duckdb-values.ts'
import { createEncoder } from './encode-record.ts'

/** The tables of a schema. They have no primary key: DuckDB would keep its index in memory and check it for every row. */
export class DuckdbTables implements SqlTables {
  readonly ddl = 'transactional'
  readonly scope: string
  readonly columnLimits = {
    nameBytesMax: NAME_BYTES_MAX,
    columnsMax: COLUMNS_MAX,
    reserved: ['rowid'],
    decimals: DECIMAL_FORMATS,
  }
  readonly stateTypes = { key: 'varchar', text: 'varchar' }
  readonly #client: DuckdbClient
  readonly #schema: string

  constructor(client: DuckdbClient, schema: string) {
    this.#client = client
    this.#schema = schema
    this.scope = `schema ${schema}`
  }

  transaction<T>(body: () => Promise<T>): Promise<T> {
    return this.#client.transaction(body)
  }

  /** One process has the file, and its transactions follow one another. */
  async lock(): Promise<void> {}

  async unlock(): Promise<void> {}

  query<Row extends object>(sql: string, values: readonly (string | number | null)[]): Promise<Row[]> {
    return this.#client.query<Row>(sql, values)
  }

  quote(table: string): string {
    return `${quoteIdentifier(this.#schema)}.${quoteIdentifier(table)}`
  }

  async createSchema(): Promise<void> {
    await this.#client.run(`create schema if not exists ${quoteIdentifier(this.#schema)}`)
  }

  /** Also true for a view. Names that differ only in case are the same. */
  async exists(table: string): Promise<boolean> {
    const isNamed = 'database_name = current_database() and lower(schema_name) = lower(?) and lower(name) = lower(?)'
    const rows = await this.#client.query(
      `with tables as (select database_name, schema_name, table_name as name from duckdb_tables()
         union all select database_name, schema_name, view_name from duckdb_views() where not internal)
       from tables where ${isNamed}`,
      [this.#schema, table],
    )
    return rows.length > 0
  }

  async columnNames(table: string): Promise<string[]> {
    return (await this.exists(table)) ? [...(await this.#client.columnNames(this.quote(table)))] : []
  }

  async create({ name, system }: TableSpec): Promise<void> {
    const columns = system.map((column) => `${column.name} ${sqlTypeOf(column)}${CONSTRAINTS[column.name] ?? ''}`)
    await this.#client.run(`create table ${this.quote(name)} (${columns.join(', ')})`)
  }

  async addColumns(table: string, columns: readonly NamedColumn[]): Promise<void> {
    const added = columns.map((column) => `${quoteIdentifier(column.name)} ${sqlTypeOf(column)}`)
    const target = this.quote(table)
    if (added.length > REBUILD_MIN && (await this.#isEmpty(target))) {
      // DuckDB adds one column per statement, and each copies the definitions of all others.
      const existing = await this.#client.query<{ name: string; type: string }>(
        `select column_name as name, concat(data_type, if(is_nullable, '', ' not null')) as type
         from duckdb_columns() where database_name = current_database()
           and lower(schema_name) = lower(?) and lower(table_name) = lower(?) order by column_index`,
        [this.#schema, table],
      )
      const definitions = [...existing.map(({ name, type }) => `${quoteIdentifier(name)} ${type}`), ...added]
      return this.#client.run(`create or replace table ${target} (${definitions.join(', ')})`)
    }
    for (const definition of added) await this.#client.run(`alter table ${target} add column ${definition}`)
  }

  async drop(tables: readonly string[]): Promise<void> {
    for (const table of tables) await this.#client.run(`drop table if exists ${this.quote(table)}`)
  }

  async swap(renames: readonly TableRename[], obsolete: readonly string[]): Promise<void> {
    await this.drop([...renames.map(({ to }) => to), ...obsolete])
    for (const { from, to } of renames)
      await this.#client.run(`alter table ${this.quote(from)} rename to ${quoteIdentifier(to)}`)
  }

  async finishLoad(): Promise<void> {}

  encoder(columns: readonly TableColumn[], members: readonly string[]) {
    return createEncoder(columns, members)
  }

  async append(table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void> {
    const { name, system } = table
    const converters = [...system, ...columns].map((column) => createConverter(this.#client.duckdb, column))
    const names = [...system, ...columns].map((column) => column.name)
    const existing = await this.#client.columnNames(this.quote(name))
    if (existing.length === names.length && existing.every((column, at) => column === names[at]))
      return this.#client.append({ schema: this.#schema, table: name }, converters, rows)
    // The Appender needs every column in the order of the table, and a user added or moved some.
    const list = names.map((column) => quoteIdentifier(column)).join(', ')
    await this.#client.run(`create temporary table ${ROWS_TABLE} as select ${list} from ${this.quote(name)} limit 0`)
    await this.#client.append({ catalog: 'temp', schema: 'main', table: ROWS_TABLE }, converters, rows)
    await this.#client.run(`insert into ${this.quote(name)} (${list}) select ${list} from ${ROWS}`)
    await this.#client.run(`drop table ${ROWS}`)
  }

  async merge(table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void> {
    const keys = Array.from(rows, ([key]) => key as string)
    await this.deleteRows(table.name, '_key', keys)
    await this.append(table, columns, rows)
  }

  async deleteRows(table: string, column: string, keys: readonly string[]): Promise<void> {
    await this.#withKeys(
      keys.map((key) => [key, null]),
      `delete from ${this.quote(table)} where ${quoteIdentifier(column)} in (select key from ${KEYS})`,
    )
  }

  async endVersions(table: string, ended: ReadonlyArray<readonly [key: string, at: number]>): Promise<void> {
    await this.#withKeys(
      ended,
      `update ${this.quote(table)} t set _is_current = false, _valid_to = e.ended
       from ${KEYS} e where t._key = e.key and t._is_current`,
    )
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #isEmpty(table: string): Promise<boolean> {
    return (await this.#client.query(`select 1 from ${table} limit 1`)).length === 0
  }

  /** Runs a statement over keys in a temporary table, which is faster than a list of parameters. */
  async #withKeys(keys: ReadonlyArray<readonly [string, number | null]>, sql: string): Promise<void> {
    await this.#client.run(`create temporary table ${KEYS_TABLE} (key varchar, ended timestamptz)`)
    const converters = KEY_TYPES.map((type) => createConverter(this.#client.duckdb, { type }))
    await this.#client.append({ catalog: 'temp', schema: 'main', table: KEYS_TABLE }, converters, keys)
    await this.#client.run(sql)
    await this.#client.run(`drop table ${KEYS}`)
  }
}

const NAME_BYTES_MAX = 128
const COLUMNS_MAX = 2_000
const REBUILD_MIN = 20
const KEYS_TABLE = '_tidemark_keys'
const KEYS = `temp.${KEYS_TABLE}`
const KEY_TYPES = ['text', 'timestamp'] as const
const ROWS_TABLE = '_tidemark_rows'
const ROWS = `temp.${ROWS_TABLE}`

const CONSTRAINTS: Record<string, string> = { _key: ' not null', _sequence: ' not null' }
