import pg from 'pg'
import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { SerializedUpsert, type SerializedRecord } from '../../values/serialized-upsert.ts'
import type { RowSerializer } from '../kit/postgres/row-serializer.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'
import type { ReplicatedTable } from './replicated-tables.ts'

export interface TablePage {
  readonly changes: Change[]
  /** The key of its last row; null when there is no row after it. */
  readonly after: string[] | null
}

const PAGE_BYTES = 32_000_000
/** Few rows at first, then as many at once as their size allows: what has been asked for must be read, or the session ends, and with it what it sees. */
const BATCH_ROWS_MIN = 100
const BATCH_BYTES = 4_000_000

/** The rows of a table above a key, in the order of keys. The session must be inside a transaction. */
export async function readTable(session: PostgresSession, table: ReplicatedTable, after: readonly string[] | null, limit: number): Promise<TablePage> {
  // Bound, before anything is spelled out: a place that is no value of its column ends here.
  const writer = await session.createRowSerializer(buildSelect(table, after?.map((_, index) => `$${index + 1}`), 0), bindKey(table, after ?? []), table.key)
  const changes: Change[] = []
  let last = after
  let bytes = 0
  for (let count = Math.min(BATCH_ROWS_MIN, limit); count > 0 && bytes < PAGE_BYTES;) {
    const before = changes.length
    for await (const rows of readRowsAfter(session, table, writer, last, count)) {
      for (const row of rows) {
        const key = extractKey(table, row.record)
        changes.push(row.serialized === undefined ? toUpsert(table, key, row.record) : toSerializedUpsert(table, key, row.serialized))
        last = key
        bytes += row.bytes
      }
    }
    if (changes.length - before < count) return { changes, after: null }
    count = Math.min(limit - changes.length, Math.max(1, Math.floor(BATCH_BYTES / (bytes / changes.length))))
  }
  return { changes, after: [...last!] }
}

interface TableRow {
  readonly record: JsonObject
  readonly serialized?: SerializedRecord
  readonly bytes: number
}

/** Without making records where it can be done without: whoever wants one gets it of the text. */
function readRowsAfter(session: PostgresSession, table: ReplicatedTable, writer: RowSerializer | null, after: readonly string[] | null, count: number): AsyncIterable<readonly TableRow[]> {
  const place = after === null ? [] : bindKey(table, after)
  if (writer === null) return session.streamRecords(buildSelect(table, after?.map((_, index) => `$${index + 1}`), count), place)
  // COPY binds nothing.
  return session.streamCopy(buildSelect(table, after === null ? undefined : place.map((part) => pg.escapeLiteral(part)), count), (line) => writer.serialize(line))
}

function buildSelect({ columns, quoted, key }: ReplicatedTable, after: readonly string[] | undefined, limit: number): string {
  const order = key.map(quoteName).join(', ')
  const above = after === undefined ? '' : ` WHERE (${order}) > (${after.join(', ')})`
  return `SELECT ${columns.map(({ name }) => quoteName(name)).join(', ')} FROM ${quoted}${above} ORDER BY ${order} LIMIT ${limit}`
}

function toSerializedUpsert({ database }: ReplicatedTable, key: readonly string[], written: SerializedRecord): Change {
  return Object.assign(new SerializedUpsert(formatKey(key), written), database !== undefined && { database })
}

export function toUpsert({ database }: ReplicatedTable, key: readonly string[], record: JsonObject): Change {
  return { type: 'upsert', key: formatKey(key), record, ...(database !== undefined && { database }) }
}

/** As a list where there are several, so that no two keys can ever read the same. */
export function formatKey(parts: readonly string[]): string {
  return parts.length === 1 ? parts[0]! : JSON.stringify(parts)
}

export function extractKey({ id, key }: ReplicatedTable, record: JsonObject): string[] {
  return key.map((name) => {
    const value = record[name]
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value)
    throw new SyncError('SOURCE_INVALID', `${id}: a row has ${value === null ? 'null' : 'no plain value'} in "${name}", which is part of its key.`)
  })
}

/** Key parts as the server reads them. */
export function bindKey({ key, columns }: ReplicatedTable, parts: readonly string[]): string[] {
  return parts.map((part, index) => {
    const isBytes = columns.find(({ name }) => name === key[index])?.type === 'bytea'
    return isBytes ? `\\x${Buffer.from(part, 'base64').toString('hex')}` : part
  })
}
