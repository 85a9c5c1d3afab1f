import { hash } from 'node:crypto'
import {
  canonicalizeInstant,
  fitRow,
  growColumns,
  itemTypeOf,
  mergeColumns,
  quoteIdentifier,
  RecordDecoder,
  RecordEncoder,
  stringifyJson,
  SyncError,
  type Column,
  type ColumnLimits,
  type ColumnType,
  type ColumnValue,
  type DriftCollector,
  type EncodedRecord,
  type JsonObject,
  type ScalarType,
  type TableColumn,
} from 'tidemark/store'
import { errnoOfCause, LOCK_TIMEOUT, type Parameter, type Transaction } from './connection.ts'
import { TABLE_OPTIONS } from './schema.ts'
import type { TenantSession } from './sql.ts'

/** A database's table, its history, and the codec for its records. */
export interface Table {
  readonly id: number
  readonly database: string
  /** Quoted SQL name. */
  readonly name: string
  readonly history: string
  /** The fields of its records, and their kinds. */
  readonly memberKinds: readonly Column[]
  readonly columns: readonly TableColumn[]
  readonly drift: string
  readonly historyDays: number | null
  /** The fields' columns as SQL, in the order of `columns`; fields without a column are left out. */
  readonly members: readonly string[]
  /** The select list from which `decode` reads the values, after the statement's own columns. */
  readonly selected: string
  encode(record: JsonObject): EncodedRecord
  /** Returns the values for `members`. */
  bind(record: EncodedRecord): Parameter[]
  decode(sequence: number, extra: string | null, values: readonly (string | null)[], from: number): string
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
const SYSTEM_COLUMNS_SQL = `_key varbinary(1024) not null, _sequence bigint not null, _created_sequence bigint not null, _hash varchar(64) not null, _upstream_at varchar(40),
  _synced_at datetime(3) not null, _cursor longtext, _writer int not null, _owner int not null, _extra longtext`
const RESERVED_NAMES = [...SYSTEM_COLUMNS, '_until_sequence', '_until_at', '_deleted_at']
/** A row has 8,126 bytes, of which a long value takes at most 40: the rest is stored out of line. */
const ROW_SIZE_LIMITS = { rowBytesMax: 6_500, valueBytesMax: 42 }
const COLUMNS_MAX = 600
/** How long a new column may wait for a reader of the table; other readers wait meanwhile. */
const DDL_WAIT_SECONDS = 1

export const SQL_TYPES: Readonly<Record<ScalarType, string>> = {
  bigint: 'bigint',
  boolean: 'boolean',
  bytes: 'longblob',
  date: 'date',
  datetime: 'datetime(6)',
  decimal: 'longtext',
  double: 'double',
  json: 'longtext',
  numeric: 'longtext',
  text: 'longtext',
  time: 'time(6)',
  timestamp: 'datetime(6)',
  uuid: 'char(36)',
}

/** The SQL type of a column. A list is JSON text: MariaDB's own JSON type refuses values nested deeper than 32. */
export function sqlTypeOf(type: ColumnType): string {
  return SQL_TYPES[itemTypeOf(type) === null ? (type as ScalarType) : 'json']
}

interface DatabaseRow {
  id: number
  database: string
  table: string
  columns: string
  layout: string
  drift: string
  historyDays: number | null
}

const SELECT_DATABASES = `select database_id as id, name as "database", table_name as "table", columns, layout, drift, history_days as historyDays
  from tidemark_databases where tenant_id = ?`

/** Reads the tables of these databases by name; without names, all of them, sorted by name. */
export async function readTables(
  { tenant }: TenantSession,
  transaction: Transaction,
  names?: readonly string[],
): Promise<Map<string, Table>> {
  if (names?.length === 0) return new Map()
  const rows = await transaction.all<DatabaseRow>(
    `${SELECT_DATABASES} ${names === undefined ? '' : 'and name in (?)'} order by name`,
    tenant,
    ...(names === undefined ? [] : [names]),
  )
  return new Map(rows.map((row) => [row.database, toTable(row)]))
}

/**
 * Returns the tables of these databases, and creates missing ones. Legal with the tenant locked, and before the
 * transaction has used a table of records: DDL commits implicitly, so another connection runs it, and it would wait for
 * this one. A table or column of a rolled-back transaction stays, and the next one that needs it reuses it.
 */
export async function ensureTables(
  session: TenantSession,
  transaction: Transaction,
  names: readonly string[],
): Promise<Map<string, Table>> {
  const tables = await readTables(session, transaction, names)
  for (const database of names) {
    if (tables.has(database)) continue
    const table = await createTable(session, database)
    await transaction.run(
      "insert into tidemark_databases (tenant_id, name, table_name, columns, layout, drift) values (?, ?, ?, '[]', '[]', '[]')",
      session.tenant,
      database,
      table,
    )
    for (const [name, made] of await readTables(session, transaction, [database])) tables.set(name, made)
  }
  return tables
}

/** Records new field kinds of the table. */
export async function writeMemberKinds(transaction: Transaction, table: Table, seen: readonly Column[]): Promise<void> {
  const kinds = mergeColumns(table.memberKinds, seen)
  if (kinds !== table.memberKinds)
    await transaction.run(
      'update tidemark_databases set columns = ? where database_id = ?',
      JSON.stringify(kinds),
      table.id,
    )
}

/**
 * Adds columns for new fields of these records. While a reader holds the table it stays as it is, and the values are in
 * `_extra`.
 */
export async function growTable(
  session: TenantSession,
  transaction: Transaction,
  table: Table,
  records: readonly JsonObject[],
  since: number,
  driftCollector: DriftCollector,
): Promise<Table> {
  if (!driftCollector.mayAddColumns(table) || !records.some((record) => table.encode(record).needsColumns)) return table
  const { limits, foreign } = await limitsOf(session, table)
  const columns = growColumns(table.columns, records, since, limits)
  const grown = await alterTable(session, transaction, table, columns)
  if (grown !== table) driftCollector.recordTakenNames(table, columns, foreign, since)
  return grown
}

/** Returns the table with these columns, or unchanged while a reader holds it. */
export async function alterTable(
  session: TenantSession,
  transaction: Transaction,
  table: Table,
  columns: readonly TableColumn[],
): Promise<Table> {
  if (columns === table.columns) return table
  const there = new Set(table.members)
  const added = columns.flatMap(({ name, type }) =>
    name === null || there.has(quoteIdentifier(name)) ? [] : [{ name, type }],
  )
  if (added.length > 0 && !(await addColumns(session, table, added))) return table
  const layout = JSON.stringify(columns)
  await transaction.run('update tidemark_databases set layout = ? where database_id = ?', layout, table.id)
  return { ...table, ...codecOf(layout) }
}

function addColumns(
  { connection }: TenantSession,
  table: Table,
  columns: ReadonlyArray<{ readonly name: string; readonly type: ColumnType }>,
): Promise<boolean> {
  return connection.runOutsideTransaction(async (statements) => {
    for (const name of [table.name, table.history]) {
      const there = new Set((await columnsOf(statements, name)).map((column) => column.name.toLowerCase()))
      const clauses = columns.map((column) => {
        // An existing column was left behind by a rolled-back transaction: it is empty, and may get another type.
        const verb = there.has(column.name.toLowerCase()) ? 'modify' : 'add'
        return `${verb} column ${quoteIdentifier(column.name)} ${sqlTypeOf(column.type)} null comment '${TIDEMARK_COMMENT}'`
      })
      try {
        await statements.run(`alter table ${name} wait ${DDL_WAIT_SECONDS} ${clauses.join(', ')}`)
      } catch (error) {
        if (errnoOfCause(error) === LOCK_TIMEOUT) return false
        throw error
      }
    }
    return true
  })
}

/** The names that fields may not use, and which of them are the user's own columns. */
export function limitsOf(
  { connection }: TenantSession,
  table: Table,
): Promise<{ limits: ColumnLimits; foreign: string[] }> {
  return connection.runOutsideTransaction(async (statements) => {
    const foreign = (await columnsOf(statements, table.name))
      .filter(({ comment, name }) => comment !== TIDEMARK_COMMENT && !SYSTEM_COLUMNS.includes(name))
      .map(({ name }) => name)
    return {
      limits: { reserved: [...RESERVED_NAMES, ...foreign], nameBytesMax: 64, columnsMax: COLUMNS_MAX, sanitizeName },
      foreign,
    }
  })
}

/**
 * MariaDB refuses some characters in names, and the driver parses others as parameters: columns are named with letters
 * and digits.
 */
function sanitizeName(member: string): string {
  return member.replaceAll(/[^\p{L}\p{N}_]|[\u{10000}-\u{10ffff}]/gu, '_')
}

/** Marks tables and columns that this store created. */
const TIDEMARK_COMMENT = 'tidemark'

function columnsOf(statements: Transaction, quoted: string): Promise<Array<{ name: string; comment: string }>> {
  return statements.all(
    'select column_name as name, column_comment as comment from information_schema.columns where table_schema = database() and table_name = ?',
    quoted.slice(1, -1),
  )
}

/**
 * Returns the database's own name, with a number when another of our tables has it. Table names contain only word
 * characters, and their case is ignored.
 */
function createTable({ connection, tenant }: TenantSession, database: string): Promise<string> {
  const wanted = (tenant === 'default' ? database : `${tenant}__${database}`).replaceAll(/\W/g, '_').slice(0, 50)
  const mark = `${TIDEMARK_COMMENT} ${hash('sha1', JSON.stringify([tenant, database]), 'hex')}`
  return connection.runOutsideTransaction(async (statements) => {
    await statements.run("select get_lock(concat('tidemark ', database()), 60)")
    for (let table = wanted, n = 2; ; table = `${wanted}_${n++}`) {
      const taken = await statements.all<{ name: string; comment: string }>(
        'select table_name as name, table_comment as comment from information_schema.tables where table_schema = database() and lower(table_name) in (lower(?), lower(?))',
        table,
        `${table}_history`,
      )
      const foreign = taken.find(({ comment }) => !comment.startsWith(TIDEMARK_COMMENT))
      if (foreign !== undefined)
        throw new SyncError(
          'STORE_FOREIGN',
          `A table ${foreign.name} already exists, so the table of the database ${database} cannot be created. Rename it.`,
        )
      if (taken.some(({ comment }) => comment !== mark)) continue
      const options = `${TABLE_OPTIONS} comment '${mark}'`
      await statements.run(
        `create table if not exists ${quoteIdentifier(table)} (${SYSTEM_COLUMNS_SQL}, primary key (_key), key (_sequence)) ${options}`,
      )
      await statements.run(`create table if not exists ${quoteIdentifier(`${table}_history`)} (_until_sequence bigint not null primary key, _until_at datetime(3) not null,
        ${SYSTEM_COLUMNS_SQL}, key (_sequence), key (_key, _sequence)) ${options}`)
      await statements.run("do release_lock(concat('tidemark ', database()))")
      return table
    }
  })
}

/** The table of a database that is known to have one. */
export function tableOf<T>(tables: ReadonlyMap<string, T>, database: string): T {
  return required(tables.get(database), `The table of ${database}`)
}

/** Returns the value, or throws if it is missing. */
export function required<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`${what} is missing`)
  return value
}

