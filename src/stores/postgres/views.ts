import { SyncError, type Column, type ColumnKind } from '../../contract/index.ts'
import { mergeColumns, nameColumns, quoteName, quoteText } from '../kit/columns.ts'
import type { Transaction } from './connection.ts'

/** Columns of our own in every view; they stand first, so that a new member is a column at the end. */
const OWN = ['_key', '_sequence', '_committed_at', '_record']
const NAME_BYTES_MAX = 63
const COLUMNS_MAX = 1_000

/** How long a view's change may wait for somebody's query on it; the page that brings the change is waiting meanwhile. */
const VIEW_LOCK_TIMEOUT_MS = 1_000
const LOCKED = '55P03'
const DEPENDED_ON = '2BP01'

/**
 * The databases' numbers by name; their rows, and the views that let people `select * from accounts`, are made or widened
 * on the way. Only with the tenant's row locked. `renew` tries views again that could not be changed before.
 */
export async function ensureViews(
  transaction: Transaction, known: ReadonlyMap<string, Database>, seen: Readonly<Record<string, readonly Column[]>>, { renew = false } = {},
): Promise<Map<string, number>> {
  const ids = new Map<string, number>()
  for (const [name, columns] of Object.entries(seen)) {
    const database = known.get(name) ?? (await makeDatabase(transaction, name))
    ids.set(name, database.id)
    const merged = mergeColumns(database.columns, columns)
    if (merged !== database.columns) {
      transaction.send('update tidemark.databases set columns = $3 where tenant_id = $1 and database_id = $2', transaction.tenant, database.id, JSON.stringify(merged))
    } else if (database.shown !== null && !renew) continue
    await showColumns(transaction, database, merged)
  }
  return ids
}

export interface Database {
  readonly id: number
  readonly name: string
  /** With its schema, quoted where it must be. */
  readonly view: string
  readonly columns: readonly Column[]
  /** The view's columns and types, as text; null before it is made. */
  readonly shown: string | null
}

export async function readDatabases(transaction: Transaction): Promise<Map<string, Database>> {
  const rows = await transaction.all<{ id: number; name: string; view: string; columns: string; shown: string | null }>(
    'select database_id as id, name, view_name as view, columns, shown from tidemark.databases where tenant_id = $1', transaction.tenant,
  )
  return new Map(rows.map((row) => [row.name, { ...row, columns: JSON.parse(row.columns) as Column[] }]))
}

async function makeDatabase(transaction: Transaction, name: string): Promise<Database> {
  const schema = schemaOf(transaction.tenant)
  const { view } = (await transaction.get<{ view: string }>("select format('%I.%I', $1::text, $2::text) as view", schema, name))!
  const taken = await transaction.get<{ kind: string }>(
    `select case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'r' then 'table' when 'p' then 'table' else 'relation' end as kind
     from pg_class where oid = to_regclass($1)`, view,
  )
  if (taken !== undefined) throw new SyncError('STORE_FOREIGN', `There already is a ${taken.kind} ${view}; the database ${name} cannot have its view there.`)
  const there = await transaction.get('select from pg_namespace where nspname = $1', schema)
  if (there === undefined) await transaction.run(`create schema ${quoteName(schema)}`)
  const { id } = (await transaction.get<{ id: number }>(
    'insert into tidemark.databases (tenant_id, name, view_name) values ($1, $2, $3) returning database_id as id', transaction.tenant, name, view,
  ))!
  return { id, name, view, columns: [], shown: null }
}

function schemaOf(tenant: string): string {
  if (tenant === 'default') return 'public'
  // Schemas that are the server's or ours.
  return /^(public|tidemark|information_schema|pg_.*)$/.test(tenant) ? `tenant_${tenant}` : tenant
}

/**
 * Brings the view up to what is known. When somebody's long query or a view built upon it forbids that, it stays as it
 * is: its casts hold for every row, so it is only narrower than it could be, and the rows land all the same.
 */
async function showColumns(transaction: Transaction, database: Database, columns: readonly Column[]): Promise<void> {
  const { view } = database
  const named = nameColumns(columns, OWN, NAME_BYTES_MAX, COLUMNS_MAX).map(({ name, as, kinds }) => ({ as, ...cast(name, kinds) }))
  const shown = JSON.stringify(named.map(({ as, type }) => [as, type]))
  if (shown === database.shown && (await isView(transaction, view))) return

  // PostgreSQL lets a view grow at its end; anything else is a new view.
  const grows = database.shown === null || shown === database.shown || shown.startsWith(`${database.shown.slice(0, -1)},`) || database.shown === '[]'
  const create = viewSql(transaction.tenant, database.id, view, named.map(({ as, sql }) => `${sql} as ${quoteName(as)}`))
  const change = grows ? create : `drop view if exists ${view}; ${create}; ${await grants(transaction, view)}`
  if (await transaction.attempt(change, { lockTimeoutMs: VIEW_LOCK_TIMEOUT_MS, refusals: [LOCKED, DEPENDED_ON] })) {
    transaction.send('update tidemark.databases set shown = $3 where tenant_id = $1 and database_id = $2', transaction.tenant, database.id, shown)
  }
}

async function isView(transaction: Transaction, view: string): Promise<boolean> {
  return (await transaction.get("select from pg_class where oid = to_regclass($1) and relkind = 'v'", view)) !== undefined
}

/** A dropped view takes with it who may read it. */
async function grants(transaction: Transaction, view: string): Promise<string> {
  const granted = await transaction.all<{ grantee: string }>(
    `select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee
     from pg_class c, aclexplode(c.relacl) a where c.oid = to_regclass($1) and a.privilege_type = 'SELECT' and a.grantee <> c.relowner`, view,
  )
  return granted.map(({ grantee }) => `grant select on ${view} to ${grantee}`).join(';')
}

function viewSql(tenant: string, databaseId: number, view: string, members: readonly string[]): string {
  const own = ['r.key as _key', 'r.sequence as _sequence', 'to_timestamp(l.committed_at / 1000.0) as _committed_at', 'l.record as _record']
  return `create or replace view ${view} with (security_invoker = true) as select ${[...own, ...members].join(', ')}
    from tidemark.rows r join tidemark.log l on l.tenant_id = r.tenant_id and l.sequence = r.sequence
    where r.tenant_id = ${textLiteral(tenant)} and r.database_id = ${databaseId} and r.status = 0 and tidemark.is_tenant(${textLiteral(tenant)})`
}

/** No cast can fail on any record, also not on one that is landed after the view was made. */
function cast(name: string, kinds: readonly ColumnKind[]): { type: string; sql: string } {
  const member = textLiteral(name)
  switch (kinds.join()) {
    case 'integer':
      return { type: 'bigint', sql: `tidemark.as_bigint(l.record, ${member})` }
    case 'number':
    case 'integer,number':
      return { type: 'double precision', sql: `tidemark.as_double(l.record, ${member})` }
    case 'bigint':
    case 'bigint,integer':
    case 'bigint,number':
    case 'bigint,integer,number':
      return { type: 'numeric', sql: `tidemark.as_numeric(l.record, ${member})` }
    case 'boolean':
      return { type: 'boolean', sql: `tidemark.as_boolean(l.record, ${member})` }
    case 'json':
      return { type: 'jsonb', sql: `nullif(l.record -> ${member}, 'null'::jsonb)` }
    default:
      return { type: 'text', sql: `l.record ->> ${member}` }
  }
}

/** A backslash means itself in a plain string only while standard_conforming_strings is on. */
function textLiteral(text: string): string {
  return text.includes('\\') ? `E${quoteText(text.replaceAll('\\', '\\\\'))}` : quoteText(text)
}
