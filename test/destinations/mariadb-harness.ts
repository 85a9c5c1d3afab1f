import mysql from 'mysql2'
import { createConnection, type Connection } from 'mysql2/promise'
import type { JsonObject } from '../../src/contract/index.ts'
import { mariadb } from '../../src/destinations/mariadb/destination.ts'
import type { TableColumn } from '../../src/stores/kit/tables/column.ts'
import { itemTypeOf } from '../../src/stores/kit/tables/column.ts'
import { RecordDecoder } from '../../src/stores/kit/tables/decode-record.ts'
import type { DestinationHarness, StoredChild, StoredRow } from '../../src/testing/destination-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'

let databases = 0

export interface MariadbHarness extends DestinationHarness {
  readonly database: string
  query(sql: string): Promise<Array<Record<string, unknown>>>
}

/** A database of its own on the server. */
export async function openMariadbHarness(server: string): Promise<MariadbHarness> {
  const database = `dest \`${process.pid} ${databases++}`
  const quoted = quote(database)
  const client = await connect(server)
  await client.query(`drop database if exists ${quoted}`)
  return {
    database: quoted,
    query: async (sql) => (await client.query(sql))[0] as Array<Record<string, unknown>>,
    destination: mariadb({ url: server, database }),
    rows: (name) => readMariadbRows(client, quoted, name),
    children: (name, member) => readChildren(client, database, name, member),
    interrupt: interruptConnections,
    backUp: () => backUp(client, database),
    async close() {
      await client.query(`drop database if exists ${quoted}`)
      await client.query('drop database if exists backup')
      await client.end()
    },
  }
}

export function connect(server: string): Promise<Connection> {
  return createConnection({
    uri: server.replace(/^mariadb:/, 'mysql:'),
    dateStrings: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    timezone: 'Z',
  })
}

export async function readMariadbRows(
  client: Connection,
  schema: string,
  table: string,
  page?: { readonly after: string; readonly limit: number },
): Promise<StoredRow[]> {
  const [states] = (await client.query(
    `select columns, mode from ${schema}._tidemark_destination where table_name = ? and target = 'live' and pending is null`,
    [table],
  )) as unknown as [Array<{ columns: string; mode: string }>]
  const [found] = states
  if (found === undefined) return []
  const columns = JSON.parse(found.columns) as TableColumn[]
  const decoder = new RecordDecoder<unknown>(columns, toJsonText)
  const names = columns.map(({ name }) => name)
  const [rows] = (await client.query(
    page === undefined
      ? `select * from ${schema}.${quote(table)} order by _sequence`
      : `select * from ${schema}.${quote(table)} where _key > ? order by _key limit ?`,
    page === undefined ? [] : [page.after, page.limit],
  )) as unknown as [Array<Record<string, unknown>>]
  return rows.map((row) => {
    const isDelete = found.mode === 'append' && row['_action'] === 'deleted'
    const record = isDelete
      ? null
      : decoder.decode(Number(row['_sequence']), row['_extra'] as string | null, (at) => row[names[at] ?? ''] ?? null)
    return {
      key: row['_key'] as string,
      sequence: Number(row['_sequence']),
      ...(found.mode === 'append' && { action: row['_action'] as string }),
      ...(found.mode === 'history' && { isCurrent: row['_is_current'] === 1 }),
      record: record === null ? null : (parseJson(record) as StoredRow['record']),
    }
  })
}

async function readChildren(
  client: Connection,
  database: string,
  name: string,
  member: string,
): Promise<StoredChild[]> {
  const table = `${name}__${member}`
  const [found] = (await client.query(
    'select 1 from information_schema.tables where table_schema = ? and table_name = ?',
    [database, table],
  )) as unknown as [unknown[]]
  if (found.length === 0) return []
  const [states] = (await client.query(
    `select children from ${quote(database)}._tidemark_destination where table_name = ? and target = 'live'`,
    [name],
  )) as unknown as [Array<{ children: string }>]
  const layouts = new Map(JSON.parse(states[0]?.children ?? '[]') as Array<[string, TableColumn[]]>)
  const columns = layouts.get(member) ?? []
  const decoder = new RecordDecoder<unknown>(columns, toJsonText)
  const [rows] = (await client.query(
    `select * from ${quote(database)}.${quote(table)} order by _parent_key, _index`,
  )) as unknown as [Array<Record<string, unknown>>]
  return rows.map((row) => ({
    parentKey: row['_parent_key'] as string,
    index: Number(row['_index']),
    record: parseJson(
      decoder.decode(
        Number(row['_sequence']),
        row['_extra'] as string | null,
        (at) => row[columns[at]?.name ?? ''] ?? null,
      ),
    ) as JsonObject,
  }))
}

