import type { Connection, ConnectionOptions } from 'mysql2'
import { SyncError, type ColumnType, type ErrorCode, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import { splitTableName, type TableName } from '../kit/postgres/catalog.ts'
import { decodeInteger } from '../kit/postgres/decode-values.ts'
import type { SqlColumn, SqlColumnKind, SqlDatabase, SqlDialect, ReadHorizon, SqlRow, SqlTable } from './database.ts'
import { buildSelect, type RowSelection, type SqlStatement } from './statements.ts'
import { importPackage } from '../../values/import-package.ts'

export async function openMysql(url: string, signal: AbortSignal): Promise<SqlDatabase> {
  const { createConnection } = await loadMysql2()
  const { host, pathname, protocol } = new URL(url)
  const where = `${protocol === 'mariadb:' ? 'MariaDB' : 'MySQL'} at ${host}${pathname}`
  signal.throwIfAborted()
  const options: ConnectionOptions = {
    // Values stay exact: no Date, no double for large integers, no parsed JSON.
    dateStrings: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    jsonStrings: true,
    rowsAsArray: true,
    timezone: 'Z',
    connectTimeout: 10_000,
  }
  const connection = createConnection({ ...options, uri: url.replace(/^mariadb:/, 'mysql:') })
  const session = new MysqlSession(connection, where, signal)
  try {
    await session.query(SESSION_SETTINGS)
    return new MysqlDatabase(session)
  } catch (error) {
    session.close()
    throw error
  }
}

/** Optional dependency, needed only for MySQL and MariaDB. */
function loadMysql2(): Promise<typeof import('mysql2')> {
  return importPackage('mysql2', 'Reading from MySQL or MariaDB needs', () => import('mysql2'))
}

export const mysqlDialect: SqlDialect = {
  quote: quoteMysqlName,
  // A string compared with a number would be converted to floating point.
  placeholder: (_, { kind, type }) => {
    if (kind === 'integer') return `CAST(? AS ${type.includes('unsigned') ? 'UNSIGNED' : 'SIGNED'})`
    if (kind === 'instant') return type === 'date' ? 'CAST(? AS DATE)' : 'CAST(? AS DATETIME(6))'
    return type.startsWith('decimal') ? 'CAST(? AS DECIMAL(65, 30))' : '?'
  },
  bind: (text, { kind }) => {
    if (kind === 'binary') return Buffer.from(text, 'base64')
    return kind === 'instant' ? text.replace('T', ' ').replace(/Z$/, '') : text
  },
  supportsRowComparison: false,
  textOrder: (column) => `CAST(${quoteMysqlName(column.name)} AS BINARY)`,
  digests: {
    text: ({ name, type }) => {
      const text = `CONVERT(${quoteMysqlName(name)} USING utf8mb4)`
      const base = type.replace(/\W.*/, '')
      if (base === 'timestamp') return `CONCAT(REPLACE(${withoutZeros(text, type)}, ' ', 'T'), 'Z')`
      if (base === 'datetime') return `REPLACE(${withoutZeros(text, type)}, ' ', 'T')`
      if (base === 'time') return withoutZeros(text, type)
      return TEXT_TYPES.has(base) && !type.includes('zerofill') ? text : null
    },
    rowText: (texts) =>
      `CONCAT(${texts.map((text) => `COALESCE(CONCAT('t', CHAR_LENGTH(${text}), ':', ${text}), 'n')`).join(', ')})`,
    sum: (rowText) => `SUM(CAST(CONV(LEFT(MD5(${rowText}), 16), 16, 10) AS UNSIGNED))`,
    condition: '1',
  },
}

/** The driver omits a fraction of zero. */
function withoutZeros(text: string, type: string): string {
  const digits = Number(/\((\d)\)/.exec(type)?.[1] ?? 0)
  return digits === 0 ? text : `TRIM(TRAILING '.${'0'.repeat(digits)}' FROM ${text})`
}

function quoteMysqlName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}

/** Types whose text is the same in a record. */
const TEXT_TYPES: ReadonlySet<string> = new Set([
  'bigint',
  'char',
  'date',
  'decimal',
  'enum',
  'int',
  'longtext',
  'mediumint',
  'mediumtext',
  'smallint',
  'text',
  'time',
  'tinyint',
  'tinytext',
  'uuid',
  'varchar',
])

