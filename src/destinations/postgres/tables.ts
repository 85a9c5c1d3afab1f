import pg from 'pg'
import type { TableColumn } from '../../stores/kit/tables/column.ts'
import { RecordEncoder } from '../../stores/kit/tables/encode-record.ts'
import { mayExceedRow } from '../../stores/kit/tables/fit-row.ts'
import { sqlTypeOf, type SqlType } from '../../stores/postgres/binary-values.ts'
import { encodeCopyParts } from '../../stores/postgres/copy.ts'
import { codecOf, COLUMN_DIALECT, COLUMNS_MAX, NAME_BYTES_MAX, ROW_SIZE_LIMITS } from '../../stores/postgres/table.ts'
import type {
  NamedColumn,
  RecordVersion,
  SqlTables,
  SystemColumn,
  TableRename,
  TableSpec,
  TableValues,
} from '../kit/sql-tables.ts'
import type { PostgresClient } from './client.ts'
import { readUserObjects, type UserObjects } from './user-objects.ts'

/** The tables of a schema. */
export class PostgresTables implements SqlTables {
  readonly ddl = 'transactional'
  readonly scope: string
  readonly columnLimits = { nameBytesMax: NAME_BYTES_MAX, columnsMax: COLUMNS_MAX, reserved: POSTGRES_COLUMNS }
  readonly stateTypes = { key: 'text collate "C"', text: 'text' }
  readonly #client: PostgresClient
  readonly #schema: string

  constructor(client: PostgresClient, schema: string) {
    this.#client = client
    this.#schema = schema
    this.scope = `schema ${schema}`
  }

  transaction<T>(body: () => Promise<T>): Promise<T> {
    return this.#client.transaction(body)
  }

  async lock(name: string): Promise<void> {
    await this.#client.query('select pg_advisory_xact_lock(hashtextextended($1, 1))', [this.quote(name)])
  }

  async unlock(): Promise<void> {}

