import { SyncError, type Column, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { mergeColumns, quoteIdentifier } from '../kit/column-names.ts'
import { itemTypeOf, type ColumnDialect, type ColumnType, type TableColumn } from '../kit/tables/column.ts'
import { RecordDecoder } from '../kit/tables/decode-record.ts'
import { DELETED_AT, liveRows, type DeleteState } from '../kit/tables/delete-state.ts'
import { RecordEncoder, type EncodedRecord } from '../kit/tables/encode-record.ts'
import { fitRow, mayExceedRow } from '../kit/tables/fit-row.ts'
import { growColumns, type ColumnLimits } from '../kit/tables/grow-columns.ts'
import type { DriftCollector } from '../kit/tables/schema-drift.ts'
import { textArray } from './binary-arrays.ts'
import { parseArrayText } from './array-text.ts'
import { sqlTypeOf, type SqlType } from './binary-values.ts'
import type { Transaction } from './connection.ts'
import type { StoredRecord } from './found-rows.ts'
import { RecordTranscoder } from './transcode-record.ts'
import { required } from '../../values/required.ts'

/** A database's table, its history, and the codec for its records. */
export interface Table extends DeleteState {
  readonly id: number
  readonly database: string
  /** Qualified, and quoted where necessary. Contains all rows; reads of records use `live`. */
  readonly name: string
  /** The rows that are not deleted, for a FROM clause, followed by an alias. */
  readonly live: string
  readonly history: string
  /** See Commit.historyDays. */
  readonly historyDays: number | null
  /** The fields of its records, and their kinds. */
  readonly memberKinds: readonly Column[]
  readonly columns: readonly TableColumn[]
  /** Drift between records and columns; see `schema-drift.ts`. */
  readonly drift: string
  /** The fields' columns as SQL, in the order of `columns`; fields without a column are left out. */
  readonly members: ReadonlyArray<{ readonly name: string; readonly type: SqlType; readonly at: number }>
  encode(record: JsonObject, text: string, sequence?: number): EncodedRecord
  /** Encodes new records from their text; null where each must be parsed. */
  readonly transcoder: RecordTranscoder | null
  /** Returns the record of a row; `values` begins with the fields' columns, as PostgreSQL writes them. */
  decode(sequence: number, extra: string | null, values: ReadonlyArray<string | null>): string
  /** True when a column shows that a stored record is another one; much faster than decoding it. */
  differs(record: JsonObject, stored: StoredRecord): boolean
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
] as const
export const SYSTEM_COLUMN_TYPES: readonly SqlType[] = [
  'text',
  'bigint',
  'bigint',
  'text',
  'timestamptz',
  'timestamptz',
  'text',
  'integer',
  'integer',
  'json',
]
const SYSTEM_COLUMNS_SQL = `_key text collate "C" not null, _sequence bigint not null, _created_sequence bigint not null, _hash text collate "C" not null,
  _upstream_at timestamptz, _synced_at timestamptz not null, _cursor text, _writer integer not null, _owner integer not null, _extra json`
/**
 * Names that no field's column may have: system columns, columns that a setting adds later, and those of PostgreSQL
 * itself.
 */
export const RESERVED_NAMES = [
  ...SYSTEM_COLUMNS,
  '_until_sequence',
  '_until_at',
  DELETED_AT,
  'tableoid',
  'xmin',
  'cmin',
  'xmax',
  'cmax',
  'ctid',
  'oid',
]
export const NAME_BYTES_MAX = 63
export const COLUMNS_MAX = 1_000
const COLUMN_LIMITS = { nameBytesMax: NAME_BYTES_MAX, columnsMax: COLUMNS_MAX }
export const COLUMN_DIALECT: ColumnDialect = { preservesText: false, preservesJsonText: false, doubleMin: 0 }

/**
 * How long a new column may wait for a query on the table; the page that adds it, and every other reader, wait
 * meanwhile.
 */
export const LOCK_TIMEOUT_MS = 200
export const LOCK_NOT_AVAILABLE = '55P03'

/** A row of `tidemark.databases`. */
export interface DatabaseRow {
  id: number
  name: string
  table: string
  history: string
  columns: string
  layout: string
  drift: string
  historyDays: number | null
  deletes: DeleteState['deletes']
  purgedTo: string | null
}

const SELECT_DATABASES = `select database_id as id, name, table_name as "table", history_name as history, columns, layout, drift, history_days as "historyDays", deletes, purged_to as "purgedTo"
  from tidemark.databases where tenant_id = $1`

/** Reads the tables of these databases by name; without names, all of them, sorted by name. */
export async function readTables(transaction: Transaction, names?: readonly string[]): Promise<Map<string, Table>> {
  const rows =
    names === undefined
      ? await transaction.all<DatabaseRow>(`${SELECT_DATABASES} order by name`, transaction.tenant)
      : await transaction.all<DatabaseRow>(
          `${SELECT_DATABASES} and name = any($2::text[])`,
          transaction.tenant,
          textArray(names),
        )
  return new Map(rows.map((row) => [row.name, toTable(row)]))
}

/**
 * Returns the tables of these databases; creates missing ones and records new field kinds. Legal once the tenant's row
 * is locked. Columns are added when the first record that needs them is written; see `growTable`.
 */
export async function ensureTables(
  transaction: Transaction,
  known: ReadonlyMap<string, Table>,
  seen: Readonly<Record<string, readonly Column[]>>,
): Promise<Map<string, Table>> {
  const tables = new Map<string, Table>()
  for (const [name, columns] of Object.entries(seen)) {
    const table = known.get(name) ?? (await createTable(transaction, name))
    const kinds = mergeColumns(table.memberKinds, columns)
    if (kinds !== table.memberKinds) {
      transaction.send(
        'update tidemark.databases set columns = $3 where tenant_id = $1 and database_id = $2',
        transaction.tenant,
        table.id,
        JSON.stringify(kinds),
      )
    }
    tables.set(name, { ...table, memberKinds: kinds })
  }
  return tables
}

/**
 * Adds columns for new fields of these records, in the transaction that writes them. If a reader holds the table for
 * too long it stays as it is: the values land in `_extra`, and the next page tries again.
 */
export async function growTable(
  transaction: Transaction,
  table: Table,
  records: readonly JsonObject[],
  since: number,
  driftCollector?: DriftCollector,
): Promise<Table> {
  // Checked first without reading the taken names: a full table usually has nothing to add.
  if (growColumns(table.columns, records, since, { reserved: RESERVED_NAMES, ...COLUMN_LIMITS }) === table.columns)
    return table
  const foreign = await foreignColumns(transaction, table)
  const columns = growColumns(table.columns, records, since, {
    reserved: [...RESERVED_NAMES, ...foreign],
    ...COLUMN_LIMITS,
  })
  if (!(await addColumns(transaction, table, columns))) return table
  driftCollector?.recordTakenNames(table, columns, foreign, since)
  return writeLayout(transaction, table, columns)
}

export async function columnLimits(transaction: Transaction, table: Table): Promise<ColumnLimits> {
  return { reserved: [...RESERVED_NAMES, ...(await foreignColumns(transaction, table))], ...COLUMN_LIMITS }
}

/**
 * Adds the columns that the table does not have yet. Returns false, with nothing added, when a reader holds the table
 * for too long.
 */
export async function addColumns(
  transaction: Transaction,
  table: Table,
  columns: readonly TableColumn[],
): Promise<boolean> {
  const there = new Set(table.members.map(({ name }) => name))
  const added = columns.flatMap(({ name, type }) =>
    name === null || there.has(quoteIdentifier(name)) ? [] : [`add column ${quoteIdentifier(name)} ${sqlTypeOf(type)}`],
  )
  if (added.length === 0) return true
  const change = [table.name, table.history].map((name) => `alter table ${name} ${added.join(', ')}`).join(';')
  return transaction.tryRun(change, { lockTimeoutMs: LOCK_TIMEOUT_MS, refusals: [LOCK_NOT_AVAILABLE] })
}

export function writeLayout(transaction: Transaction, table: Table, columns: readonly TableColumn[]): Table {
  const layout = JSON.stringify(columns)
  transaction.send(
    'update tidemark.databases set layout = $3 where tenant_id = $1 and database_id = $2',
    transaction.tenant,
    table.id,
    layout,
  )
  return { ...table, ...codecOf(layout) }
}

/** Columns that users added. */
export async function foreignColumns(
  transaction: Transaction,
  { name, history, columns, deletes }: Table,
): Promise<string[]> {
  const rows = await transaction.all<{ name: string }>(
    'select distinct attname as name from pg_attribute where attrelid in (to_regclass($1), to_regclass($2)) and attnum > 0 and not attisdropped',
    name,
    history,
  )
  const ours = new Set([
    ...RESERVED_NAMES.filter((column) => column !== DELETED_AT || deletes !== null),
    ...columns.flatMap((column) => column.name ?? []),
  ])
  return rows.map((row) => row.name).filter((column) => !ours.has(column))
}

/** The table of a database that is known to have one. */
export function tableOf<T>(tables: ReadonlyMap<string, T>, database: string): T {
  return required(tables.get(database), `The table of ${database}`)
}

async function createTable(transaction: Transaction, database: string): Promise<Table> {
  const schema = schemaNameOf(transaction.tenant)
  const { name, history } = await findFreeNames(transaction, schema, database)
  const there = await transaction.get('select from pg_namespace where nspname = $1', schema)
  if (there === undefined) await transaction.run(`create schema ${quoteIdentifier(schema)}`)
  const { id } = await transaction.one<{ id: number }>(
    "insert into tidemark.databases (tenant_id, name, table_name, history_name, layout) values ($1, $2, $3, $4, '[]') returning database_id as id",
    transaction.tenant,
    database,
    name,
    history,
  )
  await transaction.run(tableSql(name, history, []))
  return toTable({
    id,
    name: database,
    table: name,
    history,
    columns: '[]',
    layout: '[]',
    drift: '[]',
    historyDays: null,
    deletes: null,
    purgedTo: null,
  })
}

export function tableSql(name: string, history: string, columns: readonly TableColumn[]): string {
  const members = columns
    .flatMap(({ name, type }) => (name === null ? [] : [`, ${quoteIdentifier(name)} ${sqlTypeOf(type)}`]))
    .join('')
  return `create table ${name} (${SYSTEM_COLUMNS_SQL}${members}, primary key (_key));
    create index on ${name} (_sequence);
    create table ${history} (_until_sequence bigint not null, _until_at timestamptz not null, ${SYSTEM_COLUMNS_SQL}${members}, primary key (_until_sequence));
    create index on ${history} (_sequence);
    create index on ${history} (_key, _sequence);`
}

/** Returns the database's own name, with a number when a history table already has it. */
export async function findFreeNames(
  transaction: Transaction,
  schema: string,
  database: string,
): Promise<{ name: string; history: string }> {
  const [table, history] = [
    await findFreeName(transaction, schema, database, ''),
    await findFreeName(transaction, schema, database, '_history'),
  ]
  return { name: table, history }
}

async function findFreeName(
  transaction: Transaction,
  schema: string,
  database: string,
  suffix: string,
): Promise<string> {
  for (let n = 1; ; n++) {
    const end = `${suffix}${n === 1 ? '' : `_${n}`}`
    const { name, kind } = await transaction.one<{ name: string; kind: string | null }>(
      `select name, (select case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'r' then 'table' when 'p' then 'table' else 'relation' end
         from pg_class where oid = to_regclass(name)) as kind
       from (select format('%I.%I', $1::text, $2::text)) as wanted (name)`,
      schema,
      truncateToBytes(database, NAME_BYTES_MAX - end.length) + end,
    )
    if (kind === null) return name
    const ours = await transaction.get(
      'select from tidemark.databases where tenant_id = $1 and $2 in (table_name, history_name)',
      transaction.tenant,
      name,
    )
    if (ours === undefined)
      throw new SyncError(
        'STORE_FOREIGN',
        `A ${kind} ${name} already exists, so the table of the database ${database} cannot be created. Rename the ${kind}.`,
      )
  }
}

function truncateToBytes(text: string, bytesMax: number): string {
  let cut = text
  while (Buffer.byteLength(cut) > bytesMax) cut = cut.slice(0, -1)
  return cut.isWellFormed() ? cut : cut.slice(0, -1)
}

export function schemaNameOf(tenant: string): string {
  if (tenant === 'default') return 'public'
  // Schemas of the server, and our own.
  return /^(?:tenant_)*(?:public|tidemark|information_schema|pg_.*)$/.test(tenant) ? `tenant_${tenant}` : tenant
}

// ── records ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export function toTable({
  id,
  name,
  table,
  history,
  columns,
  layout,
  drift,
  historyDays,
  deletes,
  purgedTo,
}: DatabaseRow): Table {
  const state = { deletes, purgedTo }
  return {
    id,
    database: name,
    name: table,
    live: liveRows(table, state),
    history,
    drift,
    historyDays,
    ...state,
    memberKinds: JSON.parse(columns) as Column[],
    ...codecOf(layout),
  }
}