class MysqlSession {
  readonly #connection: Connection
  readonly #where: string
  readonly #signal: AbortSignal
  readonly #end: () => void

  constructor(connection: Connection, where: string, signal: AbortSignal) {
    this.#connection = connection
    this.#where = where
    this.#signal = signal
    this.#end = () => connection.destroy()
    // A connection error also fails the pending statement; without a listener it would end the process.
    connection.on('error', () => {})
    signal.addEventListener('abort', this.#end, { once: true })
  }

  query(text: string, values: readonly unknown[] = []): Promise<unknown[][]> {
    return new Promise((resolve, reject) => {
      const done = (error: unknown, rows: unknown): void =>
        error === null ? resolve(rows as unknown[][]) : reject(this.#toSyncError(error))
      if (values.length === 0) this.#connection.query(text, done)
      else this.#connection.execute(text, values as string[], done)
    })
  }

  async *stream({ text, values }: SqlStatement): AsyncIterable<{ fields: readonly MysqlField[]; row: unknown[] }> {
    const command = this.#connection.execute(text, values as string[])
    let fields: MysqlField[] = []
    command.on('fields', (received: MysqlField[]) => (fields = received))
    try {
      for await (const row of command.stream({ highWaterMark: ROWS_AHEAD })) yield { fields, row: row as unknown[] }
    } catch (error) {
      throw this.#toSyncError(error)
    }
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#end)
    this.#connection.destroy()
  }

  #toSyncError(error: unknown): Error {
    return this.#signal.aborted ? (this.#signal.reason as Error) : toSyncError(error, this.#where)
  }
}

class MysqlDatabase implements SqlDatabase {
  readonly dialect = mysqlDialect
  readonly #session: MysqlSession
  #jsonColumns: ReadonlySet<string> = new Set()

  constructor(session: MysqlSession) {
    this.#session = session
  }

  async describeTable(name: TableName): Promise<SqlTable> {
    const parts = splitTableName(name)
    const [found] = await this.#session.query(
      'SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = coalesce(?, database()) AND table_name = ?',
      [parts.length === 2 ? parts[0] : null, parts.at(-1)],
    )
    if (found === undefined)
      throw new SyncError(
        'SOURCE_NOT_FOUND',
        `The table ${JSON.stringify(name)} does not exist, or the account cannot see it. Check the name and grants.`,
      )
    return this.#loadTable(found as string[])
  }

  async listTables(): Promise<SqlTable[]> {
    const found = await this.#session.query(
      'SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = database() ORDER BY table_name',
    )
    const tables: SqlTable[] = []
    for (const entry of found) tables.push(await this.#loadTable(entry as string[]))
    return tables
  }

  async detectCursorKind(_: SqlTable, column: SqlColumn): Promise<SqlColumnKind> {
    return column.kind
  }