  query<Row extends object>(sql: string, values: readonly (string | number | null)[]): Promise<Row[]> {
    let parameters = 0
    return this.#client.query<Row>(
      sql.replaceAll('?', () => `$${++parameters}`),
      values,
    )
  }

  quote(table: string): string {
    return `${pg.escapeIdentifier(this.#schema)}.${pg.escapeIdentifier(table)}`
  }

  async createSchema(): Promise<void> {
    await this.#client.run(`create schema if not exists ${pg.escapeIdentifier(this.#schema)}`)
  }

  async exists(table: string): Promise<boolean> {
    const rows = await this.#client.query<{ exists: boolean }>('select to_regclass($1) is not null as exists', [
      this.quote(table),
    ])
    return rows[0]?.exists === true
  }

  async columnNames(table: string): Promise<string[]> {
    const rows = await this.#client.query<{ name: string }>(
      'select attname as name from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped',
      [this.quote(table)],
    )
    return rows.map(({ name }) => name)
  }

  async create({ name, system }: TableSpec): Promise<void> {
    const columns = system.map((column) => `${column.name} ${systemTypeOf(column)}${CONSTRAINTS[column.name] ?? ''}`)
    await this.#client.run(`create table ${this.quote(name)} (${columns.join(', ')})`)
  }

  async addColumns(table: string, columns: readonly NamedColumn[]): Promise<void> {
    const clauses = columns.map(({ name, type }) => `add column ${pg.escapeIdentifier(name)} ${sqlTypeOf(type)}`)
    await this.#client.run(`alter table ${this.quote(table)} ${clauses.join(', ')}`)
  }

  async drop(tables: readonly string[]): Promise<void> {
    for (const table of tables) await this.#client.run(`drop table if exists ${this.quote(table)}`)
  }

  /**
   * Indexes of users are built on the loaded tables first: readers of the old ones wait only for the drop and the rename.
   * A view or a foreign key that refers to an old table stops it.
   */
  async swap(renames: readonly TableRename[], obsolete: readonly string[]): Promise<void> {
    const replaced: UserObjects[] = []
    for (const { from, to } of renames)
      if (await this.exists(to)) replaced.push(await readUserObjects(this.#client, this.quote(to), this.quote(from)))
    for (const objects of replaced) await objects.build()
    await this.drop([...renames.map(({ to }) => to), ...obsolete])
    for (const { from, to } of renames)
      await this.#client.run(`alter table ${this.quote(from)} rename to ${pg.escapeIdentifier(to)}`)
    for (const objects of replaced) await objects.finish()
  }

  /** Built at once at the end of the rows, which is faster than keeping it up to date. */
  async finishLoad({ name, key }: TableSpec): Promise<void> {
    await this.#client.run(`alter table ${this.quote(name)} add primary key (${key.join(', ')})`)
  }

  encoder(columns: readonly TableColumn[], members: readonly string[]) {
    const codec = codecOf(JSON.stringify(columns))
    const byRecord = ({ record, text, sequence }: RecordVersion) => codec.encode(record ?? {}, text ?? '', sequence)
    if (members.length === 0 || mayExceedRow(columns, ROW_SIZE_LIMITS)) return byRecord
    const encoder = new RecordEncoder(columns, COLUMN_DIALECT, members)
    return (version: RecordVersion) => encoder.encodeVersion(version, byRecord)
  }

  async append(table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void> {
    await this.#copy(this.quote(table.name), table, columns, rows)
  }

  async merge(table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void> {
    const names = columnNamesOf(table, columns)
    const target = this.quote(table.name)
    await this.#client.run(
      `create temporary table _tidemark_batch on commit drop as select ${names.join(', ')} from ${target} with no data`,
    )
    await this.#copy('pg_temp._tidemark_batch', table, columns, rows)
    await this.#client.run(
      `insert into ${target} (${names.join(', ')}) select ${names.join(', ')} from pg_temp._tidemark_batch
       on conflict (${table.key.join(', ')}) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    )
  }

  async deleteRows(table: string, column: string, keys: readonly string[]): Promise<void> {
    await this.#client.query(`delete from ${this.quote(table)} where ${column} = any($1::text[])`, [keys])
  }

  async endVersions(table: string, ended: ReadonlyArray<readonly [key: string, at: number]>): Promise<void> {
    await this.#client.query(
      `update ${this.quote(table)} t set _is_current = false, _valid_to = to_timestamp(e.at / 1000.0)
       from unnest($1::text[], $2::bigint[]) as e (key, at) where t._key = e.key and t._is_current`,
      [ended.map(([key]) => key), ended.map(([, at]) => at)],
    )
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #copy(name: string, table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void> {
    const types = [...table.system.map(systemTypeOf), ...columns.map(({ type }) => sqlTypeOf(type))]
    const sql = `copy ${name} (${columnNamesOf(table, columns).join(', ')}) from stdin (format binary)`
    let copying = Promise.resolve()
    for (const data of encodeCopyParts(types, rows, COPY_BYTES)) {
      await copying
      copying = this.#client.copy(sql, data)
      // The next part is encoded while the server takes this one, whose error is thrown when it is awaited.
      copying.catch(() => {})
    }
    await copying
  }
}

/** The data of one COPY, about. */
const COPY_BYTES = 1 << 20

/** Names that PostgreSQL uses itself. */
const POSTGRES_COLUMNS = ['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid']

/** Keys are ordered by bytes, as in the store. */
const KEY = ' collate "C" not null'
const CONSTRAINTS: Record<string, string> = {
  _key: KEY,
  _parent_key: KEY,
  _index: ' not null',
  _sequence: ' not null',
}

/** `json` keeps the digits and the order of what the columns cannot hold; `jsonb` does not. */
function systemTypeOf({ name, type }: SystemColumn): SqlType {
  return name === '_extra' ? 'json' : sqlTypeOf(type)
}

function columnNamesOf({ system }: TableSpec, columns: readonly NamedColumn[]): string[] {
  return [...system.map(({ name }) => name), ...columns.map(({ name }) => pg.escapeIdentifier(name))]
}
