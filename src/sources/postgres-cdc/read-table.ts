import pg from 'pg'
import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { WrittenUpsert, type Written } from '../../values/written-upsert.ts'
import type { RowWriter } from '../kit/postgres/row-writer.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'
import type { FollowedTable } from './tables.ts'

export interface TablePage {
  readonly changes: Change[]
  /** The key of its last row; null when there is no row after it. */
  readonly after: string[] | null
}

const PAGE_BYTES = 32_000_000
/** Few rows at first, then as many at once as their size allows: what has been asked for must be read, or the session ends, and with it what it sees. */
const ROWS_MIN = 100
const ROWS_BYTES = 4_000_000

/** The rows of a table above a key, in the order of keys. The session must be inside a transaction. */
export async function readTable(session: PostgresSession, table: FollowedTable, after: readonly string[] | null, limit: number): Promise<TablePage> {
  // Bound, before anything is spelled out: a place that is no value of its column ends here.
  const writer = await session.rowWriter(select(table, after?.map((_, index) => `$${index + 1}`), 0), boundKey(table, after ?? []), table.key)
  const changes: Change[] = []
  let last = after
  let bytes = 0
  for (let count = Math.min(ROWS_MIN, limit); count > 0 && bytes < PAGE_BYTES;) {
    const before = changes.length
    for await (const rows of rowsAbove(session, table, writer, last, count)) {
      for (const row of rows) {
        const key = keyParts(table, row.record)
        changes.push(row.written === undefined ? upsertOf(table, key, row.record) : writtenUpsertOf(table, key, row.written))
        last = key
        bytes += row.bytes
      }
    }
    if (changes.length - before < count) return { changes, after: null }
    count = Math.min(limit - changes.length, Math.max(1, Math.floor(ROWS_BYTES / (bytes / changes.length))))
  }
  return { changes, after: [...last!] }
}

interface TableRow {
  readonly record: JsonObject
  readonly written?: Written
  readonly bytes: number
}

/** Without making records where it can be done without: whoever wants one gets it of the text. */
function rowsAbove(session: PostgresSession, table: FollowedTable, writer: RowWriter | null, after: readonly string[] | null, count: number): AsyncIterable<readonly TableRow[]> {
  const place = after === null ? [] : boundKey(table, after)
  if (writer === null) return session.records(select(table, after?.map((_, index) => `$${index + 1}`), count), place)
  // COPY binds nothing.
  return session.copied(select(table, after === null ? undefined : place.map((part) => pg.escapeLiteral(part)), count), (line) => writer.write(line))
}

function select({ columns, quoted, key }: FollowedTable, after: readonly string[] | undefined, limit: number): string {
  const order = key.map(quoteName).join(', ')
  const above = after === undefined ? '' : ` WHERE (${order}) > (${after.join(', ')})`
  return `SELECT ${columns.map(({ name }) => quoteName(name)).join(', ')} FROM ${quoted}${above} ORDER BY ${order} LIMIT ${limit}`
}

function writtenUpsertOf({ database }: FollowedTable, key: readonly string[], written: Written): Change {
  return Object.assign(new WrittenUpsert(keyText(key), written), database !== undefined && { database })
}

export function upsertOf({ database }: FollowedTable, key: readonly string[], record: JsonObject): Change {
  return { type: 'upsert', key: keyText(key), record, ...(database !== undefined && { database }) }
}

/** As a list where there are several, so that no two keys can ever read the same. */
export function keyText(parts: readonly string[]): string {
  return parts.length === 1 ? parts[0]! : JSON.stringify(parts)
}

export function keyParts({ id, key }: FollowedTable, record: JsonObject): string[] {
  return key.map((name) => {
    const value = record[name]
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value)
    throw new SyncError('SOURCE_INVALID', `${id}: a row has ${value === null ? 'null' : 'no plain value'} in "${name}", which is part of its key.`)
  })
}

/** Key parts as the server reads them. */
export function boundKey({ key, columns }: FollowedTable, parts: readonly string[]): string[] {
  return parts.map((part, index) => {
    const isBytes = columns.find(({ name }) => name === key[index])?.type === 'bytea'
    return isBytes ? `\\x${Buffer.from(part, 'base64').toString('hex')}` : part
  })
}
