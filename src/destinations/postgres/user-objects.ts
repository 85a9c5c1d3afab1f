import { isSyncError } from '../../contract/index.ts'
import { sqlStateOf } from '../../stores/postgres/errors.ts'
import type { PostgresClient } from './client.ts'

/** The objects that users added to a table, for the table that replaces it. */
export interface UserObjects {
  /** Builds indexes and constraints on the new table, under other names, while the old one is still read. */
  build(): Promise<void>
  /** Gives them their names, and adds what takes no time. Called when the new table has the name of the old one. */
  finish(): Promise<void>
}

/** A part of SQL that builds an object, and one that renames it. */
interface BuiltObject {
  readonly build: string
  readonly rename: string
}

/** Errors of an object whose column is gone, or has another type. */
const OUTDATED = ['42703', '42804', '42883', '42704']

/** Reads what users added to the table `from`. Both names are qualified and quoted. */
export async function readUserObjects(client: PostgresClient, from: string, to: string): Promise<UserObjects> {
  const built = [...(await readIndexes(client, from, to)), ...(await readConstraints(client, from, to))]
  const properties = await readProperties(client, from)
  const kept: BuiltObject[] = []
  return {
    async build() {
      for (const object of built) if (await runUnlessOutdated(client, object.build)) kept.push(object)
    },
    async finish() {
      for (const { rename } of kept) await client.run(rename)
      for (const statement of [...(await buildRevokes(client, from)), ...properties])
        await runUnlessOutdated(client, statement)
    },
  }
}

async function runUnlessOutdated(client: PostgresClient, statement: string): Promise<boolean> {
  await client.run('savepoint tidemark_object')
  try {
    await client.run(statement)
    await client.run('release savepoint tidemark_object')
    return true
  } catch (error) {
    if (!isSyncError(error) || !OUTDATED.includes(sqlStateOf(error.cause) ?? '')) throw error
    await client.run('rollback to savepoint tidemark_object')
    return false
  }
}

async function readIndexes(client: PostgresClient, from: string, to: string): Promise<BuiltObject[]> {
  const rows = await client.query<{ id: string; schema: string; name: string; head: string; definition: string }>(
    `select i.indexrelid::text as id, format('%I', n.nspname) as schema, format('%I', c.relname) as name,
       case when i.indisunique then 'create unique index' else 'create index' end as head,
       substr(pg_get_indexdef(i.indexrelid), 1 + length(
         format('CREATE %sINDEX %I ON %I.%I ', case when i.indisunique then 'UNIQUE ' end, c.relname, n.nspname, t.relname))) as definition
     from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
       join pg_namespace n on n.oid = t.relnamespace
     where i.indrelid = to_regclass($1) and i.indisvalid
       and not exists (select from pg_constraint o where o.conindid = i.indexrelid and o.conrelid = i.indrelid)
     order by c.relname`,
    [from],
  )
  return rows.map(({ id, schema, name, head, definition }) => ({
    build: `${head} _tidemark_${id} on ${to} ${definition}`,
    rename: `alter index ${schema}._tidemark_${id} rename to ${name}`,
  }))
}

async function readConstraints(client: PostgresClient, from: string, to: string): Promise<BuiltObject[]> {
  const rows = await client.query<{ id: string; name: string; definition: string }>(
    `select oid::text as id, format('%I', conname) as name, pg_get_constraintdef(oid) as definition
     from pg_constraint where conrelid = to_regclass($1) and contype in ('c', 'f', 'u', 'x') order by conname`,
    [from],
  )
  return rows.map(({ id, name, definition }) => ({
    build: `alter table ${to} add constraint _tidemark_${id} ${definition}`,
    rename: `alter table ${from} rename constraint _tidemark_${id} to ${name}`,
  }))
}

/** Grants that the default privileges of the schema gave to the new table. */
async function buildRevokes(client: PostgresClient, table: string): Promise<string[]> {
  const rows = await client.query<{ role: string }>(
    `select distinct coalesce(quote_ident(r.rolname), 'public') as role
     from pg_class c, aclexplode(c.relacl) g left join pg_roles r on r.oid = g.grantee
     where c.oid = to_regclass($1) and g.grantee <> c.relowner`,
    [table],
  )
  return rows.map(({ role }) => `revoke all on ${table} from ${role}`)
}

/** Grants, comments, row security and triggers, as statements for the name of the table. */
async function readProperties(client: PostgresClient, table: string): Promise<string[]> {
  const statements: string[] = []
  for (const query of PROPERTIES)
    statements.push(...(await client.query<{ statement: string }>(query, [table])).map(({ statement }) => statement))
  return statements
}

const PROPERTIES = [
  `select format('grant %s on %s to %s%s', g.privilege_type, $1::text, coalesce(quote_ident(r.rolname), 'public'),
     case when g.is_grantable then ' with grant option' end) as statement
   from pg_class c, aclexplode(c.relacl) g left join pg_roles r on r.oid = g.grantee
   where c.oid = to_regclass($1) and g.grantee <> c.relowner`,
  `select format('grant %s (%I) on %s to %s%s', g.privilege_type, a.attname, $1::text, coalesce(quote_ident(r.rolname), 'public'),
     case when g.is_grantable then ' with grant option' end) as statement
   from pg_attribute a, aclexplode(a.attacl) g left join pg_roles r on r.oid = g.grantee
   where a.attrelid = to_regclass($1) and not a.attisdropped`,
  `select format('comment on %s is %L', case when d.objsubid = 0 then format('table %s', $1::text)
     else format('column %s.%I', $1::text, a.attname) end, d.description) as statement
   from pg_description d left join pg_attribute a on a.attrelid = d.objoid and a.attnum = d.objsubid
   where d.classoid = 'pg_class'::regclass and d.objoid = to_regclass($1)`,
  `select format('comment on index %I.%I is %L', n.nspname, c.relname, d.description) as statement
   from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
     join pg_description d on d.classoid = 'pg_class'::regclass and d.objoid = c.oid
   where i.indrelid = to_regclass($1) and not i.indisprimary`,
  `select format('create policy %I on %s as %s for %s to %s%s%s', p.polname, $1::text,
     case when p.polpermissive then 'permissive' else 'restrictive' end,
     case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
     (select string_agg(coalesce(quote_ident(r.rolname), 'public'), ', ') from unnest(p.polroles) m (id) left join pg_roles r on r.oid = m.id),
     ' using (' || pg_get_expr(p.polqual, p.polrelid) || ')', ' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')') as statement
   from pg_policy p where p.polrelid = to_regclass($1)`,
  `select format('alter table %s %s row level security', $1::text, part.name) as statement
   from pg_class c cross join lateral (values ('enable', c.relrowsecurity), ('force', c.relforcerowsecurity)) part (name, is_on)
   where c.oid = to_regclass($1) and part.is_on`,
  `select pg_get_triggerdef(oid) as statement from pg_trigger where tgrelid = to_regclass($1) and not tgisinternal`,
]
