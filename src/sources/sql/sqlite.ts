import { existsSync } from 'node:fs'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { SyncError, type ColumnType, type ErrorCode, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { splitTableName, type TableName } from '../kit/postgres/catalog.ts'
import type { SqlColumn, SqlColumnKind, SqlDatabase, SqlDialect, ReadHorizon, SqlRow, SqlTable } from './database.ts'
import { buildSelect, type RowSelection, type SqlStatement } from './statements.ts'

export async function openSqlite(file: string): Promise<SqlDatabase> {
  if (!existsSync(file))
    throw new SyncError('SOURCE_NOT_FOUND', `The SQLite file ${file} does not exist. Check the URL.`)
  return translateErrors(file, () => {
    const db = new DatabaseSync(file, { readOnly: true })
    db.exec('pragma busy_timeout = 10000')
    return new SqliteDatabase(file, db)
  })
}

export const sqliteDialect: SqlDialect = {
  quote: (name) => `"${name.replaceAll('"', '""')}"`,
  placeholder: () => '?',
  bind: (text, { kind }) => {
    if (kind === 'binary') return Buffer.from(text, 'base64')
    return kind === 'integer' && /^-?\d+$/.test(text) ? BigInt(text) : text
  },
  supportsRowComparison: true,
  textOrder: ({ name }) => `CAST(${sqliteDialect.quote(name)} AS BLOB)`,
  // It has no hash function, and reading the rows of a local file costs little.
  digests: null,
}

class SqliteDatabase implements SqlDatabase {
  readonly dialect = sqliteDialect
  readonly #file: string
  readonly #db: DatabaseSyncInstance

  constructor(file: string, db: DatabaseSyncInstance) {
    this.#file = file
    this.#db = db
  }

  async describeTable(name: TableName): Promise<SqlTable> {
    const parts = splitTableName(name)
    const table = parts.at(-1) ?? ''
    const found = this.#listEntries().find((entry) => entry.name.toLowerCase() === table.toLowerCase())
    if (found === undefined || (parts.length === 2 && parts[0] !== 'main'))
      throw new SyncError('SOURCE_NOT_FOUND', `${this.#file} has no table ${JSON.stringify(name)}.`)
    return this.#loadTable(found)
  }

  async listTables(): Promise<SqlTable[]> {
    return this.#listEntries().map((entry) => this.#loadTable(entry))
  }

  /** A column may hold any type; its maximum decides. */
  async detectCursorKind(table: SqlTable, column: SqlColumn): Promise<SqlColumnKind> {
    const name = sqliteDialect.quote(column.name)
    const [row] = this.#queryAll(`SELECT typeof(max(${name})) AS type FROM ${table.quoted}`)
    const type = row?.['type']
    return type === 'text' ? 'instant' : type === 'integer' ? 'integer' : type === 'null' ? column.kind : 'other'
  }

  async readHorizon(table: SqlTable, column: SqlColumn, lagMs: number): Promise<ReadHorizon> {
    const [greatest] = this.#queryAll(
      `SELECT cast(max(${sqliteDialect.quote(column.name)}) AS text) AS value FROM ${table.quoted}`,
    )
    const example = String(greatest?.['value'] ?? '')
    // Text is compared as text, so the horizon must use the same format.
    const form =
      example.length === 10
        ? '%Y-%m-%d'
        : `%Y-%m-%d${example.includes('T') ? 'T' : ' '}%H:%M:%f${example.endsWith('Z') ? 'Z' : ''}`
    const [row] = this.#queryAll<ReadHorizon>(
      `SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS now, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', $lag) AS settled, strftime($form, 'now', $lag) AS until`,
      { form, lag: `-${lagMs / 1_000} seconds` },
    )
    return required(row, 'the horizon')
  }

  async readMaxValue(table: SqlTable, column: SqlColumn): Promise<string | null> {
    const [row] = this.#queryAll(`SELECT max(${sqliteDialect.quote(column.name)}) AS value FROM ${table.quoted}`)
    const value = row?.['value'] ?? null
    return value === null ? null : String(value)
  }

  async readRowCount(table: SqlTable): Promise<number> {
    const [row] = this.#queryAll(`SELECT count(*) AS count FROM ${table.quoted}`)
    return Number(row?.['count'] ?? 0)
  }

  async readValues({ text, values }: SqlStatement): Promise<ReadonlyArray<string | null>> {
    const [row] = translateErrors(this.#file, () => this.#db.prepare(text).all(...(values as string[])))
    return Object.values(required(row, 'the row of a statement') as object).map((value: unknown) =>
      value === null ? null : String(value),
    )
  }

  async *readRows(selection: RowSelection): AsyncIterable<SqlRow[]> {
    const { text, values } = buildSelect(selection, this.dialect)
    const statement = translateErrors(this.#file, () => {
      const prepared = this.#db.prepare(text)
      prepared.setReadBigInts(true)
      return prepared
    })
    const names = statement.columns().map(({ name }) => name)
    statement.setReturnArrays(true)
    const rows = statement.iterate(...values) as IterableIterator<unknown[]>
    try {
      for (;;) {
        const { done, value } = translateErrors(this.#file, () => rows.next())
        if (done === true) break
        yield [toRow(names, value)]
      }
    } finally {
      rows.return?.()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#db.close()
  }

  #queryAll<Row = Record<string, unknown>>(text: string, named?: Record<string, string>): Row[] {
    return translateErrors(this.#file, () => {
      const statement = this.#db.prepare(text)
      return (named === undefined ? statement.all() : statement.all(named)) as Row[]
    })
  }

  #listEntries(): { name: string; type: string }[] {
    return this.#queryAll<{ name: string; type: string }>(
      "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )
  }

  #loadTable({ name, type }: { name: string; type: string }): SqlTable {
    const columns = this.#queryAll<{ name: string; type: string; required: number; pk: number }>(
      `SELECT name, upper(type) AS type, "notnull" AS required, pk FROM pragma_table_xinfo($name) WHERE hidden <> 1`,
      { name },
    )
    const unique = this.#queryAll('SELECT name FROM pragma_index_list($name) WHERE "unique" = 1 AND partial = 0', {
      name,
    })
      .map(({ name: index }) =>
        this.#queryAll('SELECT name FROM pragma_index_info($index)', { index: String(index) }).map(
          (entry) => entry['name'] as string | null,
        ),
      )
      .filter((names): names is string[] => names.every((entry) => entry !== null))
    const key = columns
      .filter(({ pk }) => pk > 0)
      .toSorted((a, b) => a.pk - b.pk)
      .map((column) => column.name)
    return {
      id: name,
      quoted: sqliteDialect.quote(name),
      isView: type === 'view',
      columns: columns.map((column) => ({
        name: column.name,
        kind: toColumnKind(column.type),
        type: column.type,
        columnType: toColumnType(column.type),
        nullable: column.required === 0 && column.pk === 0,
        isUtc: true,
      })),
      key,
      unique: key.length === 0 ? unique : [key, ...unique],
    }
  }
}

