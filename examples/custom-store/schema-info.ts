import {
  countExtraMembers,
  parseDrift,
  describeColumns,
  EXTRA_ROWS_MAX,
  type SchemaDrift,
  type SchemaInfo,
} from 'tidemark/store'
import type { TenantSession } from './sql.ts'
import { limitsOf, readTables, SQL_TYPES, sqlTypeOf } from './table.ts'

export function schemaDrift(session: TenantSession): Promise<SchemaDrift[]> {
  return session.connection.read(async (transaction) =>
    [...(await readTables(session, transaction)).values()].flatMap(({ database, drift }) =>
      parseDrift(database, drift),
    ),
  )
}

/** Returns null for an unknown database. */
export function schema(session: TenantSession, database: string): Promise<SchemaInfo | null> {
  return session.connection.read(async (transaction) => {
    const table = (await readTables(session, transaction, [database])).get(database)
    if (table === undefined) return null
    const count = async (name: string): Promise<number> =>
      (await transaction.one<{ count: number }>(`select count(*) as count from ${name}`)).count
    const texts = await transaction.all<{ text: string }>(
      `select _extra as text from ${table.name} where _extra is not null limit ${EXTRA_ROWS_MAX + 1}`,
    )
    const indexes = await transaction.all<{ name: string }>(
      "select distinct index_name as name from information_schema.statistics where table_schema = database() and table_name = ? and index_name not in ('PRIMARY', '_sequence')",
      table.name.slice(1, -1),
    )
    return {
      database,
      table: table.name.slice(1, -1),
      history: table.history.slice(1, -1),
      rows: await count(table.name),
      isRowsExact: true,
      versions: await count(table.history),
      columns: describeColumns(table.columns, sqlTypeOf, () => []),
      waiting: countExtraMembers(
        table.columns,
        texts.slice(0, EXTRA_ROWS_MAX).map(({ text }) => text),
      ),
      waitingScanned: Math.min(texts.length, EXTRA_ROWS_MAX),
      isWaitingExact: texts.length <= EXTRA_ROWS_MAX,
      ownColumns: (await limitsOf(session, table)).foreign,
      ownIndexes: indexes.map(({ name }) => name),
      drift: parseDrift(database, table.drift),
      change: null,
      types: SQL_TYPES,
      locks: null,
    }
  })
}
