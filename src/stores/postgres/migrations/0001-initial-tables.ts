/**
 * Every key starts with the tenant: without it, a duplicate error would reveal another tenant's key. Key text is
 * compared by its bytes, whatever the database's locale is.
 */
const CREATE_TABLES = `
create table tidemark.tenants (
  tenant_id text collate "C" primary key check (tenant_id <> ''),
  sequence bigint not null default 0,
  committed_at bigint not null default 0
);

create table tidemark.databases (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  database_id integer not null generated always as identity,
  name text collate "C" not null,
  view_name text not null,
  columns text not null default '[]',
  -- The columns of its view, with their types; behind \`columns\` while a query or view holds a lock.
  shown text,
  primary key (tenant_id, database_id),
  unique (tenant_id, name)
);

-- Owners that may sweep: a sync, or a backfill and its delta together.
create table tidemark.owners (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  owner_id integer not null generated always as identity,
  name text collate "C" not null,
  sweeps boolean not null default false,
  primary key (tenant_id, owner_id),
  unique (tenant_id, name)
);

-- The registry: one row per tenant, connector (worker) and stream (sync).
create table tidemark.registry (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  sync_id integer not null generated always as identity,
  connector_id text collate "C" not null,
  stream_id text collate "C" not null,
  version bigint not null default 0,
  committed text,
  committed_by bigint,
  inflight_cycle bigint,
  inflight_mode text,
  inflight_page bigint,
  inflight_state text,
  inflight_started_at bigint,
  inflight_scope text,
  inflight_tidemark text,
  inflight_start_sequence bigint,
  scope text,
  tidemark text,
  paused boolean not null default false,
  triggered_at bigint,
  failures integer not null default 0,
  error_code text,
  error_message text,
  error_at bigint,
  retry_at bigint,
  last_success_at bigint,
  epoch bigint not null default 0,
  holder text,
  held_until bigint,
  primary key (tenant_id, sync_id),
  unique (tenant_id, connector_id, stream_id)
);

create table tidemark.cycles (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  cycle_id bigint not null generated always as identity,
  sync_id integer not null,
  mode text not null,
  trigger text not null,
  started_at bigint not null,
  start_sequence bigint not null,
  ended_at bigint,
  stop_reason text,
  pages bigint not null default 0,
  created bigint not null default 0,
  updated bigint not null default 0,
  deleted bigint not null default 0,
  swept bigint not null default 0,
  unchanged bigint not null default 0,
  stale bigint not null default 0,
  missing bigint not null default 0,
  quarantined bigint not null default 0,
  retries bigint not null default 0,
  waited_ms bigint not null default 0,
  error_code text,
  error_message text,
  primary key (tenant_id, cycle_id)
);
create index cycles_by_sync on tidemark.cycles (tenant_id, sync_id, cycle_id);

-- One per page that changed something: the facts its log entries share. Its commit time is unique and identifies it.
create table tidemark.commits (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  committed_at bigint not null,
  sync_id integer not null,
  cycle_id bigint not null,
  page bigint not null,
  primary key (tenant_id, committed_at)
);

-- The log holds every record once; the current rows point into it.
create table tidemark.log (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  sequence bigint not null,
  committed_at bigint not null,
  previous bigint,
  database_id integer not null,
  action smallint not null,
  key text collate "C" not null,
  cursor text,
  upstream_at text collate "C",
  record jsonb,
  -- The original text of records that jsonb would not preserve.
  exact text,
  primary key (tenant_id, sequence)
);

-- Free space per page lets a changed row stay in its page, without touching the index.
create table tidemark.rows (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  sequence bigint not null,
  database_id integer not null,
  writer_id integer not null,
  owner_id integer not null,
  status smallint not null,
  key text collate "C" not null,
  hash text,
  upstream_at text collate "C",
  primary key (tenant_id, database_id, key)
) with (fillfactor = 90);

-- Other owners that list the same row; it is swept only when no owner lists it.
create table tidemark.claims (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  database_id integer not null,
  key text collate "C" not null,
  owner_id integer not null,
  cycle_id bigint not null,
  primary key (tenant_id, database_id, key, owner_id)
);

-- Rows that an unfinished replace cycle saw unchanged, as ranges of sequences, one row per page.
create table tidemark.seen (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  cycle_id bigint not null,
  page bigint not null,
  ranges int8multirange not null,
  primary key (tenant_id, cycle_id, page)
);

create table tidemark.audit (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  audit_id bigint not null generated always as identity,
  sync_id integer not null,
  version bigint not null,
  at bigint not null,
  actor text not null,
  action text not null,
  reason text not null,
  cycle_id bigint,
  state text,
  primary key (tenant_id, audit_id)
);
create index audit_by_sync on tidemark.audit (tenant_id, sync_id, audit_id);

create table tidemark.quarantine (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  quarantine_id bigint not null generated always as identity,
  sync_id integer not null,
  database_name text collate "C" not null,
  identity text collate "C" not null,
  key text collate "C",
  code text not null,
  message text not null,
  text text not null,
  cycle_id bigint not null,
  page bigint not null,
  at bigint not null,
  primary key (tenant_id, quarantine_id),
  unique (tenant_id, sync_id, database_name, identity)
);

create table tidemark.pacers (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  sync_id integer not null,
  pacer text collate "C" not null,
  slot_at bigint not null,
  primary key (tenant_id, sync_id, pacer)
);
`

