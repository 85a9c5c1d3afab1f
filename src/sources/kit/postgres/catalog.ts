import { SyncError } from '../../../contract/index.ts'
import { quoteName, type PostgresSession } from './session.ts'

export interface PostgresColumn {
  readonly name: string
  readonly oid: number
  /** The name of the type; of a domain, the name of its base type. */
  readonly type: string
  readonly nullable: boolean
  readonly generated: boolean
}

export interface PostgresTable {
  readonly schema: string
  readonly name: string
  readonly isView: boolean
  readonly columns: readonly PostgresColumn[]
  readonly key: readonly string[]
  /** The column sets of all unique indexes, the primary key included. */
  readonly unique: readonly (readonly string[])[]
}

/** Looks a table up by schema and name, or by the search path. */
export async function describeTable(session: PostgresSession, name: TableName): Promise<PostgresTable> {
  const quoted = quoteTable(name)
  const [table] = await session.queryObjects<PostgresTable>(`${TABLES_SQL} where c.oid = to_regclass($1)`, [quoted])
  if (table === undefined)
    throw new SyncError(
      'SOURCE_NOT_FOUND',
      `There is no table ${quoted}, or the account has no access to its schema. Check the name, and grant USAGE on the schema.`,
    )
  return table
}

export function listTables(session: PostgresSession): Promise<PostgresTable[]> {
  return session.queryObjects<PostgresTable>(`${TABLES_SQL} where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
    and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname !~ '^pg_(toast|temp)' and has_table_privilege(c.oid, 'select')
    order by n.nspname, c.relname`)
}

/** `schema.table` or `table`. Use a pair if a name contains a dot. */
export type TableName = string | readonly [schema: string, table: string]

export function splitTableName(name: TableName): readonly string[] {
  const parts = typeof name === 'string' ? name.split('.') : name
  if (parts.length > 2 || parts.some((part) => part === ''))
    throw new SyncError(
      'SYNC_INVALID',
      `${JSON.stringify(name)} is not a table name. Write \`schema.table\`, or a [schema, table] pair.`,
    )
  return parts
}

export function quoteTable(name: TableName): string {
  return splitTableName(name).map(quoteName).join('.')
}

/** Unique indexes without a predicate and without expressions. */
const UNIQUE_INDEXES_SQL = `(
    select i.indrelid, i.indisprimary, (select json_agg(a.attname order by k.position) from unnest(i.indkey) with ordinality as k (attnum, position)
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum where k.position <= i.indnkeyatts) as names
    from pg_index i where i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
  ) u`

const TABLES_SQL = `select n.nspname as schema, c.relname as name, c.relkind in ('v', 'm', 'f') as "isView",
  (select coalesce(json_agg(json_build_object('name', a.attname, 'oid', a.atttypid::int8, 'type', coalesce(b.typname, t.typname),
      'nullable', not a.attnotnull, 'generated', a.attgenerated <> '') order by a.attnum), '[]')
    from pg_attribute a join pg_type t on t.oid = a.atttypid left join pg_type b on b.oid = nullif(t.typbasetype, 0)
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
  coalesce((select names from ${UNIQUE_INDEXES_SQL} where u.indrelid = c.oid and u.indisprimary), '[]') as key,
  (select coalesce(json_agg(names), '[]') from ${UNIQUE_INDEXES_SQL} where u.indrelid = c.oid) as unique
from pg_class c join pg_namespace n on n.oid = c.relnamespace`
