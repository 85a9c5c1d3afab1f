import { hash } from 'node:crypto'
import { SyncError, type TableShape } from '../../contract/index.ts'
import { describeTable, type PostgresColumn, type PostgresTable, type TableName } from '../kit/postgres/catalog.ts'
import { mapColumnType } from '../kit/postgres/column-types.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'

/** A table to replicate. */
export interface CdcTable {
  readonly table: TableName
  /** The database for its rows; the sync's own by default. */
  readonly database?: string
  /** Columns that identify a row; the primary key by default. */
  readonly key?: readonly string[]
}

/** A table with its current definition. */
export interface ReplicatedTable {
  readonly id: string
  readonly quoted: string
  readonly database: string | undefined
  readonly key: readonly string[]
  /** Columns in the log: generated columns are not sent. */
  readonly columns: readonly PostgresColumn[]
  /** Changes with the columns. */
  readonly digest: string
}

/** Rejects tables that cannot be followed: a deletion must include the key. */
export async function describeReplicatedTables(
  session: PostgresSession,
  tables: readonly CdcTable[],
): Promise<ReplicatedTable[]> {
  const followed: ReplicatedTable[] = []
  for (const { table, database, key } of tables) {
    const described = await describeTable(session, table)
    const id = `${described.schema}.${described.name}`
    if (described.isView)
      throw new SyncError('SYNC_INVALID', `${id} is a view, and views have no change log. Use its tables instead.`)
    const names = key ?? described.key
    if (names.length === 0)
      throw new SyncError(
        'SYNC_INVALID',
        `${id} has no primary key. Add one, or set REPLICA IDENTITY FULL and \`key\` to the columns that identify a row.`,
      )
    const unknown = names.find((name) => !described.columns.some((column) => column.name === name))
    if (unknown !== undefined)
      throw new SyncError('SOURCE_NOT_FOUND', `${id} has no column "${unknown}". Check \`key\`.`)
    const identity = await readReplicaIdentity(session, described)
    const unlogged = names.find((name) => !identity.includes(name))
    if (unlogged !== undefined)
      throw new SyncError(
        'SYNC_INVALID',
        `${id}: the log does not include "${unlogged}" of a deleted row. Run: ALTER TABLE ${quoteTable(described)} REPLICA IDENTITY FULL`,
      )
    const columns = described.columns.filter(({ generated }) => !generated)
    followed.push({ id, quoted: quoteTable(described), database, key: names, columns, digest: hashColumns(columns) })
  }
  return followed
}

/** The column types of the tables. If several tables share a database, its columns are inferred from the values. */
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

/** The columns that the log includes for a deleted row. */
async function readReplicaIdentity(session: PostgresSession, table: PostgresTable): Promise<readonly string[]> {
  const [found] = await session.queryObjects<{ identity: string; columns: string[] | null }>(
    `select c.relreplident as identity,
      (select json_agg(a.attname) from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey) where i.indrelid = c.oid and i.indisreplident) as columns
    from pg_class c where c.oid = to_regclass($1)`,
    [quoteTable(table)],
  )
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
