import type { Connection, ConnectionOptions } from 'mysql2'
import { SyncError, type ColumnType, type ErrorCode, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { partsOf, type TableName } from '../kit/postgres/catalog.ts'
import { wholeNumber } from '../kit/postgres/values.ts'
import type { Column, ColumnKind, Database, Dialect, Horizon, Row, Table } from './database.ts'
import { select, type Selection, type Statement } from './statements.ts'

export async function openMysql(url: string, signal: AbortSignal): Promise<Database> {
  const { createConnection } = await load()
  const { host, pathname, protocol } = new URL(url)
  const where = `${protocol === 'mariadb:' ? 'MariaDB' : 'MySQL'} at ${host}${pathname}`
  signal.throwIfAborted()
  const options: ConnectionOptions = {
    // Every value as it is: no Date, no double in place of a large integer, no parsed JSON.
    dateStrings: true, supportBigNumbers: true, bigNumberStrings: true, jsonStrings: true, rowsAsArray: true, timezone: 'Z', connectTimeout: 10_000,
  }
  const connection = createConnection({ ...options, uri: url.replace(/^mariadb:/, 'mysql:') })
  const session = new MysqlSession(connection, where, signal)
  try {
    await session.query(SETTINGS)
    return new MysqlDatabase(session)
  } catch (error) {
    session.close()
    throw error
  }
}

/** Only who reads from MySQL needs it. */
async function load(): Promise<typeof import('mysql2')> {
  try {
    return await import('mysql2')
  } catch (error) {
    throw new SyncError('PACKAGE_UNFIT', 'To read from MySQL or MariaDB, the package mysql2 is needed: npm install mysql2', { cause: error })
  }
}

export const mysqlDialect: Dialect = {
  quote: (name) => `\`${name.replaceAll('`', '``')}\``,
  // A text beside a number would be compared as floating point.
  placeholder: (_, { kind, type }) => {
    if (kind === 'integer') return `CAST(? AS ${type.includes('unsigned') ? 'UNSIGNED' : 'SIGNED'})`
    if (kind === 'instant') return type === 'date' ? 'CAST(? AS DATE)' : 'CAST(? AS DATETIME(6))'
    return type.startsWith('decimal') ? 'CAST(? AS DECIMAL(65, 30))' : '?'
  },
  bind: (text, { kind }) => {
    if (kind === 'binary') return Buffer.from(text, 'base64')
    return kind === 'instant' ? text.replace('T', ' ').replace(/Z$/, '') : text
  },
  comparesRows: false,
}

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
    // Whatever breaks also fails the statement that waits for it; without a listener it would end the process.
    connection.on('error', () => {})
    signal.addEventListener('abort', this.#end, { once: true })
  }

  query(text: string, values: readonly unknown[] = []): Promise<unknown[][]> {
    return new Promise((resolve, reject) => {
      const done = (error: unknown, rows: unknown): void => (error === null ? resolve(rows as unknown[][]) : reject(this.#failureOf(error)))
      if (values.length === 0) this.#connection.query(text, done)
      else this.#connection.execute(text, values as string[], done)
    })
  }

  async *stream({ text, values }: Statement): AsyncIterable<{ fields: readonly Field[]; row: unknown[] }> {
    const command = this.#connection.execute(text, values as string[])
    let fields: Field[] = []
    command.on('fields', (given: Field[]) => (fields = given))
    try {
      for await (const row of command.stream({ highWaterMark: ROWS_AHEAD })) yield { fields, row: row as unknown[] }
    } catch (error) {
      throw this.#failureOf(error)
    }
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#end)
    this.#connection.destroy()
  }

  #failureOf(error: unknown): Error {
    return this.#signal.aborted ? (this.#signal.reason as Error) : mysqlFailure(error, this.#where)
  }
}

class MysqlDatabase implements Database {
  readonly dialect = mysqlDialect
  readonly #session: MysqlSession
  #json: ReadonlySet<string> = new Set()

  constructor(session: MysqlSession) {
    this.#session = session
  }

  async describe(name: TableName): Promise<Table> {
    const parts = partsOf(name)
    const [found] = await this.#session.query(
      'SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = coalesce(?, database()) AND table_name = ?', [parts.length === 2 ? parts[0] : null, parts.at(-1)],
    )
    if (found === undefined) throw new SyncError('SOURCE_NOT_FOUND', `There is no table ${JSON.stringify(name)}, or the account may not see it.`)
    return this.#tableOf(found as string[])
  }

  async tables(): Promise<Table[]> {
    const found = await this.#session.query('SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema = database() ORDER BY table_name')
    const tables: Table[] = []
    for (const entry of found) tables.push(await this.#tableOf(entry as string[]))
    return tables
  }

  async cursorKind(_: Table, column: Column): Promise<ColumnKind> {
    return column.kind
  }

  async horizon(_: Table, { type }: Column, lagMs: number): Promise<Horizon> {
    const [row] = await this.#session.query(
      `SELECT date_format(now_, ?), date_format(settled, ?),
        CASE ? WHEN 'timestamp' THEN date_format(settled, '%Y-%m-%dT%H:%i:%s.%fZ') WHEN 'date' THEN date_format(convert_tz(settled, '+00:00', @@global.time_zone), '%Y-%m-%d')
          ELSE date_format(convert_tz(settled, '+00:00', @@global.time_zone), '%Y-%m-%dT%H:%i:%s.%f') END
      FROM (SELECT utc_timestamp(6) AS now_, utc_timestamp(6) - INTERVAL ? SECOND AS settled) h`, [UTC, UTC, type.replace(/\W.*/, ''), String(Math.max(lagMs / 1_000, await this.#oldestAgeS()))],
    )
    const [now, settled, until] = row as string[]
    return { now: now!, settled: settled!, until: until! }
  }

  /** Of the oldest transaction that is still open; 0 where the account may not know. */
  async #oldestAgeS(): Promise<number> {
    try {
      const [row] = await this.#session.query('SELECT max(timestampdiff(SECOND, trx_started, now())) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> connection_id()')
      // Whole seconds on both sides.
      return row![0] === null ? 0 : Number(row![0]) + 2
    } catch (error) {
      if (error instanceof SyncError && error.code === 'SOURCE_FORBIDDEN') return 0
      throw error
    }
  }

  async greatest(table: Table, column: Column): Promise<string | null> {
    const [row] = await this.#session.query(`SELECT max(${mysqlDialect.quote(column.name)}) FROM ${table.quoted}`)
    return row![0] === null ? null : String(row![0])
  }

  async *rows(selection: Selection): AsyncIterable<Row[]> {
    for await (const { fields, row } of this.#session.stream(select(selection, this.dialect))) yield [rowOf(fields, row, this.#json)]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#session.close()
  }

  async #tableOf([schema, name, type]: readonly string[]): Promise<Table> {
    const columns = await this.#session.query('SELECT column_name, data_type, column_type, is_nullable FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position', [schema, name]) as string[][]
    const indexes = await this.#session.query(`SELECT index_name, column_name FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? AND non_unique = 0 ORDER BY index_name, seq_in_index`, [schema, name]) as (string | null)[][]
    const unique = new Map<string, string[]>()
    for (const [index, column] of indexes) unique.set(index!, [...(unique.get(index!) ?? []), column!])
    const key = unique.get('PRIMARY') ?? []
    // MariaDB keeps JSON as text with a check; MySQL has a type for it.
    const checks = await this.#session.query("SELECT check_clause FROM information_schema.check_constraints WHERE constraint_schema = ? AND check_clause LIKE 'json_valid(%'", [schema])
    const valid = new Set(checks.map(([clause]) => /^json_valid\(`(.+)`\)$/.exec(String(clause))?.[1]))
    this.#json = new Set(columns.filter(([column, kind]) => kind === 'json' || (kind === 'longtext' && valid.has(column))).map(([column]) => column!))
    const [zone] = await this.#session.query('SELECT timestampdiff(SECOND, utc_timestamp(), convert_tz(utc_timestamp(), \'+00:00\', @@global.time_zone))')
    return {
      id: `${schema}.${name}`,
      quoted: `${mysqlDialect.quote(schema!)}.${mysqlDialect.quote(name!)}`,
      isView: type === 'VIEW',
      columns: columns.map(([column, kind, full, nullable]) => ({
        name: column!, kind: kindOf(kind!), type: full!, columnType: this.#json.has(column!) ? 'json' : columnTypeOf(kind!, full!), nullable: nullable === 'YES',
        isUtc: kind === 'timestamp' || Number(zone![0]) === 0,
      })),
      key,
      unique: [...unique.values()],
    }
  }
}

interface Field {
  readonly name: string
  readonly columnType?: number
  readonly characterSet?: number
  readonly flags?: number | string[]
}

const SETTINGS = "SET SESSION time_zone = '+00:00'"
const UTC = '%Y-%m-%dT%H:%i:%s.%fZ'
const ROWS_AHEAD = 200

/** Of mysql2's `Types`. */
const LONGLONG = 8
const TIMESTAMP = 7
const DATETIME = 12
const BIT = 16

function kindOf(type: string): ColumnKind {
  if (type === 'timestamp' || type === 'datetime' || type === 'date') return 'instant'
  if (/^(?:tiny|small|medium|big)?int$/.test(type)) return 'integer'
  return /binary|blob/.test(type) ? 'binary' : 'other'
}

const COLUMN_TYPES: Readonly<Record<string, ColumnType>> = {
  binary: 'bytes', bit: 'numeric', blob: 'bytes', char: 'text', date: 'date', datetime: 'datetime', decimal: 'decimal', double: 'double', enum: 'text', float: 'double',
  inet4: 'text', inet6: 'text', longblob: 'bytes', longtext: 'text', mediumblob: 'bytes', mediumtext: 'text', set: 'text', text: 'text', time: 'text',
  timestamp: 'timestamp', tinyblob: 'bytes', tinytext: 'text', uuid: 'uuid', varbinary: 'bytes', varchar: 'text', year: 'bigint',
}

/** A time may be a duration of many hours, which no column for times holds. */
function columnTypeOf(type: string, full: string): ColumnType | null {
  if (kindOf(type) === 'integer') return type === 'bigint' && full.includes('unsigned') ? 'numeric' : 'bigint'
  return Object.hasOwn(COLUMN_TYPES, type) ? COLUMN_TYPES[type]! : null
}

function rowOf(fields: readonly Field[], values: readonly unknown[], json: ReadonlySet<string>): Row {
  const record: JsonObject = {}
  let bytes = 0
  for (let index = 0; index < fields.length; index++) {
    const field = fields[index]!
    const given = values[index]
    bytes += typeof given === 'string' || Buffer.isBuffer(given) ? given.length : 8
    Object.defineProperty(record, field.name, { value: valueOf(given, field, json.has(field.name)), writable: true, enumerable: true, configurable: true })
  }
  return { record, bytes }
}

function valueOf(value: unknown, { columnType }: Field, isJson: boolean): JsonValue {
  if (value === null || value === undefined) return null
  if (Buffer.isBuffer(value)) return columnType === BIT ? wholeNumber(BigInt(`0x${value.toString('hex')}`).toString()) : value.toString('base64')
  if (typeof value !== 'string') return value as JsonValue
  if (isJson) return parseJson(value)
  if (columnType === LONGLONG) return wholeNumber(value)
  if (columnType === TIMESTAMP) return `${value.replace(' ', 'T')}Z`
  return columnType === DATETIME ? value.replace(' ', 'T') : value
}

/** By the number of the error. */
const CODES: Record<number, ErrorCode> = {
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
  1292: 'CURSOR_REJECTED', // the position is no value of its column
  1698: 'AUTH_REJECTED',
  3024: 'SOURCE_TIMEOUT',
}

function mysqlFailure(error: unknown, where: string): SyncError {
  const { errno, message, code } = error as { errno?: number; message?: string; code?: string }
  // Below a thousand it is the machine's own number: nobody answered.
  const known = errno === undefined || errno < 1_000 || code === 'PROTOCOL_CONNECTION_LOST' ? 'SOURCE_UNAVAILABLE' : (CODES[errno] ?? 'CONNECTOR_FAILED')
  if (known === 'CURSOR_REJECTED') return new SyncError(known, `${where}: the stored position is not of the type its column has (error ${errno}).`)
  return new SyncError(known, `${where}: ${message ?? String(error)}${errno === undefined ? '' : ` (error ${errno})`}.`, { cause: error })
}
