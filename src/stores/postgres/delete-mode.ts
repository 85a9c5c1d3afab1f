import { SyncError, type DeleteMode } from '../../contract/index.ts'
import { DELETED_AT, liveRows, PURGE_PER_COMMIT, withDeleteMode, type DeleteState } from '../kit/tables/delete-state.ts'
import { textArray } from './binary-arrays.ts'
import type { Transaction } from './connection.ts'
import { LOCK_TIMEOUT_MS, LOCK_NOT_AVAILABLE, readTables, tableOf, type Table } from './table.ts'

export interface DeleteSetting {
  readonly database: string
  readonly wanted: DeleteMode
}

/** Returns the settings that change something, or whose database has kept rows to purge; usually none. */
export function listChangedDeleteModes(
  tables: ReadonlyMap<string, Table>,
  wanted: Readonly<Record<string, DeleteMode>>,
): DeleteSetting[] {
  return Object.entries(wanted).flatMap(([database, mode]) => {
    const table = tables.get(database)
    if (table === undefined) return []
    const isChanged = (table.deletes ?? 'hard') !== mode || (mode === 'hard' && table.purgedTo !== null)
    return isChanged ? [{ database, wanted: mode }] : []
  })
}

/**
 * Changes how rows of these databases are deleted, and updates `tables`. Returns the databases whose table could not
 * get its `_deleted_at` column because a reader holds a lock: until then none of their rows may be deleted.
 */
export async function applyDeleteModes(
  transaction: Transaction,
  settings: readonly DeleteSetting[],
  tables: Map<string, Table>,
): Promise<ReadonlySet<string>> {
  const lockedDatabases = new Set<string>()
  if (settings.length === 0) return lockedDatabases
  const known = await readTables(
    transaction,
    settings.map(({ database }) => database),
  )
  for (const { database, wanted } of settings) {
    const table = tableOf(known, database)
    let state = withDeleteMode(table, wanted)
    if (state === table) state = (await purgeTable(transaction, table, PURGE_PER_COMMIT)).state
    else if (table.deletes === null && !(await addDeletedAtColumn(transaction, table))) {
      lockedDatabases.add(database)
      continue
    } else writeDeleteState(transaction, table, state)
    const written = tables.get(database)
    if (written !== undefined) tables.set(database, { ...written, ...state, live: liveRows(table.name, state) })
  }
  return lockedDatabases
}

/** Throws when a delete would remove a row that must be kept. */
export function checkDeletable({ database, name }: Table, lockedDatabases: ReadonlySet<string>): void {
  if (!lockedDatabases.has(database)) return
  throw new SyncError(
    'STORE_BUSY',
    `A query holds a lock on the table ${name}, so its column ${DELETED_AT} cannot be added. The delete is retried when the query has ended.`,
  )
}

async function addDeletedAtColumn(transaction: Transaction, { database, name, history }: Table): Promise<boolean> {
  const foreign = await transaction.get(
    'select from pg_attribute where attrelid in (to_regclass($1), to_regclass($2)) and attname = $3 and not attisdropped',
    name,
    history,
    DELETED_AT,
  )
  if (foreign !== undefined) {
    throw new SyncError(
      'STORE_FOREIGN',
      `The table of ${database} already has a column ${DELETED_AT} that tidemark did not create. Rename it, or set deletes to hard.`,
    )
  }
  const change = [name, history]
    .map((altered) => `alter table ${altered} add column ${DELETED_AT} timestamptz`)
    .join(';')
  return transaction.tryRun(change, { lockTimeoutMs: LOCK_TIMEOUT_MS, refusals: [LOCK_NOT_AVAILABLE] })
}

/** Performs one step in each table whose deleted rows are no longer kept. */
export async function purgeTables(
  transaction: Transaction,
  scanMax: number,
): Promise<{ removed: number; more: boolean }> {
  const open = await transaction.all<{ name: string }>(
    'select name from tidemark.databases where tenant_id = $1 and purged_to is not null',
    transaction.tenant,
  )
  let [removed, more] = [0, false]
  for (const table of open.length === 0
    ? []
    : (
        await readTables(
          transaction,
          open.map(({ name }) => name),
        )
      ).values()) {
    const step = await purgeTable(transaction, table, scanMax)
    removed += step.removed
    more ||= step.state.purgedTo !== null
  }
  return { removed, more }
}

/** Every kept row has a tombstone: the purge walks tombstones by key, so no step scans live rows. */
async function purgeTable(
  transaction: Transaction,
  table: Table,
  scanMax: number,
): Promise<{ state: DeleteState; removed: number }> {
  const keys = (
    await transaction.textRows(
      `select key from tidemark.tombstones where tenant_id = $1 and database_id = $2 and key > $3 order by key limit ${scanMax}`,
      transaction.tenant,
      table.id,
      table.purgedTo,
    )
  ).flatMap(([key]) => key ?? [])
  // Forces lookups by key: without statistics the planner misjudges the size of the table.
  transaction.send('set local enable_hashjoin = off; set local enable_mergejoin = off')
  const removed =
    keys.length === 0
      ? 0
      : await transaction.run(
          `delete from ${table.name} t using (select unnest($1::text[]) collate "C" as key) w where t._key = w.key and t.${DELETED_AT} is not null`,
          textArray(keys),
        )
  const state = { deletes: table.deletes, purgedTo: keys.length === scanMax ? (keys.at(-1) ?? null) : null }
  writeDeleteState(transaction, table, state)
  return { state, removed }
}

function writeDeleteState(transaction: Transaction, { id }: Table, { deletes, purgedTo }: DeleteState): void {
  transaction.send(
    'update tidemark.databases set deletes = $3, purged_to = $4 where tenant_id = $1 and database_id = $2',
    transaction.tenant,
    id,
    deletes,
    purgedTo,
  )
}
