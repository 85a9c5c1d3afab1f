import type { SyncContext } from '../../contract/index.ts'
import type { Secret } from '../../redaction/secret.ts'
import type { SqlDatabase, SqlTable } from './database.ts'
import { openDatabase } from './open-database.ts'

/** A table that can be read, and how. */
export interface DiscoveredStream {
  readonly id: string
  /** Empty when the database knows none: then `key` has to be named. */
  readonly key: string[]
  /** What its name and type say is raised by every change; without one, a full refresh is the way. */
  readonly cursor?: string
  /** Everything that could be a cursor, for somebody who knows how the table is written. */
  readonly candidates: string[]
  /** Everything a row has. */
  readonly columns: string[]
}

/** Every table and view that the account may read. */
export async function discover({ url }: { readonly url: string | Secret }, context: Partial<Pick<SyncContext, 'secrets' | 'signal'>> = {}): Promise<DiscoveredStream[]> {
  const { signal = new AbortController().signal, secrets = { get: (name: string) => name } } = context
  await using database = await openDatabase(url, { signal, secrets })
  const streams: DiscoveredStream[] = []
  for (const table of await database.listTables()) streams.push(await describeStream(database, table))
  return streams
}

/** As people call the moment of the last change. */
const UPDATED_AT_NAME = /^(?:sys(?:tem)?_?)?(?:last_?)?(?:updated?|modif(?:y|ied)|changed?|modstamp)(?:_?(?:at|on|time|date|ts|timestamp))?$/i

async function describeStream(database: SqlDatabase, table: SqlTable): Promise<DiscoveredStream> {
  const { id, key, columns, unique } = table
  let cursor: string | undefined
  const candidates: string[] = []
  for (const column of columns) {
    const isNamed = UPDATED_AT_NAME.test(column.name)
    // Only the values tell what a text is, and looking costs.
    const kind = isNamed ? await database.detectCursorKind(table, column) : column.kind
    const isOrdered = kind === 'instant' || (kind === 'integer' && (isNamed || unique.some((set) => set.length === 1 && set[0] === column.name)))
    if (isOrdered) candidates.push(column.name)
    if (isOrdered && isNamed) cursor ??= column.name
  }
  return { id, key: [...key], ...(cursor !== undefined && { cursor }), candidates, columns: columns.map(({ name }) => name) }
}