function toJsonText(value: unknown, { type, format = '' }: TableColumn): string {
  const text = String(value)
  const time = (): string => {
    const seconds = `${text.slice(0, 10)}${format.endsWith('_') ? ' ' : 'T'}${text.slice(11, 19)}`
    const decimals = text.slice(20)
    if (format.startsWith('*'))
      return decimals.replace(/0+$/, '') === '' ? seconds : `${seconds}.${decimals.replace(/0+$/, '')}`
    const count = format.charCodeAt(0) - 48
    return count === 0 ? seconds : `${seconds}.${decimals.slice(0, count)}`
  }
  if (itemTypeOf(type) !== null) return text
  switch (type) {
    case 'bigint':
    case 'json':
      return text
    case 'double':
      return JSON.stringify(value)
    case 'numeric':
      return text.replace(/0+$/, '').replace(/\.$/, '')
    case 'decimal':
      return JSON.stringify(format === '0' ? text.split('.')[0] : text.slice(0, text.indexOf('.') + 1 + Number(format)))
    case 'boolean':
      return text === '1' ? 'true' : 'false'
    case 'bytes':
      return JSON.stringify((value as Buffer).toString('base64'))
    case 'timestamp':
      return JSON.stringify(time() + format.slice(1))
    case 'datetime':
      return JSON.stringify(time())
    case 'time':
      return JSON.stringify(text.replace(/\.?0+$/, ''))
    default:
      return JSON.stringify(text)
  }
}

/** The store of the suite is SQLite, so every statement to a server is one of the destination. */
function interruptConnections(fault: { readonly statement: number } | 'commit'): () => boolean {
  // oxlint-disable-next-line typescript/no-explicit-any -- a class that the package does not export
  const prototype = (mysql as any).Connection.prototype as { query: (...parameters: unknown[]) => unknown }
  const { query } = prototype
  let [left, happened] = [fault === 'commit' ? Infinity : fault.statement, false]
  prototype.query = function (this: { stream: { destroy(error?: Error): void } }, ...parameters: unknown[]) {
    const [options, callback] = parameters as [{ sql: string }, (error: unknown, result?: unknown) => void]
    const lose = (): void => this.stream.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
    if (!happened && left-- === 0) {
      happened = true
      lose()
    }
    if (fault !== 'commit' || happened || options.sql !== 'commit') return query.apply(this, parameters)
    happened = true
    return query.call(this, options, () => {
      lose()
      callback(Object.assign(new Error('Connection lost'), { code: 'PROTOCOL_CONNECTION_LOST' }))
    })
  }
  return () => {
    prototype.query = query
    return happened
  }
}

async function backUp(client: Connection, database: string): Promise<() => Promise<void>> {
  const copy = async (from: string, to: string): Promise<void> => {
    await client.query(`drop database if exists ${quote(to)}`)
    await client.query(`create database ${quote(to)} character set utf8mb4`)
    const [tables] = (await client.query(
      'select table_name as name from information_schema.tables where table_schema = ?',
      [from],
    )) as unknown as [Array<{ name: string }>]
    for (const { name } of tables) {
      await client.query(`create table ${quote(to)}.${quote(name)} like ${quote(from)}.${quote(name)}`)
      await client.query(`insert into ${quote(to)}.${quote(name)} select * from ${quote(from)}.${quote(name)}`)
    }
  }
  await copy(database, 'backup')
  return () => copy('backup', database)
}

function quote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``
}