/** Follows SQLite's affinity rules, except that DATE and TIME names are timestamps. */
function toColumnKind(type: string): SqlColumnKind {
  if (/DATE|TIME/.test(type)) return 'instant'
  if (type.includes('INT')) return 'integer'
  return type.includes('BLOB') ? 'binary' : 'other'
}

/** A column may hold any type. The type is declared only where the affinity converts values, or for BLOB. */
function toColumnType(type: string): ColumnType | null {
  if (type.includes('INT')) return 'bigint'
  if (/CHAR|CLOB|TEXT/.test(type)) return null
  if (type.includes('BLOB')) return 'bytes'
  return /REAL|FLOA|DOUB/.test(type) ? 'double' : null
}

function toRow(names: readonly string[], values: readonly unknown[]): SqlRow {
  const record: JsonObject = {}
  let bytes = 0
  for (const [index, name] of names.entries()) {
    const value = toJsonValue(values[index])
    bytes += typeof value === 'string' ? value.length : 8
    Object.defineProperty(record, name, { value, writable: true, enumerable: true, configurable: true })
  }
  return { record, bytes }
}

function toJsonValue(value: unknown): JsonValue {
  if (typeof value === 'bigint')
    return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  // JSON cannot represent an infinite REAL.
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return value as JsonValue
}

const SQLITE_ERROR_CODES: Record<number, ErrorCode> = {
  5: 'SOURCE_UNAVAILABLE', // SQLITE_BUSY
  6: 'SOURCE_UNAVAILABLE', // SQLITE_LOCKED
  10: 'SOURCE_UNAVAILABLE', // SQLITE_IOERR
  14: 'SOURCE_FORBIDDEN', // SQLITE_CANTOPEN
  23: 'SOURCE_FORBIDDEN', // SQLITE_AUTH
  26: 'SOURCE_INVALID', // SQLITE_NOTADB
}

function translateErrors<T>(file: string, body: () => T): T {
  try {
    return body()
  } catch (error) {
    const extended = (error as { errcode?: unknown } | null)?.errcode
    const message = error instanceof Error ? error.message : String(error)
    const code = typeof extended === 'number' ? SQLITE_ERROR_CODES[extended & 0xff] : undefined
    throw new SyncError(
      code ?? (/no such (?:table|column)/.test(message) ? 'SOURCE_NOT_FOUND' : 'CONNECTOR_FAILED'),
      `SQLite file ${file}: ${message}.`,
      { cause: error },
    )
  }
}
