import type { Commit, CommitShape, JsonObject, Landing } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { growColumns, addDeclaredColumns, acceptsShape, withFormats } from '../kit/tables/grow-columns.ts'
import {
  enforcedKeyColumns,
  isKeyUndecided,
  keyConstraintName,
  keyMembersWithoutColumn,
  planKey,
  refuseKey,
} from '../kit/tables/key-columns.ts'
import type { TenantSession } from './connection.ts'
import {
  alterTable,
  ensureTable,
  findTable,
  foreignColumns,
  COLUMN_LIMITS,
  RESERVED_NAMES,
  type Table,
} from './table.ts'

/**
 * Adds declared columns and keys to the tables, and returns what could not be applied. `since` is the first sequence of
 * the page.
 */
export function applyShapes(
  session: TenantSession,
  tables: Map<string, Table>,
  { shapes = [], schemaModes = {}, landings }: Commit,
  since: number,
): string[] {
  return shapes.flatMap((shape) => {
    const { database } = shape
    const known = tables.get(database) ?? ensureTable(session, database, [])
    const mode = schemaModes[database]
    if (!acceptsShape(known.columns, mode)) return []
    const { table, drift } = applyShape(session, known, shape, landings, since)
    tables.set(
      database,
      mode === undefined
        ? table
        : alterTable(session, table, withFormats(table.columns, recordsOf(landings, database))),
    )
    return drift
  })
}

function applyShape(
  session: TenantSession,
  known: Table,
  shape: CommitShape,
  landings: readonly Landing[],
  since: number,
): { table: Table; drift: readonly string[] } {
  const limits = { reserved: [...RESERVED_NAMES, ...foreignColumns(session, known)], ...COLUMN_LIMITS }
  const shaped = addDeclaredColumns(known.columns, shape, since, limits)
  let { columns } = shaped
  if (isKeyUndecided(columns, shape.key) && keyMembersWithoutColumn(columns, shape.key).length > 0)
    columns = growColumns(columns, recordsOf(landings, shape.database), since, limits)
  const table = columns === known.columns ? known : alterTable(session, known, columns)
  if (!isKeyUndecided(columns, shape.key) || keyMembersWithoutColumn(columns, shape.key).length > 0)
    return { table, drift: shaped.drift }
  const isEmpty = session.connection.get(`select 1 from ${table.name} limit 1`) === undefined
  const plan = planKey(shape.database, columns, shape.key, isEmpty)
  if (plan.names !== null) {
    const names = plan.names.map(quoteIdentifier)
    for (const name of names) session.connection.exec(`alter table ${table.name} alter column ${name} set not null`)
    session.connection.exec(`create unique index ${keyConstraintName(table.id)} on ${table.name} (${names.join(', ')})`)
  }
  return { table: alterTable(session, table, plan.columns), drift: [...shaped.drift, ...plan.drift] }
}

function recordsOf(landings: readonly Landing[], database: string): JsonObject[] {
  return landings.flatMap((landing) =>
    landing.type === 'upsert' && landing.database === database ? [parseJson(landing.text) as JsonObject] : [],
  )
}

/** Drops the keys that these databases enforce, because rows violate them. Returns the drift. */
export function refuseKeys(session: TenantSession, databases: readonly string[]): string[] {
  return databases.flatMap((database) => {
    const table = findTable(session, database)
    const key = table === null ? [] : enforcedKeyColumns(table.columns)
    if (table === null || key.length === 0) return []
    session.connection.exec(`drop index ${keyConstraintName(table.id)}`)
    for (const { name } of key) {
      if (name !== null)
        session.connection.exec(`alter table ${table.name} alter column ${quoteIdentifier(name)} drop not null`)
    }
    const { columns, drift } = refuseKey(
      database,
      table.columns,
      key.map(({ member }) => member),
      'records violate it',
    )
    alterTable(session, table, columns)
    return drift
  })
}
