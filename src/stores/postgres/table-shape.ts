import type { Commit, CommitShape, JsonObject, Landing } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import type { TableColumn } from '../kit/tables/column.ts'
import { growColumns, addDeclaredColumns, acceptsShape, withFormats } from '../kit/tables/grow-columns.ts'
import {
  enforcedKeyColumns,
  isKeyUndecided,
  keyConstraintName,
  keyMembersWithoutColumn,
  planKey,
  refuseKey,
} from '../kit/tables/key-columns.ts'
import type { Transaction } from './connection.ts'
import {
  columnLimits,
  LOCK_TIMEOUT_MS,
  LOCK_NOT_AVAILABLE,
  addColumns,
  readTables,
  writeLayout,
  tableOf,
  type Table,
} from './table.ts'

/**
 * Adds declared columns and keys to the tables, and returns what could not be applied. `since` is the first sequence of
 * the page.
 */
export async function applyShapes(
  transaction: Transaction,
  tables: Map<string, Table>,
  { shapes = [], schemaModes = {}, landings }: Commit,
  since: number,
): Promise<string[]> {
  const drift: string[] = []
  for (const shape of shapes) {
    const { database } = shape
    const mode = schemaModes[database]
    const known = tableOf(tables, database)
    if (!acceptsShape(known.columns, mode)) continue
    const applied = await applyShape(transaction, known, shape, landings, since)
    tables.set(
      database,
      mode === undefined
        ? applied.table
        : writeLayout(transaction, applied.table, withFormats(applied.table.columns, recordsOf(landings, database))),
    )
    drift.push(...applied.drift)
  }
  return drift
}

async function applyShape(
  transaction: Transaction,
  known: Table,
  shape: CommitShape,
  landings: readonly Landing[],
  since: number,
): Promise<{ table: Table; drift: readonly string[] }> {
  const limits = await columnLimits(transaction, known)
  const shaped = addDeclaredColumns(known.columns, shape, since, limits)
  let { columns } = shaped
  if (isKeyUndecided(columns, shape.key) && keyMembersWithoutColumn(columns, shape.key).length > 0)
    columns = growColumns(columns, recordsOf(landings, shape.database), since, limits)
  let table = known
  if (columns !== known.columns) {
    const isAdded = await addColumns(transaction, known, columns)
    // Declared types are stored even while a reader holds the table; the next page adds the columns.
    table = writeLayout(transaction, known, isAdded ? columns : withoutNames(known, columns))
  }
  if (!isKeyUndecided(table.columns, shape.key) || keyMembersWithoutColumn(table.columns, shape.key).length > 0)
    return { table, drift: shaped.drift }
  const isEmpty = (await transaction.get(`select from ${table.name} limit 1`)) === undefined
  const plan = planKey(shape.database, table.columns, shape.key, isEmpty)
  if (plan.names !== null) {
    const names = plan.names.map(quoteIdentifier)
    const change = `alter table ${table.name} ${names.map((name) => `alter column ${name} set not null`).join(', ')},
      add constraint ${keyConstraintName(table.id)} unique (${names.join(', ')})`
    // A reader holds the table: the next cycle tries again.
    if (!(await transaction.tryRun(change, { lockTimeoutMs: LOCK_TIMEOUT_MS, refusals: [LOCK_NOT_AVAILABLE] })))
      return { table, drift: shaped.drift }
  }
  return { table: writeLayout(transaction, table, plan.columns), drift: [...shaped.drift, ...plan.drift] }
}

function withoutNames(known: Table, columns: readonly TableColumn[]): TableColumn[] {
  const named = new Set(known.columns.flatMap(({ name, member }) => (name === null ? [] : [member])))
  return columns.map((column) => (named.has(column.member) ? column : { ...column, name: null }))
}

function recordsOf(landings: readonly Landing[], database: string): JsonObject[] {
  return landings.flatMap((landing) =>
    landing.type === 'upsert' && landing.database === database ? [parseJson(landing.text) as JsonObject] : [],
  )
}

/** Drops the keys that these databases enforce, because rows violate them. */
export async function refuseKeys(transaction: Transaction, databases: readonly string[]): Promise<string[]> {
  const drift: string[] = []
  for (const table of (await readTables(transaction, databases)).values()) {
    const key = enforcedKeyColumns(table.columns)
    if (key.length === 0) continue
    await transaction.run(
      `alter table ${table.name} drop constraint ${keyConstraintName(table.id)}, ${key.flatMap(({ name }) => (name === null ? [] : [`alter column ${quoteIdentifier(name)} drop not null`])).join(', ')}`,
    )
    const refused = refuseKey(
      table.database,
      table.columns,
      key.map(({ member }) => member),
      'records violate it',
    )
    writeLayout(transaction, table, refused.columns)
    drift.push(...refused.drift)
  }
  return drift
}
