import { DatabaseSync } from '@photostructure/sqlite'
import { SyncError, type SelectResult, type SelectOptions } from '../../contract/index.ts'
import { createQueryTooLongError } from '../kit/query-too-long-error.ts'
import { createAsOfViews } from './as-of.ts'

export function selectFromSqlite(
  file: string,
  sql: string,
  { limit, tenant, deadlineMs = Infinity, asOf }: SelectOptions,
): SelectResult {
  const database = openReadOnly(file)
  // SQLite blocks the thread while it runs, so the statement itself has to check the clock.
  const until = performance.now() + deadlineMs
  let isLate = false
  database.function('tidemark_in_time', { deterministic: false }, () => {
    isLate = performance.now() > until
    if (isLate) throw new Error('too late')
    return 1
  })
  let guard: ReturnType<typeof createAsOfViews> | null = null
  try {
    if (asOf !== undefined) guard = createAsOfViews(database, tenant, asOf)
    const statement = database.prepare(sql)
    if (hasSecondStatement(sql, statement.expandedSQL ?? sql))
      throw new SyncError('ARGUMENT_INVALID', 'A query must be a single statement. Remove the text after it.')
    statement.setReadBigInts(true)
    const columns = statement.columns().map(({ name }) => name)
    statement.setReturnArrays(true)
    const rows: unknown[][] = []
    for (const row of statement.iterate() as IterableIterator<unknown>) {
      if (limit > 0 && rows.length === limit) return { columns, rows, truncated: true }
      rows.push((row as unknown[]).map(toCell))
    }
    return { columns, rows, truncated: false }
  } catch (error) {
    throw guard?.refusal ?? (isLate ? createQueryTooLongError(deadlineMs) : toSyncError(error))
  } finally {
    database.close()
  }
}

function openReadOnly(file: string): InstanceType<typeof DatabaseSync> {
  try {
    return new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
  } catch (cause) {
    throw new SyncError('STORE_UNAVAILABLE', `Cannot open the SQLite file ${file}.`, { cause })
  }
}

/** Only the first statement of a text is prepared. */
function hasSecondStatement(sql: string, first: string): boolean {
  return (
    sql.trim().startsWith(first.trim()) &&
    sql
      .trim()
      .slice(first.trim().length)
      .replace(/^[\s;]+|--[^\n]*(\n|$)/g, '') !== ''
  )
}

function toCell(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value
}

/** A wrong query is the user's error; a damaged or locked file is not. */
function toSyncError(error: unknown): unknown {
  const code = (error as { errcode?: unknown } | null)?.errcode
  if (typeof code !== 'number') return error
  const message = error instanceof Error ? error.message : String(error)
  return new SyncError(
    (code & 0xff) === 1 ? 'ARGUMENT_INVALID' : (code & 0xff) === 5 ? 'STORE_BUSY' : 'STORE_UNAVAILABLE',
    `SQLite: ${message}.`,
    { cause: error },
  )
}