/**
 * Invariant 10, second layer: every statement filters by its tenant, and one that does not finds no rows. A setting
 * that a transaction made for itself is '' afterwards, not null; both mean no tenant. FORCE, because the tables usually
 * belong to the role that uses them.
 */
const ROW_LEVEL_SECURITY = `
do $$
declare name text;
begin
  for name in select tablename from pg_catalog.pg_tables where schemaname = 'tidemark' loop
    execute format('alter table tidemark.%I enable row level security, force row level security', name);
    execute format($policy$
      create policy tenant on tidemark.%I
        using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
        with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
    $policy$, name);
  end loop;
end $$;
`

const VIEWS_AND_FUNCTIONS = `
-- The log with all facts of an entry.
create view tidemark.changes with (security_invoker = true) as
  select l.tenant_id as tenant, l.sequence, d.name as "database", l.key,
    case l.action when 1 then 'created' when 2 then 'updated' else 'deleted' end as action,
    to_timestamp(l.committed_at / 1000.0) as committed_at,
    g.connector_id as worker, g.stream_id as sync, c.cycle_id as cycle, c.page, l.cursor, l.upstream_at, l.record
  from tidemark.log l
  join tidemark.commits c on c.tenant_id = l.tenant_id and c.committed_at = l.committed_at
  join tidemark.registry g on g.tenant_id = l.tenant_id and g.sync_id = c.sync_id
  join tidemark.databases d on d.tenant_id = l.tenant_id and d.database_id = l.database_id;

-- For views: a role under row-level security that has not set its tenant gets an error, instead of no rows.
create function tidemark.is_tenant(tenant text) returns boolean language plpgsql stable parallel safe as $$
begin
  if current_setting('tidemark.tenant', true) is distinct from tenant and row_security_active('tidemark.rows') then
    raise insufficient_privilege using message = format('These rows belong to the tenant %s.', tenant), hint = format('Run: set tidemark.tenant = %L', tenant);
  end if;
  return true;
end $$;

-- A field as a number; null when it is not a number or does not fit. jsonb writes numbers without exponents, so short
-- ones without a point need no further check.
create function tidemark.as_bigint(record jsonb, member text) returns bigint language sql immutable parallel safe as $$
  select case when jsonb_typeof($1 -> $2) = 'number' then
    case when length($1 ->> $2) < 19 and strpos($1 ->> $2, '.') = 0 then ($1 ->> $2)::bigint
      when ($1 ->> $2)::numeric between -9223372036854775808 and 9223372036854775807 and ($1 ->> $2)::numeric % 1 = 0 then ($1 ->> $2)::numeric::bigint end end
$$;
create function tidemark.as_double(record jsonb, member text) returns double precision language sql immutable parallel safe as $$
  select case when jsonb_typeof($1 -> $2) = 'number' then
    case when length($1 ->> $2) < 300 then ($1 ->> $2)::double precision
      when abs(($1 ->> $2)::numeric) between 5e-324 and 1.7976931348623157e308 then ($1 ->> $2)::double precision end end
$$;
create function tidemark.as_numeric(record jsonb, member text) returns numeric language sql immutable parallel safe as $$
  select case when jsonb_typeof($1 -> $2) = 'number' then ($1 ->> $2)::numeric end
$$;
create function tidemark.as_boolean(record jsonb, member text) returns boolean language sql immutable parallel safe as $$
  select case $1 ->> $2 when 'true' then true when 'false' then false end
$$;
`

export const INITIAL_TABLES = CREATE_TABLES + ROW_LEVEL_SECURITY + VIEWS_AND_FUNCTIONS
