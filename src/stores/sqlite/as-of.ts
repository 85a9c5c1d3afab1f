import { randomUUID } from 'node:crypto'
import { constants, type DatabaseSyncInstance } from '@photostructure/sqlite'
import type { SyncError } from '../../contract/index.ts'
import { checkAsOf, toIsoTime, createNoHistoryError, createAsOfBypassError } from '../kit/as-of.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { liveRows, type DeleteState } from '../kit/tables/delete-state.ts'
import type { Confinement } from './confine.ts'

/** Set once a statement was refused because it bypasses a view. */
export interface AsOfGuard {
  refusal: SyncError | null
}

/**
 * Hides the tables of a tenant behind temporary views that show them as of a time, on a read-only connection. The
 * transaction is left open, so that the history that was checked is the one that is read.
 */
export function createAsOfViews(
  db: DatabaseSyncInstance,
  tenant: string,
  at: number,
  confinement: Confinement | null = null,
): AsOfGuard {
  db.exec('begin')
  const found = db
    .prepare(
      `select tenant_id as id, floor, floor_committed_at as floorAt, (select min(committed_at) from tidemark_commits c where c.tenant_id = t.tenant_id) as firstAt
     from tidemark_tenants t where name = ?`,
    )
    .get(tenant) as { id: number; floor: number; floorAt: number; firstAt: number | null } | undefined
  if (found === undefined) return { refusal: null }
  if (found.floor === 0) checkAsOf(at, { startMs: found.firstAt, isCompacted: false })

  // The views that read the tables have random names: a CTE named like a table would otherwise pass for its view.
  const inner = `tidemark_as_of_${randomUUID()}_`
  const records = db
    .prepare(
      'select table_name as name, tenant_id = ? as isOurs, history_floor_at as keptFrom, deletes, purged_to as purgedTo from tidemark_databases',
    )
    .all(found.id) as (DeleteState & { name: string; isOurs: number; keptFrom: number | null })[]
  for (const { name, isOurs, ...state } of records) {
    if (isOurs === 1) for (const sql of asOfViewsOf(db, name, state, inner, `'${toIsoTime(at)}'`)) db.exec(sql)
  }
  // A database may keep its history longer than the others.
  const tables = new Map(
    records.flatMap(({ name, keptFrom }) =>
      [name, `${name}_history`].map((table) => [table.toLowerCase(), keptFrom ?? found.floorAt]),
    ),
  )
  const guard: AsOfGuard = { refusal: null }
  db.setAuthorizer((action, table, column, schema, reader) => {
    // The inner views are only reached through those that are named like tables.
    const isOurView =
      table?.startsWith(inner) === true ||
      (reader !== null && (reader.startsWith(inner) || tables.has(reader.toLowerCase())))
    if (confinement !== null && confinement.authorize(action, table, column, isOurView) !== constants.SQLITE_OK)
      return constants.SQLITE_DENY
    const startMs =
      action === constants.SQLITE_READ && table !== null && schema === 'main'
        ? tables.get(table.toLowerCase())
        : undefined
    if (table === null || startMs === undefined) return constants.SQLITE_OK
    if (reader?.startsWith(inner) === true && at >= startMs) return constants.SQLITE_OK
    guard.refusal ??=
      reader?.startsWith(inner) === true ? createNoHistoryError(at, startMs, true) : createAsOfBypassError(table)
    return constants.SQLITE_DENY
  })
  return guard
}

function asOfViewsOf(db: DatabaseSyncInstance, table: string, state: DeleteState, inner: string, at: string): string[] {
  const [current, history] = [quoteIdentifier(table), quoteIdentifier(`${table}_history`)]
  // The user's own columns have no history.
  const columns = db
    .prepare(
      'select name from pragma_table_info(?1) where name in (select name from pragma_table_info(?2)) order by cid',
    )
    .all(table, `${table}_history`)
    .map((row) => quoteIdentifier((row as { name: string }).name))
    .join(', ')
  return [
    `create temp view ${quoteIdentifier(inner + table)} as select ${columns} from ${liveRows(`main.${current}`, state)} where _synced_at <= ${at}
     union all select ${columns} from main.${history} where _synced_at <= ${at} and _until_at > ${at}`,
    `create temp view ${current} as select * from temp.${quoteIdentifier(inner + table)}`,
    `create temp view ${quoteIdentifier(`${inner}${table}_history`)} as select * from main.${history} where _until_at <= ${at}`,
    `create temp view ${history} as select * from temp.${quoteIdentifier(`${inner}${table}_history`)}`,
  ]
}
