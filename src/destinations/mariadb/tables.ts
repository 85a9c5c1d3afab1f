import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { SyncError } from '../../contract/index.ts'
import type { ColumnType, TableColumn } from '../../stores/kit/tables/column.ts'
import type { NamedColumn, SqlTables, SystemColumn, TableRename, TableSpec, TableValues } from '../kit/sql-tables.ts'
import type { MariadbClient, WriteResult } from './client.ts'
import { createEncoder } from './codec.ts'
import { DECIMAL_FORMATS } from './decimal-formats.ts'
import { quoteText, RowWriter } from './row-writer.ts'
import { KEY_CHARACTERS_MAX, sqlTypeOf, textWriterOf, toStoredKey } from './values.ts'

/** Facts of a server that decide how statements are written. */
export interface ServerFacts {
  readonly isMariadb: boolean
  readonly allowsLoadData: boolean
  readonly foldsTableNames: boolean
  readonly packetBytesMax: number
  /** The size of a row is checked when it is written, and not from the types of its columns. */
  readonly allowsWideTables: boolean
}

const KEYS_PER_STATEMENT = 1_000
const CHUNK_BYTES = 1 << 20
const BATCH_TABLE = '_tidemark_batch'
const ENDED_TABLE = '_tidemark_ended'
const KEY_COLUMNS = ['_key', '_parent_key']

/** The tables of a database of MariaDB or MySQL. DDL commits by itself there. */
export class MariadbTables implements SqlTables {
  readonly ddl = 'immediate'
  readonly scope: string
  readonly columnLimits
  readonly stateTypes
  readonly #client: MariadbClient
  readonly #database: string
  readonly #server: ServerFacts
  readonly #collation: string

