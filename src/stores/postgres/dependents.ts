import type { SchemaColumn } from '../../contract/index.ts'
import { quoteIdentifier, quoteLiteral } from '../kit/column-names.ts'
import type { ColumnTransition } from '../kit/tables/schema-change.ts'
import type { Transaction } from './connection.ts'
import type { Table } from './table.ts'

/** User objects that depend on the columns of a table: indexes, views, constraints, comments, grants. */

export interface ColumnDependents {
  forColumn(column: string): SchemaColumn['dependents']
  readonly ownIndexes: readonly string[]
}

export async function readDependents(transaction: Transaction, { name, history }: Table): Promise<ColumnDependents> {
  const [found, indexes] = [
    await transaction.all<{ column: string; name: string; id: number; isIndex: boolean }>(
      `select a.attname as "column", pg_describe_object(d.classid, d.objid, d.objsubid) as name, d.objid::bigint as id,
       (d.classid = 'pg_class'::regclass and exists (select from pg_index i where i.indexrelid = d.objid)) as "isIndex"
     from pg_depend d join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
     where d.refclassid = 'pg_class'::regclass and d.refobjid in (to_regclass($1), to_regclass($2)) and d.refobjsubid > 0 and not a.attisdropped
     union all
     select attname, format('the NOT NULL of column %s', attname), 0, false from pg_attribute
     where attrelid in (to_regclass($1), to_regclass($2)) and attnum > 0 and attnotnull and not attisdropped`,
      name,
      history,
    ),
    await readRebuildableIndexes(transaction, [name, history]),
  ]
  const plain = new Set(indexes.map(({ id }) => id))
  const own = await transaction.all<{ name: string }>(
    `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
     where i.indrelid in (to_regclass($1), to_regclass($2)) and not i.indisprimary and c.relname not like 'tidemark\\_new\\_%'
       and array(select attname::text from unnest(i.indkey) with ordinality k (n, at) join pg_attribute on attrelid = i.indrelid and attnum = k.n order by k.at)
         not in (array['_sequence'], array['_key', '_sequence']) order by 1`,
    name,
    history,
  )
  return {
    forColumn: (column) => [
      ...new Map(
        found
          .filter((item) => item.column === column)
          .map((item) => [item.name, { name: item.name, isKept: item.isIndex && plain.has(item.id) }]),
      ).values(),
    ],
    ownIndexes: own.map((index) => index.name),
  }
}

interface RebuildableIndex {
  readonly id: number
  readonly table: string
  readonly schema: string
  readonly name: string
  readonly method: 'btree' | 'hash'
  readonly isUnique: boolean
  readonly nullsNotDistinct: boolean
  readonly options: string | null
  /** In index order; columns after the keys are only included. */
  readonly columns: ReadonlyArray<{ readonly name: string; readonly option: number | null }>
}

/**
 * Indexes that can be rebuilt on columns of another type: plain columns with the default order and collation of their
 * types.
 */
async function readRebuildableIndexes(
  transaction: Transaction,
  tables: readonly string[],
): Promise<RebuildableIndex[]> {
  const found: RebuildableIndex[] = []
  for (const table of tables) {
    found.push(
      ...(await transaction.all<RebuildableIndex>(
        `select i.indexrelid::bigint as id, $1::text as "table", n.nspname as schema, c.relname as name, m.amname as method, i.indisunique as "isUnique",
         i.indnullsnotdistinct as "nullsNotDistinct", array_to_string(c.reloptions, ', ') as options,
         (select json_agg(json_build_object('name', a.attname, 'option', k.option) order by k.at)
          from unnest(i.indkey::smallint[], i.indoption::smallint[]) with ordinality k (n, option, at) join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n) as columns
       from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace join pg_am m on m.oid = c.relam
       where i.indrelid = to_regclass($1) and not i.indisprimary and i.indisvalid and i.indexprs is null and i.indpred is null and m.amname in ('btree', 'hash')
         and c.relname not like 'tidemark\\_new\\_%'
         and not exists (select from pg_constraint o where o.conindid = i.indexrelid)
         and not exists (
           select from unnest(i.indkey::smallint[], i.indclass::oid[], i.indcollation::oid[]) k (n, class, locale)
           join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n join pg_opclass o on o.oid = k.class
           where not o.opcdefault or k.locale <> a.attcollation
         )`,
        table,
      )),
    )
  }
  return found
}

