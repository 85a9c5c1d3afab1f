import { countWaiting, readDrift, showColumns, WAITING_MAX, type SchemaDrift, type SchemaInfo } from 'tidemark/store'
import type { Session } from './sql.ts'
import { limitsOf, readTables, SQL_TYPES, sqlTypeOf } from './table.ts'

export function schemaDrift(session: Session): Promise<SchemaDrift[]> {
  return session.connection.read(async (transaction) => [...(await readTables(session, transaction)).values()].flatMap(({ database, drift }) => readDrift(database, drift)))
}

/** Null for a database that is not there. */
export function schema(session: Session, database: string): Promise<SchemaInfo | null> {
  return session.connection.read(async (transaction) => {
    const table = (await readTables(session, transaction, [database])).get(database)
    if (table === undefined) return null
    const count = async (name: string): Promise<number> => (await transaction.get<{ count: number }>(`select count(*) as count from ${name}`))!.count
    const texts = await transaction.all<{ text: string }>(`select _extra as text from ${table.name} where _extra is not null limit ${WAITING_MAX + 1}`)
    const indexes = await transaction.all<{ name: string }>(
      "select distinct index_name as name from information_schema.statistics where table_schema = database() and table_name = ? and index_name not in ('PRIMARY', '_sequence')",
      table.name.slice(1, -1),
    )
    return {
      database, table: table.name.slice(1, -1), history: table.history.slice(1, -1), rows: await count(table.name), isRowsExact: true, versions: await count(table.history),
      columns: showColumns(table.columns, sqlTypeOf, () => []), waiting: countWaiting(table.columns, texts.slice(0, WAITING_MAX).map(({ text }) => text)),
      waitingScanned: Math.min(texts.length, WAITING_MAX), isWaitingExact: texts.length <= WAITING_MAX, ownColumns: (await limitsOf(session, table)).foreign,
      ownIndexes: indexes.map(({ name }) => name), drift: readDrift(database, table.drift), change: null, types: SQL_TYPES, locks: null,
    }
  })
}
