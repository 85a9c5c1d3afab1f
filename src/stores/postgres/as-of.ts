import { checkAsOf, toIsoTime, createAsOfBypassError } from '../kit/as-of.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { liveRows, type DeleteState } from '../kit/tables/delete-state.ts'
import { parseQualifiedNames, type QualifiedName } from './qualified-names.ts'

/** Runs one of our own statements and returns its rows. */
export type RowsQuery = (sql: string, ...parameters: unknown[]) => Promise<readonly Record<string, unknown>[]>

interface AsOfTable extends DeleteState {
  readonly schema: string
  readonly name: string
  readonly history: string
  readonly keptFrom: number | null
  readonly columns: ReadonlyArray<{ readonly name: string; readonly type: string }>
}

/**
 * Rewrites a statement to read the tenant's tables as of a time: common table expressions shadow the tables that it
 * names. They need no right to create anything, so they also work for a reader's role and on a replica. Legal in a
 * transaction that reads from one snapshot, with the tenant set.
 */
export async function rewriteAsOf(query: RowsQuery, statement: string, at: number): Promise<string> {
  const [start] = (await query(
    `select floor::float8 as floor, floor_committed_at::float8 as "floorAt",
       (select min(committed_at) from tidemark.commits c where c.tenant_id = t.tenant_id)::float8 as "firstAt"
     from tidemark.tenants t where tenant_id = current_setting('tidemark.tenant')`,
  )) as { floor: number; floorAt: number; firstAt: number | null }[]
  if (start === undefined) return statement
  if (start.floor === 0) checkAsOf(at, { startMs: start.firstAt, isCompacted: false })

  const chains = parseQualifiedNames(statement)
  const tables = await readTables(query, [...new Set(chains.flatMap(({ parts }) => parts.map(({ name }) => name)))])
  if (tables.length === 0) {
    await rejectCurrentData(query, statement, [])
    return statement
  }
  // A database may keep its history longer than the others.
  for (const { keptFrom } of tables) checkAsOf(at, { startMs: keptFrom ?? start.floorAt, isCompacted: true })
  const plain = removeSchemaQualifiers(statement, chains, tables)
  await rejectCurrentData(query, plain, tables)
  return prependExpressions(
    plain,
    tables.flatMap((table) => expressionsOf(table, `timestamptz '${toIsoTime(at)}'`)),
  )
}

/**
 * The statement keeps its order and its column names. A statement with its own WITH cannot take another one in front.
 */
function prependExpressions(statement: string, expressions: readonly string[]): string {
  if (expressions.length === 0) return statement
  const isWith = parseQualifiedNames(statement)[0]?.parts[0]?.name === 'with'
  return `with ${expressions.join(', ')} ${isWith ? 'select * from ' : ''}(${statement}\n)${isWith ? ' as answer' : ''}`
}

function expressionsOf({ schema, name, history, columns, ...state }: AsOfTable, at: string): string[] {
  const listed = columns.map((column) => quoteIdentifier(column.name)).join(', ')
  const qualified = (relation: string): string => `${quoteIdentifier(schema)}.${quoteIdentifier(relation)}`
  const past = qualified(history)
  return [
    `${quoteIdentifier(name)} as not materialized (select ${listed} from ${liveRows(qualified(name), state)} l where _synced_at <= ${at}
     union all select ${listed} from ${past} where _synced_at <= ${at} and _until_at > ${at})`,
    `${quoteIdentifier(history)} as not materialized (select * from ${past} where _until_at <= ${at})`,
  ]
}

/**
 * Reads only the tables that the statement may name: with hundreds of databases, expressions for all of them would take
 * longer than the query.
 */