function usesReplacedColumn(index: RebuildableIndex, moves: readonly ColumnTransition[]): boolean {
  return index.columns.some(({ name }) => moves.some(({ from, to }) => from === name && to !== null))
}

function newIndexName({ id }: RebuildableIndex): string {
  return `tidemark_new_${id}`
}

/** Returns the next statement that rebuilds an index of the old columns on the new ones; null when all exist. */
export async function buildNextIndexSql(
  transaction: Transaction,
  { name, history }: Table,
  moves: readonly ColumnTransition[],
): Promise<string | null> {
  for (const index of await readRebuildableIndexes(transaction, [name, history])) {
    if (!usesReplacedColumn(index, moves)) continue
    const there = await transaction.get<{ valid: boolean }>(
      'select i.indisvalid as valid from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace where c.relname = $1 and n.nspname = $2',
      newIndexName(index),
      index.schema,
    )
    if (there?.valid === true) continue
    // A build that was interrupted, or found a duplicate value, leaves an invalid index.
    if (there !== undefined)
      return `drop index concurrently ${quoteIdentifier(index.schema)}.${quoteIdentifier(newIndexName(index))}`
    return buildIndexSql(index, moves)
  }
  return null
}

function buildIndexSql(index: RebuildableIndex, moves: readonly ColumnTransition[]): string {
  const columnOf = (name: string): string =>
    quoteIdentifier(moves.find(({ from, to }) => from === name && to !== null)?.to ?? name)
  const keys = index.columns.filter(({ option }) => option !== null)
  const included = index.columns.filter(({ option }) => option === null)
  const order = (option: number): string =>
    index.method === 'hash' ? '' : `${(option & 1) === 0 ? '' : ' desc'} nulls ${(option & 2) === 0 ? 'last' : 'first'}`
  return [
    `create ${index.isUnique ? 'unique ' : ''}index concurrently ${quoteIdentifier(newIndexName(index))} on ${index.table} using ${index.method}`,
    `(${keys.map(({ name, option }) => `${columnOf(name)}${order(option ?? 0)}`).join(', ')})`,
    ...(included.length === 0 ? [] : [`include (${included.map(({ name }) => columnOf(name)).join(', ')})`]),
    ...(index.nullsNotDistinct ? ['nulls not distinct'] : []),
    ...(index.options === null ? [] : [`with (${index.options})`]),
  ].join(' ')
}

/** Run after the old columns, and their indexes with them, are dropped. */
export async function buildIndexRenameSql(
  transaction: Transaction,
  { name, history }: Table,
  moves: readonly ColumnTransition[],
): Promise<string[]> {
  const indexes = (await readRebuildableIndexes(transaction, [name, history])).filter((index) =>
    usesReplacedColumn(index, moves),
  )
  return indexes.map(
    (index) =>
      `alter index ${quoteIdentifier(index.schema)}.${quoteIdentifier(newIndexName(index))} rename to ${quoteIdentifier(index.name)}`,
  )
}

/** Returns statements that copy the comments and grants of the old columns to the new ones. */
export async function buildPropertySql(
  transaction: Transaction,
  { name, history }: Table,
  moves: readonly ColumnTransition[],
): Promise<string[]> {
  const statements: string[] = []
  for (const table of [name, history]) {
    for (const { from, to } of moves) {
      if (from === null || to === null) continue
      const found = await transaction.one<{
        comment: string | null
        grants: Array<{ role: string | null; right: string; isGrantable: boolean }>
      }>(
        `select col_description(a.attrelid, a.attnum) as comment, coalesce((
           select json_agg(json_build_object('role', r.rolname, 'right', g.privilege_type, 'isGrantable', g.is_grantable))
           from aclexplode(a.attacl) g left join pg_roles r on r.oid = g.grantee
         ), '[]') as grants
         from pg_attribute a where a.attrelid = to_regclass($1) and a.attname = $2`,
        table,
        from,
      )
      if (found.comment !== null)
        statements.push(`comment on column ${table}.${quoteIdentifier(to)} is ${quoteLiteral(found.comment)}`)
      for (const { role, right, isGrantable } of found.grants) {
        statements.push(
          `grant ${right} (${quoteIdentifier(to)}) on ${table} to ${role === null ? 'public' : quoteIdentifier(role)}${isGrantable ? ' with grant option' : ''}`,
        )
      }
    }
  }
  return statements
}