type TableCodec = Pick<Table, 'columns' | 'members' | 'encode' | 'transcoder' | 'decode' | 'differs'>

/**
 * Keyed by the layout's text, which defines the codec completely: tables of one layout share it, and a change creates a
 * new one.
 */
const codecCache = new Map<string, TableCodec>()
const CODECS_MAX = 1_000

export function codecOf(layout: string): TableCodec {
  let codec = codecCache.get(layout)
  if (codec === undefined) {
    if (codecCache.size >= CODECS_MAX) codecCache.clear()
    codecCache.set(layout, (codec = makeCodec(JSON.parse(layout) as TableColumn[])))
  }
  return codec
}

function makeCodec(columns: readonly TableColumn[]): TableCodec {
  const members = columns.flatMap(({ name, type }, at) =>
    name === null ? [] : [{ name: quoteIdentifier(name), type: sqlTypeOf(type), at }],
  )
  let next = 0
  const indexes = columns.map(({ name }) => (name === null ? -1 : next++))
  const encoder = new RecordEncoder(columns, COLUMN_DIALECT)
  const decoder = new RecordDecoder<string>(columns, toJsonText)
  const isPlain = !mayExceedRow(columns, ROW_SIZE_LIMITS) && columns.every(({ former }) => former !== true)
  return {
    columns,
    members,
    transcoder: isPlain ? new RecordTranscoder(columns, encoder) : null,
    encode: (record, text, sequence) =>
      fitRow(
        columns,
        hasOversizedNumber(text) ? encodeAllAsExtra(columns, record) : encoder.encode(record, sequence),
        record,
        ROW_SIZE_LIMITS,
      ),
    decode: (sequence, extra, values) => decoder.decode(sequence, extra, (at) => values[indexes[at] ?? -1] ?? null),
    differs: (record, { extra, values }) =>
      extra === null &&
      columns.some((column, at) => {
        const value = values[indexes[at] ?? -1] ?? null
        return value !== null && column.former !== true && isOtherValue(column, value, record[column.member])
      }),
  }
}

