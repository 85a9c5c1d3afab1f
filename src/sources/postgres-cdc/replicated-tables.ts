import { hash } from 'node:crypto'
import { SyncError, type TableShape } from '../../contract/index.ts'
import { describeTable, type PostgresColumn, type PostgresTable, type TableName } from '../kit/postgres/catalog.ts'
import { mapColumnType } from '../kit/postgres/column-types.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'

export interface CdcTable {
  readonly table: TableName
  /** Where its rows go; where the sync's own go unless given. */
  readonly database?: string
  /** What tells rows apart; the primary key unless given. */
  readonly key?: readonly string[]
}

/** A table as it stands now. */
export interface ReplicatedTable {
  readonly id: string
  readonly quoted: string
  readonly database: string | undefined
  readonly key: readonly string[]
  /** Those the log tells: what the server computes from others is not sent. */
  readonly columns: readonly PostgresColumn[]
  /** Changes when the columns do. */
  readonly digest: string
}

/** Refuses what cannot be followed: a deletion must tell the key. */
export async function describeReplicatedTables(session: PostgresSession, tables: readonly CdcTable[]): Promise<ReplicatedTable[]> {
  const followed: ReplicatedTable[] = []
  for (const { table, database, key } of tables) {
    const described = await describeTable(session, table)
    const id = `${described.schema}.${described.name}`
    if (described.isView) throw new SyncError('SYNC_INVALID', `${id} is a view, and a view has no log.`)
    const names = key ?? described.key
    if (names.length === 0) throw new SyncError('SYNC_INVALID', `${id} has no primary key. Add one; or set REPLICA IDENTITY FULL and say with \`key\` which columns tell its rows apart.`)
    const unknown = names.find((name) => !described.columns.some((column) => column.name === name))
    if (unknown !== undefined) throw new SyncError('SOURCE_NOT_FOUND', `${id} has no column "${unknown}".`)
    const identity = await readReplicaIdentity(session, described)
    const untold = names.find((name) => !identity.includes(name))
    if (untold !== undefined) throw new SyncError('SYNC_INVALID', `${id}: the log does not tell "${untold}" of a deleted row. Run: ALTER TABLE ${quoteTable(described)} REPLICA IDENTITY FULL`)
    const columns = described.columns.filter(({ generated }) => !generated)
    followed.push({ id, quoted: quoteTable(described), database, key: names, columns, digest: hashColumns(columns) })
  }
  return followed
}

/** The types of the tables' columns. Where several tables share a database, its columns follow the values. */
export function buildTableShapes(tables: readonly ReplicatedTable[]): TableShape[] {
  return tables.flatMap(({ database, columns, key }) => {
    if (tables.filter((other) => other.database === database).length > 1) return []
    const typed = columns.flatMap(({ name, type }) => {
      const columnType = mapColumnType(type)
      return columnType === null ? [] : [{ name, type: columnType }]
    })
    return [{ ...(database !== undefined && { database }), columns: typed, key }]
  })
}

function quoteTable({ schema, name }: PostgresTable): string {
  return `${quoteName(schema)}.${quoteName(name)}`
}

/** The columns that the log tells of a row that is gone. */
async function readReplicaIdentity(session: PostgresSession, table: PostgresTable): Promise<readonly string[]> {
  const [found] = await session.queryObjects<{ identity: string; columns: string[] | null }>(`select c.relreplident as identity,
      (select json_agg(a.attname) from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey) where i.indrelid = c.oid and i.indisreplident) as columns
    from pg_class c where c.oid = to_regclass($1)`, [quoteTable(table)])
  switch (found?.identity) {
    case 'f':
      return table.columns.map(({ name }) => name)
    case 'i':
      return found.columns ?? []
    case 'd':
      return table.key
    default:
      return []
  }
}

function hashColumns(columns: readonly PostgresColumn[]): string {
  return hash('sha1', JSON.stringify(columns.map(({ name, oid }) => [name, oid])), 'base64').slice(0, 12)
}
