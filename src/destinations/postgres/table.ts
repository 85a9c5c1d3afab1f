import pg from 'pg'
import type { DestinationBatch, TokenStep } from '../../contract/index.ts'
import type { TableColumn } from '../../stores/kit/tables/column.ts'
import type { ColumnValue } from '../../stores/kit/tables/encode-record.ts'
import { sqlTypeOf, type SqlType } from '../../stores/postgres/binary-values.ts'
import { encodeCopyData } from '../../stores/postgres/copy.ts'
import { codecOf, COLUMNS_MAX, NAME_BYTES_MAX } from '../../stores/postgres/table.ts'
import { extendColumns } from '../kit/extend-columns.ts'
import { PRIMARY_KEYS, SYSTEM_COLUMNS, toTableRows } from '../kit/table-rows.ts'
import type { PostgresClient } from './client.ts'
import type { TableState } from './state-table.ts'

const COLUMN_LIMITS = { nameBytesMax: NAME_BYTES_MAX, columnsMax: COLUMNS_MAX }
const LOADING_SUFFIX = '__loading'

/** One batch for one table. */
export class DestinationTable {
  readonly #client: PostgresClient
  readonly #schema: string
  readonly #name: string
  readonly #batch: DestinationBatch

  constructor(client: PostgresClient, schema: string, name: string, batch: DestinationBatch) {
    this.#client = client
    this.#schema = schema
    this.#name = name
    this.#batch = batch
  }

  static async drop(
    client: PostgresClient,
    schema: string,
    name: string,
    { live, loading }: { live: boolean; loading: boolean },
  ): Promise<void> {
    if (live) await client.run(`drop table if exists ${qualify(schema, name)}`)
    if (loading) await client.run(`drop table if exists ${qualify(schema, name + LOADING_SUFFIX)}`)
  }

  /** Writes the rows and returns the columns of the table. `before` is null for a table that is created. */
  async write(before: TableState | null, { previous, next }: TokenStep): Promise<readonly TableColumn[]> {
    const { schema, changes, isFirst, isLast } = this.#batch
    if (isFirst) await this.#create()
    const isEmptyTable = before === null || (before.columns.length === 0 && isRowPhase(previous))
    const known = before?.columns ?? []
    const columns =
      changes.length === 0 && !isLast
        ? known
        : extendColumns(known, schema, changes, isEmptyTable ? 0 : (previous?.sequence ?? 0) + 1, {
            ...COLUMN_LIMITS,
            reserved: SYSTEM_COLUMNS[schema.mode].map(({ name }) => name),
          })
    await this.#addColumns(known, columns)
    if (changes.length > 0) await this.#writeRows(columns, isRowPhase(previous))
    // Built at once at the end of the rows, which is faster than keeping it up to date.
    if (this.#batch.target === 'loading' && next.after === null && (isFirst || isRowPhase(previous)))
      await this.#client.run(`alter table ${this.#table} add primary key (${PRIMARY_KEYS[schema.mode].join(', ')})`)
    return columns
  }

  /** The load replaces the live table. Objects that depend on the old table stop it. */
  async swap(): Promise<void> {
    const live = qualify(this.#schema, this.#name)
    await this.#client.run(`drop table if exists ${live}`)
    await this.#client.run(`alter table ${this.#table} rename to ${pg.escapeIdentifier(this.#name)}`)
  }

  async #create(): Promise<void> {
    const columns = SYSTEM_COLUMNS[this.#batch.schema.mode].map(
      ({ name, type }) => `${name} ${systemType(name, sqlTypeOf(type))}${COLLATIONS[name] ?? ''}`,
    )
    await this.#client.run(`drop table if exists ${this.#table}`)
    await this.#client.run(`create table ${this.#table} (${columns.join(', ')})`)
  }

  async #addColumns(known: readonly TableColumn[], columns: readonly TableColumn[]): Promise<void> {
    const existing = new Set(known.flatMap(({ name }) => name ?? []))
    const added = columns.filter(({ name }) => name !== null && !existing.has(name))
    if (added.length === 0) return
    const clauses = added.map(({ name, type }) => `add column ${pg.escapeIdentifier(name ?? '')} ${sqlTypeOf(type)}`)
    await this.#client.run(`alter table ${this.#table} ${clauses.join(', ')}`)
  }

  async #writeRows(columns: readonly TableColumn[], isLoad: boolean): Promise<void> {
    const { schema, changes } = this.#batch
    const { mode } = schema
    const codec = codecOf(JSON.stringify(columns))
    const { rows, deletedKeys, endedKeys } = toTableRows(mode, changes, columns, ({ record, text, sequence }) =>
      codec.encode(record ?? {}, text ?? '', sequence),
    )
    const system = SYSTEM_COLUMNS[mode]
    const named = columns.flatMap(({ name, type }) => (name === null ? [] : [{ name, type: sqlTypeOf(type) }]))
    const names = [...system.map(({ name }) => name), ...named.map(({ name }) => pg.escapeIdentifier(name))]
    const types: SqlType[] = [
      ...system.map(({ name, type }) => systemType(name, sqlTypeOf(type))),
      ...named.map(({ type }) => type),
    ]
    if (deletedKeys.length > 0)
      await this.#client.query(`delete from ${this.#table} where _key = any($1::text[])`, [deletedKeys])
    if (endedKeys.length > 0 && !isLoad)
      await this.#client.query(
        `update ${this.#table} t set _is_current = false, _valid_to = to_timestamp(e.at / 1000.0)
         from unnest($1::text[], $2::bigint[]) as e (key, at) where t._key = e.key and t._is_current`,
        [endedKeys.map(([key]) => key), endedKeys.map(([, at]) => at)],
      )
    if (mode !== 'mirror' || isLoad) return this.#copy(this.#table, names, types, rows)
    await this.#client.run(
      `create temporary table _tidemark_batch on commit drop as select ${names.join(', ')} from ${this.#table} with no data`,
    )
    await this.#copy('pg_temp._tidemark_batch', names, types, rows)
    await this.#client.run(
      `insert into ${this.#table} (${names.join(', ')}) select ${names.join(', ')} from pg_temp._tidemark_batch
       on conflict (_key) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    )
  }

  async #copy(
    table: string,
    names: readonly string[],
    types: readonly SqlType[],
    rows: ReadonlyArray<readonly ColumnValue[]>,
  ): Promise<void> {
    if (rows.length === 0) return
    await this.#client.copy(
      `copy ${table} (${names.join(', ')}) from stdin (format binary)`,
      encodeCopyData(types, rows),
    )
  }

  get #table(): string {
    return qualify(this.#schema, this.#batch.target === 'live' ? this.#name : this.#name + LOADING_SUFFIX)
  }
}

/** `json` keeps the digits and the order of what the columns cannot hold; `jsonb` does not. */
function systemType(name: string, type: SqlType): SqlType {
  return name === '_extra' ? 'json' : type
}

/** Keys are ordered by bytes, as in the store. */
const COLLATIONS: Record<string, string> = { _key: ' collate "C" not null', _sequence: ' not null' }

/** Rows of a load are copied: no key occurs twice. */
function isRowPhase(previous: TokenStep['previous']): boolean {
  return previous !== null && previous.after !== null
}

function qualify(schema: string, name: string): string {
  return `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`
}