/** Without `_extra` a column holds exactly the field's value. Only for types of which a value has a single text. */
function isOtherValue({ type, format }: TableColumn, stored: string, value: JsonValue | undefined): boolean {
  switch (type) {
    case 'text':
    case 'date':
    case 'uuid':
      return value !== stored
    case 'boolean':
      return value !== (stored === 't')
    case 'timestamp':
      return value !== formatTimestamp(stored, required(format, 'The format of a timestamp'))
    default:
      return false
  }
}

/** numeric and jsonb refuse a number with more than 131072 digits. */
function hasOversizedNumber(text: string): boolean {
  return text.length > 100_000 && /\d{100000}/.test(text)
}

function encodeAllAsExtra(columns: readonly TableColumn[], record: JsonObject): EncodedRecord {
  const absent = columns
    .filter(({ member, none }) => none !== 'absent' && !Object.hasOwn(record, member))
    .map(({ member }) => member)
  return {
    values: columns.map(() => null),
    extra: stringifyJson({ values: record, ...(absent.length > 0 && { absent }) }),
    needsColumns: false,
    misfits: null,
  }
}

/** A row must fit into a page of 8 kB. */
export const ROW_SIZE_LIMITS = { rowBytesMax: 7_000, valueBytesMax: 24 }

/** Writes PostgreSQL's text of a value, under the settings of `connection.ts`, as JSON. */
export function toJsonText(value: string, { type, format }: TableColumn): string {
  return formatJsonText(value, type, format)
}