  async readHorizon(_: SqlTable, { type }: SqlColumn, lagMs: number): Promise<ReadHorizon> {
    const [row] = await this.#session.query(
      `SELECT date_format(now_, ?), date_format(settled, ?),
        CASE ? WHEN 'timestamp' THEN date_format(settled, '%Y-%m-%dT%H:%i:%s.%fZ') WHEN 'date' THEN date_format(convert_tz(settled, '+00:00', @@global.time_zone), '%Y-%m-%d')
          ELSE date_format(convert_tz(settled, '+00:00', @@global.time_zone), '%Y-%m-%dT%H:%i:%s.%f') END
      FROM (SELECT utc_timestamp(6) AS now_, utc_timestamp(6) - INTERVAL ? SECOND AS settled) h`,
      [
        UTC_FORMAT,
        UTC_FORMAT,
        type.replace(/\W.*/, ''),
        String(Math.max(lagMs / 1_000, await this.#oldestTransactionAgeS())),
      ],
    )
    const [now = '', settled = '', until = ''] = row as string[]
    return { now, settled, until }
  }

  /** Age of the oldest open transaction; 0 if the account lacks the privilege to see it. */
  async #oldestTransactionAgeS(): Promise<number> {
    try {
      const [row] = await this.#session.query(
        'SELECT max(timestampdiff(SECOND, trx_started, now())) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> connection_id()',
      )
      const [ageS] = required(row, 'the transaction age')
      // Both times are rounded to whole seconds.
      return ageS === null ? 0 : Number(ageS) + 2
    } catch (error) {
      if (error instanceof SyncError && error.code === 'SOURCE_FORBIDDEN') return 0
      throw error
    }
  }

  async readMaxValue(table: SqlTable, column: SqlColumn): Promise<string | null> {
    const [row] = await this.#session.query(`SELECT max(${mysqlDialect.quote(column.name)}) FROM ${table.quoted}`)
    const [max] = required(row, 'the maximum')
    return max === null ? null : String(max)
  }

  async readRowCount(table: SqlTable): Promise<number> {
    const [row] = await this.#session.query(`SELECT count(*) FROM ${table.quoted}`)
    return Number(row?.[0] ?? 0)
  }

  async readValues({ text, values }: SqlStatement): Promise<ReadonlyArray<string | null>> {
    const [row] = await this.#session.query(text, values)
    return required(row, 'the row of a statement').map((value) => (value === null ? null : String(value)))
  }

  async *readRows(selection: RowSelection): AsyncIterable<SqlRow[]> {
    for await (const { fields, row } of this.#session.stream(buildSelect(selection, this.dialect)))
      yield [toRow(fields, row, this.#jsonColumns)]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#session.close()
  }

  async #loadTable([schema = '', name = '', type]: readonly string[]): Promise<SqlTable> {
    const columns = (await this.#session.query(
      'SELECT column_name, data_type, column_type, is_nullable FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position',
      [schema, name],
    )) as [string, string, string, string][]
    const indexes = (await this.#session.query(
      `SELECT index_name, column_name FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? AND non_unique = 0 ORDER BY index_name, seq_in_index`,
      [schema, name],
    )) as [string, string][]
    const unique = new Map<string, string[]>()
    for (const [index, column] of indexes) unique.set(index, [...(unique.get(index) ?? []), column])
    const key = unique.get('PRIMARY') ?? []
    // MariaDB stores JSON as text with a check constraint; MySQL has a type for it.
    const checks = await this.#session.query(
      "SELECT check_clause FROM information_schema.check_constraints WHERE constraint_schema = ? AND check_clause LIKE 'json_valid(%'",
      [schema],
    )
    const checked = new Set(checks.map(([clause]) => /^json_valid\(`(.+)`\)$/.exec(String(clause))?.[1]))
    this.#jsonColumns = new Set(
      columns
        .filter(([column, kind]) => kind === 'json' || (kind === 'longtext' && checked.has(column)))
        .map(([column]) => column),
    )
    const [[offsetS] = []] = await this.#session.query(
      "SELECT timestampdiff(SECOND, utc_timestamp(), convert_tz(utc_timestamp(), '+00:00', @@global.time_zone))",
    )
    return {
      id: `${schema}.${name}`,
      quoted: `${mysqlDialect.quote(schema)}.${mysqlDialect.quote(name)}`,
      isView: type === 'VIEW',
      columns: columns.map(([column, kind, full, nullable]) => ({
        name: column,
        kind: toColumnKind(kind),
        type: full,
        columnType: this.#jsonColumns.has(column) ? 'json' : toColumnType(kind, full),
        nullable: nullable === 'YES',
        isUtc: kind === 'timestamp' || Number(offsetS) === 0,
      })),
      key,
      unique: [...unique.values()],
    }
  }
}

interface MysqlField {
  readonly name: string
  readonly columnType?: number
  readonly characterSet?: number
  readonly flags?: number | string[]
}

const SESSION_SETTINGS = "SET SESSION time_zone = '+00:00'"
const UTC_FORMAT = '%Y-%m-%dT%H:%i:%s.%fZ'
const ROWS_AHEAD = 200

/** Values of mysql2's `Types`. */
const LONGLONG = 8
const TIMESTAMP = 7
const DATETIME = 12
const BIT = 16

function toColumnKind(type: string): SqlColumnKind {
  if (type === 'timestamp' || type === 'datetime' || type === 'date') return 'instant'
  if (/^(?:tiny|small|medium|big)?int$/.test(type)) return 'integer'
  return /binary|blob/.test(type) ? 'binary' : 'other'
}