async function readTables(query: RowsQuery, names: readonly string[]): Promise<AsOfTable[]> {
  // The user's own columns have no history.
  const rows = await query(
    `select n.nspname::text as schema, c.relname::text as name, h.relname::text as history, d.history_floor_at::float8 as "keptFrom", d.deletes, d.purged_to as "purgedTo", json_agg(json_build_object('name', a.attname,
       'type', format_type(a.atttypid, a.atttypmod)) order by a.attnum)::text as columns
     from tidemark.databases d join pg_class c on c.oid = to_regclass(d.table_name) join pg_class h on h.oid = to_regclass(d.history_name)
     join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where d.tenant_id = current_setting('tidemark.tenant') and (c.relname = any($1::text[]) or h.relname = any($1::text[]))
       and exists (select from pg_attribute o where o.attrelid = h.oid and o.attname = a.attname and not o.attisdropped)
     group by n.nspname, c.relname, h.relname, d.history_floor_at, d.deletes, d.purged_to`,
    names,
  )
  return rows.map(
    (row) => ({ ...row, columns: JSON.parse(row['columns'] as string) as AsOfTable['columns'] }) as AsOfTable,
  )
}

/** `acme.customers` becomes `customers`: a common table expression has no schema. */
function removeSchemaQualifiers(
  statement: string,
  chains: readonly QualifiedName[],
  tables: readonly AsOfTable[],
): string {
  const relations = new Set(
    tables.flatMap(({ schema, name, history }) =>
      [name, history].map((relation) => JSON.stringify([schema, relation])),
    ),
  )
  let [text, from] = ['', 0]
  for (const { parts } of chains) {
    const relation = parts.find(
      ({ name }, at) => at > 0 && at < 3 && relations.has(JSON.stringify([parts[at - 1]?.name, name])),
    )
    const [first] = parts
    if (relation === undefined || first === undefined) continue
    text += statement.slice(from, first.start)
    from = relation.start
  }
  return text + statement.slice(from)
}

/**
 * A user's view, or another tenant's table, would show current data. The statement is planned with expressions that
 * read no table; if the plan still scans a table of records, it is refused.
 */
async function rejectCurrentData(query: RowsQuery, statement: string, tables: readonly AsOfTable[]): Promise<void> {
  const [row] = await query(
    `explain (format json, verbose) ${prependExpressions(statement, tables.flatMap(emptyExpressionsFor))}`,
  )
  const plan = row?.['QUERY PLAN']
  const scanned = [...listRelations(typeof plan === 'string' ? JSON.parse(plan) : plan)]
  const [past] = await query(
    `select format('%I.%I', n.nspname, c.relname) as name from unnest($1::text[], $2::text[]) as scanned (schema, name)
     join pg_namespace n on n.nspname = scanned.schema join pg_class c on c.relnamespace = n.oid and c.relname = scanned.name
     where (select count(*) from pg_attribute a where a.attrelid = c.oid and a.attname in ('_created_sequence', '_synced_at') and not a.attisdropped) = 2 limit 1`,
    scanned.map(([schema]) => schema),
    scanned.map(([, name]) => name),
  )
  if (past !== undefined) throw createAsOfBypassError(past['name'] as string)
}

function emptyExpressionsFor({ name, history, columns }: AsOfTable): string[] {
  const row = (all: AsOfTable['columns']): string =>
    all.map((column) => `null::${column.type} as ${quoteIdentifier(column.name)}`).join(', ')
  const until = [
    { name: '_until_sequence', type: 'bigint' },
    { name: '_until_at', type: 'timestamptz' },
  ]
  return [
    `${quoteIdentifier(name)} as materialized (select ${row(columns)} from pg_catalog.generate_series(1, 0))`,
    `${quoteIdentifier(history)} as materialized (select ${row([...until, ...columns])} from pg_catalog.generate_series(1, 0))`,
  ]
}

/** The relations that a plan scans. */
export function* listRelations(node: unknown): Generator<[schema: string, name: string]> {
  if (typeof node !== 'object' || node === null) return
  const { 'Relation Name': name, Schema: schema } = node as Record<string, unknown>
  if (typeof name === 'string' && typeof schema === 'string') yield [schema, name]
  for (const member of Object.values(node)) yield* listRelations(member)
}
