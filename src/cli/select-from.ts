import type { StoreLocation } from '../config/store-url.ts'
import { SyncError } from '../contract/index.ts'

/** What a query answered; a cell is a number, a bigint, a text, a boolean, null or parsed JSON. */
export interface Selection {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
  /** There are more than were asked for. */
  readonly truncated: boolean
}

export interface SelectOptions {
  /** 0 for all. */
  readonly limit: number
  readonly tenant: string
  /** How long it may take. On SQLite only for a statement that asks `tidemark_in_time()` of every row it looks at. */
  readonly deadlineMs?: number
  /** In ms: the tenant's tables appear as they were then. */
  readonly asOf?: number | undefined
}

/** What to do about it is the same for both databases. */
export function tookTooLong(deadlineMs: number): SyncError {
  return new SyncError('QUERY_TOO_LONG', `The query took longer than ${deadlineMs / 1_000} s.`)
}

/** One statement of the user's own, on a connection that cannot write. */
export async function selectFrom(location: StoreLocation, sql: string, options: SelectOptions): Promise<Selection> {
  // A comment ends where it first can: were several to be read as one, forty of them could be read in a trillion ways.
  const [, verb = ''] = /^(?:\s|--[^\n]*\n|\/\*(?:(?!\*\/)[\s\S])*\*\/)*([a-z]+)/i.exec(sql) ?? []
  if (!READING.has(verb.toLowerCase())) {
    throw new SyncError('ARGUMENT_INVALID', `A query begins with ${[...READING].join(', ')}; this one begins with ${JSON.stringify(verb || sql.slice(0, 20))}.`)
  }
  if (options.asOf !== undefined && verb.toLowerCase() === 'explain') throw new SyncError('ARGUMENT_INVALID', 'EXPLAIN does not go with --as-of.')
  switch (location.kind) {
    case 'sqlite':
      return (await import('./select-from-sqlite.ts')).selectFromSqlite(location.file, sql, options)
    case 'postgres':
      return (await import('./select-from-postgres.ts')).selectFromPostgres(location.url, sql, options)
    default:
      return location satisfies never
  }
}

/** Of the statements that a read-only connection lets through, those that also leave the disk alone: VACUUM INTO does not. */
const READING = new Set(['select', 'with', 'values', 'explain'])
