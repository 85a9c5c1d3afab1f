import { SyncError, type Column } from '../../contract/index.ts'
import { equalsJson } from '../../values/json.ts'
import { mergeColumns, quoteIdentifier } from '../kit/column-names.ts'
import {
  itemTypeOf,
  type ColumnDialect,
  type ColumnType,
  type ScalarType,
  type TableColumn,
} from '../kit/tables/column.ts'
import { RecordDecoder } from '../kit/tables/decode-record.ts'
import { DELETED_AT, liveRows, type DeleteState } from '../kit/tables/delete-state.ts'
import { RecordEncoder, type EncodedRecord, type ScalarValue } from '../kit/tables/encode-record.ts'
import type { Parameter, TenantSession } from './connection.ts'
import { required } from '../../values/required.ts'

/** A database's table, its history, and the codec for its records. */
export interface Table extends DeleteState {
  readonly id: number
  readonly database: string
  /** Quoted SQL name. Contains all rows; reads of records use `live`. */
  readonly name: string
  /** The rows that are not deleted, for a FROM clause. */
  readonly live: string
  readonly history: string
  readonly columns: readonly TableColumn[]
  /** Drift between records and columns; see `schema-drift.ts`. */
  readonly drift: string
  readonly encoder: RecordEncoder
  /** The fields' column names as SQL, in the order of `columns`; fields without a column are left out. */
  readonly members: readonly string[]
  /** The select list from which `decode` reads the values. */
  readonly selected: string
  /** The newest `since` of the columns: in rows from this sequence on, SQL null means the same in all of them. */
  readonly since: number
  /** Returns the first column in which a row, as `decode` takes it, does not hold these values; -1 if it holds all. */
  findDifference(values: EncodedRecord['values'], stored: readonly StoredValue[], from: number): number
  /** True when the column does not hold its value of these. */
  differsAt(column: number, values: EncodedRecord['values'], stored: StoredValue): boolean
  /** The column's item of `selected`; null for a field without a column. */
  selectedAt(column: number): string | null
  /** Returns the record of a row: `values` is the row as an array, `from` the index of the first of `selected`. */
  decode(sequence: number, extra: string | null, values: readonly StoredValue[], from: number): string
}

/** System columns of every table; the fields of the records follow them. */
export const SYSTEM_COLUMNS = [
  '_key',
  '_sequence',
  '_created_sequence',
  '_hash',
  '_upstream_at',
  '_synced_at',
  '_cursor',
  '_writer',
  '_owner',
  '_extra',
]
/** The end of a version in a history table. */
const HISTORY_COLUMNS = ['_until_sequence', '_until_at']
/** Names that no field's column may have, including columns that a setting adds later. */
export const RESERVED_NAMES = [...SYSTEM_COLUMNS, ...HISTORY_COLUMNS, DELETED_AT]
export const COLUMN_LIMITS = { nameBytesMax: 1_000, columnsMax: 1_000 }

/** The driver binds a number that is nearer to an integer than 2^-52 as that integer: below it, as zero. */
export const COLUMN_DIALECT: ColumnDialect = { preservesText: true, preservesJsonText: true, doubleMin: Number.EPSILON }

export const SQL_TYPES: Record<ScalarType, string> = {
  bigint: 'integer',
  boolean: 'boolean',
  bytes: 'blob',
  date: 'date',
  datetime: 'datetime',
  decimal: 'text',
  double: 'real',
  json: 'json',
  numeric: 'text',
  text: 'text',
  time: 'time',
  timestamp: 'datetime',
  uuid: 'uuid',
}

/** The SQL type of a column. A list is JSON text. */
export function sqlTypeOf(type: ColumnType): string {
  return itemTypeOf(type) === null ? SQL_TYPES[type as ScalarType] : SQL_TYPES.json
}

/** A value of a column as SQLite returns it. */
export type StoredValue = string | number | Uint8Array | null

interface DatabaseRow {
  database_id: number
  table_name: string
  columns: string
  layout: string
  drift: string
  deletes: DeleteState['deletes']
  purged_to: string | null
}

const SELECT_DATABASES =
  'select name, database_id, table_name, columns, layout, drift, deletes, purged_to from tidemark_databases where tenant_id = ?'
const SELECT_DATABASE = `${SELECT_DATABASES} and name = ?`

/** Returns the table of a database; creates it or records new field kinds. */
export function ensureTable(session: TenantSession, name: string, seen: readonly Column[]): Table {
  const { connection, tenantId } = session
  const known = connection.get<DatabaseRow>(SELECT_DATABASE, tenantId, name)
  if (known === undefined) return createTable(session, name, seen)
  const columns = JSON.parse(known.columns) as Column[]
  const merged = mergeColumns(columns, seen)
  if (merged !== columns)
    connection.run(
      'update tidemark_databases set columns = ? where tenant_id = ? and database_id = ?',
      JSON.stringify(merged),
      tenantId,
      known.database_id,
    )
  return toTable(name, known)
}