  constructor(client: MariadbClient, database: string, server: ServerFacts) {
    this.#client = client
    this.#database = database
    this.#server = server
    this.scope = `database ${database}`
    // Compared by bytes, and without ignoring spaces at the end.
    this.#collation = server.isMariadb ? 'utf8mb4_nopad_bin' : 'utf8mb4_0900_bin'
    this.stateTypes = { key: this.#keyType(200), text: 'longtext' }
    this.columnLimits = {
      nameBytesMax: 64,
      columnsMax: server.allowsWideTables ? 1_000 : 190,
      reserved: [],
      // Names have only characters of up to three bytes, and no space at the end.
      sanitizeName: (member: string) => member.replaceAll(/[\u{10000}-\u{10FFFF}]|\s+$/gu, '_'),
      decimals: DECIMAL_FORMATS,
    }
  }

  transaction<T>(body: () => Promise<T>): Promise<T> {
    return this.#client.transaction(body)
  }

  async lock(name: string): Promise<void> {
    const [row] = await this.#client.query<{ isHeld: number | null }>('select get_lock(?, 30) as isHeld', [
      this.#lockOf(name),
    ])
    if (row?.isHeld !== 1)
      throw new SyncError('DESTINATION_UNAVAILABLE', `Another process writes to the table ${name}.`)
  }

  async unlock(name: string): Promise<void> {
    await this.#client.query('select release_lock(?)', [this.#lockOf(name)]).catch(() => {})
  }

  query<Row extends object>(sql: string, values: readonly (string | number | null)[]): Promise<Row[]> {
    return this.#client.query<Row>(sql, values)
  }

  quote(table: string): string {
    return `${quoteName(this.#database)}.${quoteName(table)}`
  }

  async createSchema(): Promise<void> {
    const found = await this.#client.query('select 1 from information_schema.schemata where schema_name = ?', [
      this.#database,
    ])
    if (found.length === 0)
      await this.#client.run(`create database if not exists ${quoteName(this.#database)} character set utf8mb4`)
  }

  async exists(table: string): Promise<boolean> {
    const rows = await this.#client.query<{ name: string }>(
      'select table_name as name from information_schema.tables where table_schema = ? and table_name = ?',
      [this.#database, table],
    )
    const fold = (name: string): string => (this.#server.foldsTableNames ? name.toLowerCase() : name)
    return rows.some(({ name }) => fold(name) === fold(table))
  }

  async columnNames(table: string): Promise<string[]> {
    const rows = await this.#client.query<{ name: string }>(
      'select column_name as name from information_schema.columns where table_schema = ? and table_name = ?',
      [this.#database, table],
    )
    return rows.map(({ name }) => name)
  }

  /** Rows of a load arrive in the order of the primary key, which is the order of InnoDB's pages. */
  async create({ name, system, key }: TableSpec): Promise<void> {
    const columns = system.map((column) => `${column.name} ${this.#systemTypeOf(column)}`)
    await this.#client.run(
      `create table ${this.quote(name)} (${columns.join(', ')}, primary key (${key.join(', ')}))
       engine = InnoDB row_format = dynamic character set utf8mb4 collate ${this.#collation}`,
    )
  }

  async addColumns(table: string, columns: readonly NamedColumn[]): Promise<void> {
    const clauses = columns.map(({ name, type }) => `add column ${quoteName(name)} ${sqlTypeOf(type)}`)
    await this.#client.run(`alter table ${this.quote(table)} ${clauses.join(', ')}`)
  }

  async drop(tables: readonly string[]): Promise<void> {
    for (const table of tables) await this.#client.run(`drop table if exists ${this.quote(table)}`)
  }

  /** One RENAME renames all of its tables, or none. A table without its loaded one was renamed before. */
  async swap(renames: readonly TableRename[], obsolete: readonly string[]): Promise<void> {
    const clauses: string[] = []
    const replaced: string[] = []
    for (const { from, to } of renames) {
      const old = `${to}__old`
      replaced.push(old)
      if (!(await this.exists(from))) continue
      await this.drop([old])
      if (await this.exists(to)) clauses.push(`${this.quote(to)} to ${this.quote(old)}`)
      clauses.push(`${this.quote(from)} to ${this.quote(to)}`)
    }
    if (clauses.length > 0) await this.#client.run(`rename table ${clauses.join(', ')}`)
    await this.drop([...replaced, ...obsolete])
  }

  /** `create` made the key. */
  async finishLoad(): Promise<void> {}

  encoder(columns: readonly TableColumn[], members: readonly string[]) {
    return createEncoder(columns, members)
  }

  async append(table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void> {
    await this.#insert(this.quote(table.name), table, columns, rows)
  }

  /** Not `on duplicate key update`: with a unique index of the user's it would overwrite a row with another key. */
  async merge(table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void> {
    const [target, batch] = [this.quote(table.name), this.quote(BATCH_TABLE)]
    const names = columnsOf(table, columns).map(({ name }) => quoteName(name))
    const sameKey = table.key.map((name) => `t.${name} = b.${name}`).join(' and ')
    const updated = names.filter((name) => !table.key.includes(name.slice(1, -1)))
    await this.#client.run(`drop temporary table if exists ${batch}`)
    await this.#client.run(`create temporary table ${batch} like ${target}`)
    await this.#insert(batch, table, columns, rows)
    await this.#client.run(
      `update ${target} t join ${batch} b on ${sameKey} set ${updated.map((name) => `t.${name} = b.${name}`).join(', ')}`,
    )
    await this.#client.run(
      `insert into ${target} (${names.join(', ')}) select ${names.map((name) => `b.${name}`).join(', ')}
       from ${batch} b left join ${target} t on ${sameKey} where t.${table.key[0] ?? ''} is null`,
    )
    await this.#client.run(`drop temporary table ${batch}`)
  }

  async deleteRows(table: string, column: string, keys: readonly string[]): Promise<void> {
    for (let from = 0; from < keys.length; from += KEYS_PER_STATEMENT) {
      const list = keys.slice(from, from + KEYS_PER_STATEMENT).map((key) => quoteText(toStoredKey(key)))
      await this.#client.run(`delete from ${this.quote(table)} where ${column} in (${list.join(', ')})`)
    }
  }

  async endVersions(table: string, ended: ReadonlyArray<readonly [key: string, at: number]>): Promise<void> {
    const list = this.quote(ENDED_TABLE)
    const writeTime = textWriterOf('timestamp')
    await this.#client.run(`drop temporary table if exists ${list}`)
    await this.#client.run(
      `create temporary table ${list} (_key ${this.#keyType(KEY_CHARACTERS_MAX)} primary key, at datetime(6) not null)`,
    )
    for (let from = 0; from < ended.length; from += KEYS_PER_STATEMENT) {
      const rows = ended
        .slice(from, from + KEYS_PER_STATEMENT)
        .map(([key, at]) => `(${quoteText(toStoredKey(key))}, '${writeTime(at)}')`)
      await this.#client.run(`insert into ${list} values ${rows.join(', ')}`)
    }
    await this.#client.run(
      `update ${this.quote(table)} t join ${list} e on t._key = e._key and t._is_current
       set t._is_current = false, t._valid_to = e.at`,
    )
    await this.#client.run(`drop temporary table ${list}`)
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #insert(target: string, table: TableSpec, named: readonly NamedColumn[], rows: TableValues): Promise<void> {
    const columns = columnsOf(table, named)
    const insert = this.#server.allowsLoadData ? this.#loadData : this.#insertValues
    await insert.call(this, target, columns, rows)
  }

  async #loadData(target: string, columns: readonly WrittenColumn[], rows: TableValues): Promise<void> {
    const fields = columns.map(({ name, type }, at) => (type === 'bytes' ? `@v${at}` : quoteName(name)))
    const decoded = columns.flatMap(({ name, type }, at) =>
      type === 'bytes' ? [`${quoteName(name)} = from_base64(@v${at})`] : [],
    )
    const result = await this.#client.load(
      `load data local infile 'tidemark' into table ${target} character set utf8mb4 (${fields.join(', ')})${
        decoded.length > 0 ? ` set ${decoded.join(', ')}` : ''
      }`,
      encodeRows(columns, rows, Math.min(CHUNK_BYTES, this.#server.packetBytesMax >> 1)),
    )
    await this.#checkLoad(target, rows.length, result)
  }

  /** LOAD DATA LOCAL turns errors into warnings: a row with a known key is skipped, and a wrong value is changed. */
  async #checkLoad(target: string, rows: number, { affectedRows, warningStatus }: WriteResult): Promise<void> {
    if (affectedRows === rows && warningStatus === 0) return
    const [warning] = await this.#client.query<{ Message: string }>('show warnings limit 1')
    throw new SyncError(
      'DESTINATION_FAILED',
      `MariaDB loaded ${affectedRows} of ${rows} rows into ${target}: ${warning?.Message ?? 'no warning'}.`,
    )
  }

  async #insertValues(target: string, columns: readonly WrittenColumn[], rows: TableValues): Promise<void> {
    const head = `insert into ${target} (${columns.map(({ name }) => quoteName(name)).join(', ')}) values `
    const bytesMax = Math.min(CHUNK_BYTES, this.#server.packetBytesMax >> 1)
    let values: string[] = []
    let bytes = 0
    const send = async (): Promise<void> => {
      if (values.length > 0) await this.#client.run(head + values.join(', '))
      values = []
      bytes = 0
    }
    for (const row of rows) {
      const literals = columns.map(({ type, write }, at) => {
        const value = row[at] ?? null
        if (value === null) return 'null'
        return type === 'bytes' ? `from_base64(${quoteText(String(value))})` : quoteText(write(value))
      })
      const text = `(${literals.join(', ')})`
      if (bytes + text.length * 3 > bytesMax) await send()
      values.push(text)
      bytes += text.length * 3
    }
    await send()
  }

  #systemTypeOf({ name, type }: SystemColumn): string {
    if (KEY_COLUMNS.includes(name)) return `${this.#keyType(KEY_CHARACTERS_MAX)} not null`
    if (name === '_action') return 'varchar(16) not null'
    return `${sqlTypeOf(type)}${type === 'bigint' ? ' not null' : ''}`
  }

  #keyType(characters: number): string {
    return `varchar(${characters}) character set utf8mb4 collate ${this.#collation}`
  }

  /** A name of a lock has at most 64 characters, and is one of the whole server. */
  #lockOf(name: string): string {
    return `tidemark ${createHash('sha256').update(this.quote(name)).digest('hex').slice(0, 40)}`
  }
}

interface WrittenColumn {
  readonly name: string
  readonly type: ColumnType
  readonly write: ReturnType<typeof textWriterOf>
}

function columnsOf({ system }: TableSpec, named: readonly NamedColumn[]): WrittenColumn[] {
  return [...system, ...named].map(({ name, type }) => ({
    name,
    type,
    write: KEY_COLUMNS.includes(name) ? (value) => toStoredKey(String(value)) : textWriterOf(type),
  }))
}

/** Rows are encoded while the server takes those before them. */
async function* encodeRows(
  columns: readonly WrittenColumn[],
  rows: TableValues,
  bytesMax: number,
): AsyncGenerator<Buffer> {
  const last = columns.length - 1
  let writer = new RowWriter()
  for (const row of rows) {
    for (let at = 0; at <= last; at++) {
      const value = row[at] ?? null
      writer.field(value === null ? null : (columns[at]?.write(value) ?? ''), at === last)
    }
    if (writer.length < bytesMax) continue
    yield* writer.toChunks(bytesMax)
    writer = new RowWriter()
    // The event loop sends the rows so far.
    await setImmediate()
  }
  yield* writer.toChunks(bytesMax)
}

function quoteName(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}