const COLUMN_TYPES: Readonly<Record<string, ColumnType>> = {
  binary: 'bytes',
  bit: 'numeric',
  blob: 'bytes',
  char: 'text',
  date: 'date',
  datetime: 'datetime',
  decimal: 'decimal',
  double: 'double',
  enum: 'text',
  float: 'double',
  inet4: 'text',
  inet6: 'text',
  longblob: 'bytes',
  longtext: 'text',
  mediumblob: 'bytes',
  mediumtext: 'text',
  set: 'text',
  text: 'text',
  time: 'text',
  timestamp: 'timestamp',
  tinyblob: 'bytes',
  tinytext: 'text',
  uuid: 'uuid',
  varbinary: 'bytes',
  varchar: 'text',
  year: 'bigint',
}

/** TIME may be a duration of many hours, which no time type can hold. */
function toColumnType(type: string, full: string): ColumnType | null {
  if (toColumnKind(type) === 'integer') return type === 'bigint' && full.includes('unsigned') ? 'numeric' : 'bigint'
  return Object.hasOwn(COLUMN_TYPES, type) ? (COLUMN_TYPES[type] ?? null) : null
}

function toRow(fields: readonly MysqlField[], values: readonly unknown[], json: ReadonlySet<string>): SqlRow {
  const record: JsonObject = {}
  let bytes = 0
  for (const [index, field] of fields.entries()) {
    const raw = values[index]
    bytes += typeof raw === 'string' || Buffer.isBuffer(raw) ? raw.length : 8
    Object.defineProperty(record, field.name, {
      value: toJsonValue(raw, field, json.has(field.name)),
      writable: true,
      enumerable: true,
      configurable: true,
    })
  }
  return { record, bytes }
}

function toJsonValue(value: unknown, { columnType }: MysqlField, isJson: boolean): JsonValue {
  if (value === null || value === undefined) return null
  if (Buffer.isBuffer(value))
    return columnType === BIT
      ? decodeInteger(BigInt(`0x${value.toString('hex')}`).toString())
      : value.toString('base64')
  if (typeof value !== 'string') return value as JsonValue
  if (isJson) return parseJson(value)
  if (columnType === LONGLONG) return decodeInteger(value)
  if (columnType === TIMESTAMP) return `${value.replace(' ', 'T')}Z`
  return columnType === DATETIME ? value.replace(' ', 'T') : value
}

/** Keyed by MySQL error number. */
const MYSQL_ERROR_CODES: Record<number, ErrorCode> = {
  1040: 'SOURCE_UNAVAILABLE', // too many connections
  1044: 'SOURCE_FORBIDDEN', // no access to the database
  1045: 'AUTH_REJECTED',
  1049: 'SOURCE_NOT_FOUND', // no such database
  1054: 'SOURCE_NOT_FOUND', // no such column
  1142: 'SOURCE_FORBIDDEN', // a statement on a table
  1143: 'SOURCE_FORBIDDEN', // a column
  1146: 'SOURCE_NOT_FOUND', // no such table
  1205: 'SOURCE_UNAVAILABLE', // lock wait
  1213: 'SOURCE_UNAVAILABLE', // deadlock
  1227: 'SOURCE_FORBIDDEN', // a privilege
  1292: 'CURSOR_REJECTED', // the cursor is not a value of its column
  1698: 'AUTH_REJECTED',
  3024: 'SOURCE_TIMEOUT',
}

function toSyncError(error: unknown, where: string): SyncError {
  const { errno, message, code } = error as { errno?: number; message?: string; code?: string }
  // Numbers below 1000 are system errors: the server did not answer.
  const known =
    errno === undefined || errno < 1_000 || code === 'PROTOCOL_CONNECTION_LOST'
      ? 'SOURCE_UNAVAILABLE'
      : (MYSQL_ERROR_CODES[errno] ?? 'CONNECTOR_FAILED')
  if (known === 'CURSOR_REJECTED')
    return new SyncError(known, `${where}: the stored cursor does not match the type of its column (error ${errno}).`)
  return new SyncError(
    known,
    `${where}: ${message ?? String(error)}${errno === undefined ? '' : ` (error ${errno})`}.`,
    { cause: error },
  )
}