/** Returns null for an unknown database. */
export function findTable({ connection, tenantId }: TenantSession, name: string): Table | null {
  const found = connection.get<DatabaseRow>(SELECT_DATABASE, tenantId, name)
  return found === undefined ? null : toTable(name, found)
}

/** The table of a database that is known to have one. */
export function tableOf<T>(tables: ReadonlyMap<string, T>, database: string): T {
  return required(tables.get(database), `The table of ${database}`)
}

/** Like `findTable`, for a database that is known to exist. */
export function requireNamedTable(session: TenantSession, name: string): Table {
  return required(findTable(session, name), `The table of ${name}`)
}

/** The table of an existing entry's database, by id. */
export function requireTable({ connection, tenantId }: TenantSession, id: number): Table {
  const row = connection.get<DatabaseRow & { name: string }>(`${SELECT_DATABASES} and database_id = ?`, tenantId, id)
  if (row === undefined)
    throw new SyncError('STATE_UNREADABLE', `No database has the id ${id}, which a commit refers to.`)
  return toTable(row.name, row)
}

/** All tables of the tenant, by id. */
export function readTables({ connection, tenantId }: TenantSession): Map<number, () => Table> {
  return new Map(
    connection
      .all<DatabaseRow & { name: string }>(`${SELECT_DATABASES} order by name`, tenantId)
      .map((row) => [row.database_id, () => toTable(row.name, row)]),
  )
}

/** Adds the columns that are new in `columns`, in the transaction that writes the rows that need them. */
export function alterTable(
  { connection, tenantId }: TenantSession,
  table: Table,
  columns: readonly TableColumn[],
): Table {
  const there = new Set(table.members)
  for (const { name, type } of columns) {
    if (name === null || there.has(quoteIdentifier(name))) continue
    for (const altered of [table.name, table.history])
      connection.exec(`alter table ${altered} add column ${quoteIdentifier(name)} ${sqlTypeOf(type)}`)
  }
  const layout = JSON.stringify(columns)
  connection.run(
    'update tidemark_databases set layout = ? where tenant_id = ? and database_id = ?',
    layout,
    tenantId,
    table.id,
  )
  return bindTable(table, layout)
}

/** Columns that users added. */
export function foreignColumns({ connection }: TenantSession, { name, history, columns, deletes }: Table): string[] {
  const there = [name, history].flatMap((table) =>
    connection.all<{ name: string }>('select name from pragma_table_info(?)', unquoteIdentifier(table)),
  )
  const ours = new Set(
    [
      ...SYSTEM_COLUMNS,
      ...HISTORY_COLUMNS,
      ...(deletes === null ? [] : [DELETED_AT]),
      ...columns.flatMap((column) => column.name ?? []),
    ].map((column) => column.toLowerCase()),
  )
  return [...new Set(there.map((column) => column.name))].filter((column) => !ours.has(column.toLowerCase()))
}

export function unquoteIdentifier(quoted: string): string {
  return quoted.slice(1, -1).replaceAll('""', '"')
}

/** Appends the values of a record for `members`, as SQLite takes them. */
export function bindValues({ columns }: Table, { values }: EncodedRecord, into: Parameter[]): void {
  let at = 0
  for (const { name, type } of columns) {
    // `COLUMN_DIALECT` produces no lists.
    const value = values[at++] as ScalarValue
    if (name === null) continue
    if (typeof value === 'boolean') into.push(value ? 1 : 0)
    else if (value === null) into.push(null)
    else if (type === 'numeric' || type === 'decimal') into.push(String(value))
    // The driver binds a number this small as the integer 0. From its text the column gets the same number.
    else if (typeof value === 'number' && value > 0 && value <= Number.EPSILON) into.push(String(value))
    else into.push(type === 'bytes' ? Buffer.from(value as string, 'base64') : value)
  }
}

function createTable(session: TenantSession, database: string, seen: readonly Column[]): Table {
  const { connection, tenantId } = session
  const table = findFreeTableName(session, database)
  connection.run(
    'insert into tidemark_databases (tenant_id, name, table_name, columns) values (?, ?, ?, ?)',
    tenantId,
    database,
    table,
    JSON.stringify(mergeColumns([], seen)),
  )
  const row = connection.one<DatabaseRow>(SELECT_DATABASE, tenantId, database)
  connection.exec(tableSql(row.database_id, table))
  return toTable(database, row)
}

export function tableSql(databaseId: number, table: string): string {
  const own = `_key text not null, _sequence integer not null, _created_sequence integer not null, _hash text not null, _upstream_at text,
    _synced_at datetime not null, _cursor text, _writer integer not null, _owner integer not null, _extra json`
  return `create table ${quoteIdentifier(table)} (${own}, primary key (_key)) without rowid;
    create index tidemark_current_${databaseId} on ${quoteIdentifier(table)} (_sequence);
    create table ${quoteIdentifier(`${table}_history`)} (_until_sequence integer primary key, _until_at datetime not null, ${own});
    create index tidemark_replaced_${databaseId} on ${quoteIdentifier(`${table}_history`)} (_sequence);
    create index tidemark_versions_${databaseId} on ${quoteIdentifier(`${table}_history`)} (_key, _sequence);`
}

