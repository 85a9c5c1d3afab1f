import { DatabaseSync } from '@photostructure/sqlite'
import { RESULT_BYTES_MAX, SyncError, type SelectResult, type SelectOptions } from '../../contract/index.ts'
import { createQueryTooLongError } from '../kit/query-too-long-error.ts'
import { createAsOfViews } from './as-of.ts'
import { Confinement } from './confine.ts'

export function selectFromSqlite(
  file: string,
  sql: string,
  { limit, tenant, deadlineMs = Infinity, asOf, only, plan = false }: SelectOptions,
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
  const confinement = only === undefined ? null : new Confinement(database, tenant, only)
  try {
    if (asOf !== undefined) guard = createAsOfViews(database, tenant, asOf, confinement)
    else if (confinement !== null)
      database.setAuthorizer((action, first, second) => confinement.authorize(action, first, second))
    const statement = database.prepare(plan ? `explain query plan ${sql}` : sql)
    if (hasSecondStatement(plan ? `explain query plan ${sql}` : sql, statement.expandedSQL ?? sql))
      throw new SyncError('ARGUMENT_INVALID', 'A query must be a single statement. Remove the text after it.')
    statement.setReadBigInts(true)
    const columns = statement.columns().map(({ name }) => name)
    statement.setReturnArrays(true)
    const rows: unknown[][] = []
    let bytes = 0
    for (const row of statement.iterate() as IterableIterator<unknown>) {
      if (limit > 0 && rows.length === limit) return { columns, rows, truncated: true }
      const cells = (row as unknown[]).map(toCell)
      bytes += cells.reduce((sum: number, cell) => sum + (typeof cell === 'string' ? cell.length : 8), 0)
      rows.push(cells)
      if (only !== undefined && bytes >= RESULT_BYTES_MAX) return { columns, rows, truncated: true }
    }
    if (plan) return { columns: ['plan'], rows: formatPlan(rows), truncated: false }
    return { columns, rows, truncated: false }
  } catch (error) {
    throw confinement?.refusal ?? guard?.refusal ?? (isLate ? createQueryTooLongError(deadlineMs) : toSyncError(error))
  } finally {
    database.close()
  }
}

/** Rows of `explain query plan` are id, parent, unused and detail; the plan is indented by parent. */
function formatPlan(rows: readonly (readonly unknown[])[]): string[][] {
  const depths = new Map<unknown, number>([[0, 0]])
  return rows.map(([id, parent, , detail]) => {
    const depth = depths.get(parent) ?? 0
    depths.set(id, depth + 1)
    return [`${'  '.repeat(depth)}${String(detail)}`]
  })
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

/** SQLITE_ERROR, SQLITE_NOMEM, SQLITE_TOOBIG and SQLITE_AUTH. */
const USER_ERRORS = new Set([1, 7, 18, 23])

/** A wrong query is the user's error; a damaged or locked file is not. */
function toSyncError(error: unknown): unknown {
  const code = (error as { errcode?: unknown } | null)?.errcode
  if (typeof code !== 'number') return error
  const message = error instanceof Error ? error.message : String(error)
  return new SyncError(
    USER_ERRORS.has(code & 0xff) ? 'ARGUMENT_INVALID' : (code & 0xff) === 5 ? 'STORE_BUSY' : 'STORE_UNAVAILABLE',
    `SQLite: ${message}.`,
    { cause: error },
  )
}
