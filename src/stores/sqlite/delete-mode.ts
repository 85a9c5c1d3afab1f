import { SyncError, type DeleteMode } from '../../contract/index.ts'
import { DELETED_AT, PURGE_PER_COMMIT, withDeleteMode, type DeleteState } from '../kit/tables/delete-state.ts'
import type { TenantSession } from './connection.ts'
import { foreignColumns, requireTable, requireNamedTable, type Table } from './table.ts'

/**
 * Changes how rows of these databases are deleted. Returns the tables in which the mode, or the progress of a purge,
 * changed.
 */
export function applyDeleteModes(session: TenantSession, wanted: Readonly<Record<string, DeleteMode>>): Table[] {
  const { connection, tenantId } = session
  const changed = connection.all<{ name: string; wanted: DeleteMode }>(
    `select name, w.value as wanted from json_each(?2) w join tidemark_databases on tenant_id = ?1 and name = w.key
     where coalesce(deletes, 'hard') <> w.value or (w.value = 'hard' and purged_to is not null)`,
    tenantId,
    JSON.stringify(wanted),
  )
  return changed.map(({ name, wanted: mode }) => {
    const table = requireNamedTable(session, name)
    const state = withDeleteMode(table, mode)
    if (state === table) purgeTable(session, table, PURGE_PER_COMMIT)
    else {
      if (table.deletes === null) addDeletedAtColumn(session, table)
      writeDeleteState(session, table, state)
    }
    return requireNamedTable(session, name)
  })
}

function addDeletedAtColumn(session: TenantSession, table: Table): void {
  if (foreignColumns(session, table).some((column) => column.toLowerCase() === DELETED_AT)) {
    throw new SyncError(
      'STORE_FOREIGN',
      `The table of ${table.database} already has a column ${DELETED_AT} that tidemark did not create. Rename it, or set deletes to hard.`,
    )
  }
  for (const altered of [table.name, table.history])
    session.connection.exec(`alter table ${altered} add column ${DELETED_AT} datetime`)
}

/** Performs one step in each table whose deleted rows are no longer kept. */
export function purgeTables(session: TenantSession, scanMax: number): { removed: number; more: boolean } {
  const { connection, tenantId } = session
  const open = connection.all<{ id: number }>(
    'select database_id as id from tidemark_databases where tenant_id = ? and purged_to is not null',
    tenantId,
  )
  let [removed, more] = [0, false]
  for (const { id } of open) {
    const step = purgeTable(session, requireTable(session, id), scanMax)
    removed += step.removed
    more ||= step.more
  }
  return { removed, more }
}

/** Every kept row has a tombstone: the purge walks tombstones by key, so no step scans live rows. */
function purgeTable(session: TenantSession, table: Table, scanMax: number): { removed: number; more: boolean } {
  const { connection, tenantId } = session
  const keys = connection
    .all<{ key: string }>(
      'select key from tidemark_tombstones where tenant_id = ? and database_id = ? and key > ? order by key limit ?',
      tenantId,
      table.id,
      table.purgedTo,
      scanMax,
    )
    .map(({ key }) => key)
  const { changes } = connection.run(
    `delete from ${table.name} where ${DELETED_AT} is not null and _key in (select value from json_each(?))`,
    JSON.stringify(keys),
  )
  const last = keys.length === scanMax ? (keys.at(-1) ?? null) : null
  writeDeleteState(session, table, { deletes: table.deletes, purgedTo: last })
  return { removed: changes, more: last !== null }
}

function writeDeleteState(
  { connection, tenantId }: TenantSession,
  { id }: Table,
  { deletes, purgedTo }: DeleteState,
): void {
  connection.run(
    'update tidemark_databases set deletes = ?, purged_to = ? where tenant_id = ? and database_id = ?',
    deletes,
    purgedTo,
    tenantId,
    id,
  )
}