// ── records ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function toTable({ id, database, table, columns, layout, drift, historyDays }: DatabaseRow): Table {
  return {
    id,
    database,
    drift,
    historyDays,
    name: quoteIdentifier(table),
    history: quoteIdentifier(`${table}_history`),
    memberKinds: JSON.parse(columns) as Column[],
    ...codecOf(layout),
  }
}

type TableCodec = Pick<Table, 'columns' | 'members' | 'selected' | 'encode' | 'bind' | 'decode'>

/** Keyed by the layout's text, which defines the codec completely. */
const codecCache = new Map<string, TableCodec>()
const CODECS_MAX = 1_000

function codecOf(layout: string): TableCodec {
  let codec = codecCache.get(layout)
  if (codec === undefined) {
    if (codecCache.size >= CODECS_MAX) codecCache.clear()
    codecCache.set(layout, (codec = makeCodec(JSON.parse(layout) as TableColumn[])))
  }
  return codec
}

function makeCodec(columns: readonly TableColumn[]): TableCodec {
  const named = columns.flatMap(({ name, type }, at) =>
    name === null ? [] : [{ name: quoteIdentifier(name), type, at }],
  )
  const indexes = new Map(named.map(({ at }, index) => [at, index]))
  const encoder = new RecordEncoder(columns, { preservesText: false, preservesJsonText: true, doubleMin: 2.3e-308 })
  const decoder = new RecordDecoder<string>(columns, toJsonText)
  return {
    columns,
    members: named.map(({ name }) => name),
    // The driver refuses results with a column named __proto__.
    selected: named
      .map(({ name, type }, index) => `, ${type === 'bytes' ? `hex(${name})` : name} as c${index}`)
      .join(''),
    encode: (record) => fitRow(columns, encoder.encode(record), record, ROW_SIZE_LIMITS),
    bind: ({ values }) =>
      columns.flatMap((column, at) => (column.name === null ? [] : [bindValue(column.type, values[at] ?? null)])),
    decode: (sequence, extra, values, from) =>
      decoder.decode(sequence, extra, (at) => values[from + (indexes.get(at) ?? 0)] ?? null),
  }
}

