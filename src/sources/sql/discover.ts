import type { SyncContext } from '../../contract/index.ts'
import type { Secret } from '../../redaction/secret.ts'
import type { SqlDatabase, SqlTable } from './database.ts'
import { openDatabase } from './open-database.ts'

/** A readable table, with its key and possible cursors. */
export interface DiscoveredStream {
  readonly id: string
  /** Empty when the table has none: set `key` then. */
  readonly key: string[]
  /** The column whose name and type suggest that every change increases it. Without one, use a full refresh. */
  readonly cursor?: string
  /** All columns that could be a cursor. */
  readonly candidates: string[]
  readonly columns: string[]
}

/** Lists every table and view that the account can read. */
export async function discover(
  { url }: { readonly url: string | Secret },
  context: Partial<Pick<SyncContext, 'secrets' | 'signal'>> = {},
): Promise<DiscoveredStream[]> {
  const { signal = new AbortController().signal, secrets = { get: (name: string) => name } } = context
  await using database = await openDatabase(url, { signal, secrets })
  const streams: DiscoveredStream[] = []
  for (const table of await database.listTables()) streams.push(await describeStream(database, table))
  return streams
}

/** Common names for the time of the last change. */
const UPDATED_AT_NAME =
  /^(?:sys(?:tem)?_?)?(?:last_?)?(?:updated?|modif(?:y|ied)|changed?|modstamp)(?:_?(?:at|on|time|date|ts|timestamp))?$/i

async function describeStream(database: SqlDatabase, table: SqlTable): Promise<DiscoveredStream> {
  const { id, key, columns, unique } = table
  let cursor: string | undefined
  const candidates: string[] = []
  for (const column of columns) {
    const isNamed = UPDATED_AT_NAME.test(column.name)
    // The kind of a text column depends on its values, and reading them is expensive.
    const kind = isNamed ? await database.detectCursorKind(table, column) : column.kind
    const isOrdered =
      kind === 'instant' ||
      (kind === 'integer' && (isNamed || unique.some((set) => set.length === 1 && set[0] === column.name)))
    if (isOrdered) candidates.push(column.name)
    if (isOrdered && isNamed) cursor ??= column.name
  }
  return {
    id,
    key: [...key],
    ...(cursor !== undefined && { cursor }),
    candidates,
    columns: columns.map(({ name }) => name),
  }
}
