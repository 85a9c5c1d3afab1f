import pg from 'pg'
import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { serializedUpsert, type SerializedRecord } from '../../values/serialized-upsert.ts'
import type { RowSerializer } from '../kit/postgres/row-serializer.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'
import type { ReplicatedTable } from './replicated-tables.ts'

export interface TablePage {
  readonly changes: Change[]
  /** The key of its last row; null when no row follows. */
  readonly after: string[] | null
}

const PAGE_BYTES = 32_000_000
/**
 * Starts with a few rows, then fetches as many as their size allows: a started batch must be read to its end, or the
 * session and its snapshot are lost.
 */
const BATCH_ROWS_MIN = 100
const BATCH_BYTES = 4_000_000

/** Reads rows after a key, in key order. The session must be inside a transaction. */
export async function readTable(
  session: PostgresSession,
  table: ReplicatedTable,
  after: readonly string[] | null,
  limit: number,
): Promise<TablePage> {
  // Values are bound here first: a cursor that is not a value of its column fails before values are inlined.
  const serializer = await session.createRowSerializer(
    buildSelect(
      table,
      after?.map((_, index) => `$${index + 1}`),
      0,
    ),
    bindKey(table, after ?? []),
    table.key,
  )
  const inDatabase = table.database === undefined ? {} : { database: table.database }
  const changes: Change[] = []
  let last = after
  let bytes = 0
  for (let count = Math.min(BATCH_ROWS_MIN, limit); count > 0 && bytes < PAGE_BYTES;) {
    const startLength = changes.length
    for await (const rows of readRowsAfter(session, table, serializer, last, count)) {
      for (const row of rows) {
        const key = extractKey(table, row.record)
        changes.push(
          row.serialized === undefined
            ? toUpsert(table, key, row.record)
            : serializedUpsert(formatKey(key), row.serialized, inDatabase),
        )
        last = key
        bytes += row.bytes
      }
    }
    if (changes.length - startLength < count) return { changes, after: null }
    count = Math.min(limit - changes.length, Math.max(1, Math.floor(BATCH_BYTES / (bytes / changes.length))))
  }
  return { changes, after: [...(last ?? [])] }
}

interface TableRow {
  readonly record: JsonObject
  readonly serialized?: SerializedRecord
  readonly bytes: number
}

/** Serializes rows without building records where possible; a record is parsed from the text on demand. */
function readRowsAfter(
  session: PostgresSession,
  table: ReplicatedTable,
  serializer: RowSerializer | null,
  after: readonly string[] | null,
  count: number,
): AsyncIterable<readonly TableRow[]> {
  const keyValues = after === null ? [] : bindKey(table, after)
  if (serializer === null)
    return session.streamRecords(
      buildSelect(
        table,
        after?.map((_, index) => `$${index + 1}`),
        count,
      ),
      keyValues,
    )
  // COPY has no bind parameters.
  return session.streamCopy(
    buildSelect(table, after === null ? undefined : keyValues.map((part) => pg.escapeLiteral(part)), count),
    (line) => serializer.serialize(line),
  )
}

function buildSelect(
  { columns, quoted, key }: ReplicatedTable,
  after: readonly string[] | undefined,
  limit: number,
): string {
  const order = key.map(quoteName).join(', ')
  const above = after === undefined ? '' : ` WHERE (${order}) > (${after.join(', ')})`
  return `SELECT ${columns.map(({ name }) => quoteName(name)).join(', ')} FROM ${quoted}${above} ORDER BY ${order} LIMIT ${limit}`
}

export function toUpsert({ database }: ReplicatedTable, key: readonly string[], record: JsonObject): Change {
  return { type: 'upsert', key: formatKey(key), record, ...(database !== undefined && { database }) }
}

/** Several parts are serialized as a list, so composite keys are unambiguous. */
export function formatKey(parts: readonly string[]): string {
  const [first, ...rest] = parts
  return first !== undefined && rest.length === 0 ? first : JSON.stringify(parts)
}

export function extractKey({ id, key }: ReplicatedTable, record: JsonObject): string[] {
  return key.map((name) => {
    const value = record[name]
    if (
      typeof value === 'string' ||
      typeof value === 'number' ||
      typeof value === 'bigint' ||
      typeof value === 'boolean'
    )
      return String(value)
    throw new SyncError(
      'SOURCE_INVALID',
      `${id}: a row has ${value === null ? 'null' : 'no scalar value'} in "${name}", which is part of its key.`,
    )
  })
}

/** Converts key parts to PostgreSQL's input format. */
export function bindKey({ key, columns }: ReplicatedTable, parts: readonly string[]): string[] {
  return parts.map((part, index) => {
    const isBytes = columns.find(({ name }) => name === key[index])?.type === 'bytea'
    return isBytes ? `\\x${Buffer.from(part, 'base64').toString('hex')}` : part
  })
}
