import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'
import type { FollowedTable } from './tables.ts'

export interface TablePage {
  readonly changes: Change[]
  /** The key of its last row; null when there is no row after it. */
  readonly after: string[] | null
}

const PAGE_BYTES = 32_000_000

/** The rows of a table above a key, in the order of keys. The session must be inside a transaction. */
export async function readTable(session: PostgresSession, table: FollowedTable, after: readonly string[] | null, limit: number): Promise<TablePage> {
  const names = table.columns.map(({ name }) => quoteName(name)).join(', ')
  const key = table.key.map(quoteName).join(', ')
  const above = after === null ? '' : ` WHERE (${key}) > (${table.key.map((_, index) => `$${index + 1}`).join(', ')})`
  const changes: Change[] = []
  let last: string[] | null = null
  let bytes = 0
  for await (const rows of session.records(`SELECT ${names} FROM ${table.quoted}${above} ORDER BY ${key} LIMIT ${limit}`, boundKey(table, after ?? []))) {
    for (const row of rows) {
      last = keyParts(table, row.record)
      changes.push(upsertOf(table, last, row.record))
      bytes += row.bytes
      if (bytes >= PAGE_BYTES) return { changes, after: last }
    }
  }
  return { changes, after: changes.length < limit ? null : last }
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