/**
 * Returns the database's own name, with a number when another of our tables has it: SQLite folds case, and tenants
 * share the file.
 */
export function findFreeTableName(
  { connection, tenant }: Pick<TenantSession, 'connection' | 'tenant'>,
  database: string,
): string {
  const wanted = tenant === 'default' ? database : `${tenant}__${database}`
  for (let table = wanted, n = 2; ; table = `${wanted}_${n++}`) {
    const taken = connection.get<{ type: string; name: string }>(
      "select type, name from sqlite_schema where lower(name) in (lower(?1), lower(?1 || '_history')) limit 1",
      table,
    )
    if (taken === undefined) return table
    const ours = connection.get(
      "select 1 from tidemark_databases where lower(?) in (lower(table_name), lower(table_name || '_history'))",
      taken.name,
    )
    if (ours !== undefined) continue
    throw new SyncError(
      'STORE_FOREIGN',
      `The file already has a ${taken.type} named ${taken.name}, so the table of the database ${database} cannot be created. Rename the ${taken.type}.`,
    )
  }
}

function toTable(
  database: string,
  { database_id: id, table_name: table, layout, drift, deletes, purged_to: purgedTo }: DatabaseRow,
): Table {
  const name = quoteIdentifier(table)
  const state = { deletes, purgedTo }
  return bindTable(
    { id, database, name, live: liveRows(name, state), ...state, history: quoteIdentifier(`${table}_history`), drift },
    layout,
  )
}

type TableCodec = Pick<
  Table,
  'columns' | 'encoder' | 'members' | 'selected' | 'selectedAt' | 'since' | 'findDifference' | 'differsAt' | 'decode'
>

/**
 * Keyed by the layout's text, which defines the codec completely: tables of one layout share it, and a change creates a
 * new one.
 */
const codecCache = new Map<string, TableCodec>()
const CODECS_MAX = 1_000

function bindTable(table: Omit<Table, keyof TableCodec>, layout: string): Table {
  let codec = codecCache.get(layout)
  if (codec === undefined) {
    if (codecCache.size >= CODECS_MAX) codecCache.clear()
    codecCache.set(layout, (codec = makeCodec(JSON.parse(layout) as TableColumn[])))
  }
  return { ...table, ...codec }
}

function makeCodec(columns: readonly TableColumn[]): TableCodec {
  const named = columns.flatMap(({ name, type }) => (name === null ? [] : [{ name: quoteIdentifier(name), type }]))
  const members = named.map(({ name }) => name)
  // Integers are read as text: beyond 2^53 a number would lose precision.
  const selected = named.map(({ name, type }) => (type === 'bigint' ? `cast(${name} as text)` : name))
  let next = 0
  const indexes = columns.map(({ name }) => (name === null ? -1 : next++))
  const decoder = new RecordDecoder<Exclude<StoredValue, null>>(columns, toJsonText)
  const differsAt: TableCodec['differsAt'] = (at, values, stored) => {
    const { name, type } = required(columns[at], 'A column of the table')
    return name === null ? values[at] !== null : !isSameValue(type, values[at] ?? null, stored)
  }
  return {
    columns,
    encoder: new RecordEncoder(columns, COLUMN_DIALECT),
    members,
    selected: selected.map((text) => `, ${text}`).join(''),
    // During a schema change a value may be in either of two columns, so no row is compared by columns.
    since: columns.some(({ former }) => former === true) ? Infinity : Math.max(0, ...columns.map(({ since }) => since)),
    selectedAt: (column) => selected[indexes[column] ?? -1] ?? null,
    findDifference: (values, stored, from) =>
      columns.findIndex((_, at) => differsAt(at, values, stored[from + (indexes[at] ?? 0)] ?? null)),
    differsAt,
    decode: (sequence, extra, values, from) =>
      decoder.decode(sequence, extra, (at) => values[from + (indexes[at] ?? 0)] ?? null),
  }
}

function isSameValue(type: ColumnType, value: EncodedRecord['values'][number], stored: StoredValue): boolean {
  if (value === null || stored === null) return value === stored
  if (typeof value === 'boolean') return stored === (value ? 1 : 0)
  if (type === 'bigint' || type === 'numeric' || type === 'decimal') return stored === String(value)
  if (type === 'bytes') return toBase64(stored as Uint8Array) === value
  return value === stored || (isJsonType(type) && equalsJson(value as string, String(stored as string | number)))
}

function isJsonType(type: ColumnType): boolean {
  return type === 'json' || itemTypeOf(type) !== null
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

function toJsonText(value: Exclude<StoredValue, null>, { type }: TableColumn): string {
  switch (type) {
    case 'bigint':
    case 'json':
    case 'numeric':
      return String(value)
    case 'boolean':
      return value === 0 ? 'false' : 'true'
    case 'bytes':
      return `"${toBase64(value as Uint8Array)}"`
    default:
      return itemTypeOf(type) === null ? JSON.stringify(value) : (value as string)
  }
}