function formatJsonText(value: string, type: ColumnType, format: string | undefined): string {
  switch (type) {
    case 'bigint':
    case 'double':
    case 'json':
    case 'numeric':
      return value
    case 'boolean':
      return value === 't' ? 'true' : 'false'
    case 'date':
    case 'decimal':
    case 'time':
    case 'uuid':
      return `"${value}"`
    case 'timestamp':
      return `"${formatTimestamp(value, required(format, 'The format of a timestamp'))}"`
    case 'datetime':
      return `"${formatDatetime(value, value.length, required(format, 'The format of a datetime'))}"`
    case 'bytes':
      return `"${Buffer.from(value.slice(2), 'hex').toString('base64')}"`
    case 'text':
      return JSON.stringify(value)
    default: {
      const item = required(itemTypeOf(type), 'The item type of a list')
      return `[${parseArrayText(value)
        .map((one) => (one === null ? 'null' : formatJsonText(one, item, format)))
        .join(',')}]`
    }
  }
}

/** `2026-01-31 12:00:00.5+00` in a format such as `3Z`; see `TableColumn.format`. */
export function formatTimestamp(text: string, format: string): string {
  return formatDatetime(text, text.length - 3, format) + format.slice(1)
}

/** The zone begins at `end`. */
function formatDatetime(text: string, end: number, format: string): string {
  const seconds = `${text.slice(0, 10)}${format.endsWith('_') ? ' ' : 'T'}${text.slice(11, 19)}`
  if (format.startsWith('*')) return seconds + text.slice(19, end)
  const decimals = format.charCodeAt(0) - 48
  return decimals === 0 ? seconds : `${seconds}.${text.slice(20, end).padEnd(decimals, '0')}`
}

/** `_upstream_at` as canonical text; PostgreSQL writes the year 0 as 1 BC. */
export function toInstant(text: string | null): string | null {
  if (text === null) return null
  const year0 = text.endsWith(' BC')
  const plain = formatTimestamp(year0 ? text.slice(0, -3) : text, '6Z')
  return year0 ? `0000${plain.slice(4)}` : plain
}

/** `_synced_at` in milliseconds. */
export function toMs(text: string): number {
  return Date.parse(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`)
}