function bindValue(type: ColumnType, value: ColumnValue): Parameter {
  if (value === null || typeof value === 'boolean') return value
  if (type === 'timestamp' || type === 'datetime')
    return toDatetime(type === 'timestamp' ? (value as string) : `${value as string}Z`)
  if (type === 'bytes') return Buffer.from(value as string, 'base64')
  return typeof value === 'bigint' || type === 'numeric' ? String(value as bigint) : (value as string | number)
}

/** An instant as MariaDB reads it, in UTC. */
function toDatetime(instant: string): string {
  return required(canonicalizeInstant(instant), `The instant ${instant}`).replace('T', ' ').replace('Z', '')
}

/** Writes MariaDB's text of a value as JSON. */
function toJsonText(value: string, { type, format }: TableColumn): string {
  switch (type) {
    case 'bigint':
    case 'json':
    case 'numeric':
      return value
    case 'double':
      return stringifyJson(Number(value))
    case 'boolean':
      return value === '0' ? 'false' : 'true'
    case 'bytes':
      return `"${Buffer.from(value, 'hex').toString('base64')}"`
    case 'time':
      return `"${value.replace(/\.?0+$/, '')}"`
    case 'timestamp':
    case 'datetime':
      return `"${formatDatetime(value, required(format, 'The format of a timestamp'))}"`
    default:
      return itemTypeOf(type) === null ? JSON.stringify(value) : value
  }
}

/** `2026-01-31 12:00:00.500000` in a format such as `3Z`; see `TableColumn.format`. */
function formatDatetime(text: string, format: string): string {
  const decimals = format.startsWith('*') ? text.slice(20).replace(/0+$/, '') : text.slice(20, 20 + Number(format[0]))
  return `${text.slice(0, 10)}T${text.slice(11, 19)}${decimals === '' ? '' : `.${decimals}`}${format.slice(1)}`
}
