/** Up to version 16 the log had a `position`: tenant × 2^40 + sequence. */
export const POSITIONS_PER_TENANT = 2 ** 40

export const INITIAL_TABLES = `
create table tidemark_tenants (
  tenant_id integer primary key,
  name text not null unique check (name <> ''),
  sequence integer not null default 0,
  committed_at integer not null default 0
) strict;

create table tidemark_databases (
  database_id integer primary key,
  tenant_id integer not null,
  name text not null,
  view_name text not null,
  columns text not null default '[]',
  unique (tenant_id, name)
) strict;

-- Owners that may sweep: a sync, or a backfill and its delta together.
create table tidemark_owners (
  owner_id integer primary key,
  tenant_id integer not null,
  name text not null,
  sweeps integer not null default 0,
  unique (tenant_id, name)
) strict;

-- The registry: one row per tenant, connector (worker) and stream (sync).
create table tidemark_registry (
  sync_id integer primary key,
  tenant_id integer not null,
  connector_id text not null,
  stream_id text not null,
  version integer not null default 0,
  committed text,
  committed_by integer,
  inflight_cycle integer,
  inflight_mode text,
  inflight_page integer,
  inflight_state text,
  inflight_started_at integer,
  inflight_scope text,
  inflight_tidemark text,
  inflight_start_sequence integer,
  scope text,
  tidemark text,
  paused integer not null default 0,
  triggered_at integer,
  failures integer not null default 0,
  error_code text,
  error_message text,
  error_at integer,
  retry_at integer,
  last_success_at integer,
  epoch integer not null default 0,
  holder text,
  held_until integer,
  unique (tenant_id, connector_id, stream_id)
) strict;

create table tidemark_cycles (
  cycle_id integer primary key,
  tenant_id integer not null,
  sync_id integer not null,
  mode text not null,
  trigger text not null,
  started_at integer not null,
  start_sequence integer not null,
  ended_at integer,
  stop_reason text,
  pages integer not null default 0,
  created integer not null default 0,
  updated integer not null default 0,
  deleted integer not null default 0,
  swept integer not null default 0,
  unchanged integer not null default 0,
  stale integer not null default 0,
  missing integer not null default 0,
  quarantined integer not null default 0,
  retries integer not null default 0,
  waited_ms integer not null default 0,
  error_code text,
  error_message text
) strict;
create index tidemark_cycles_by_sync on tidemark_cycles (tenant_id, sync_id, cycle_id);

-- One per page that changed something: the facts its log entries share.
create table tidemark_commits (
  commit_id integer primary key,
  tenant_id integer not null,
  sync_id integer not null,
  cycle_id integer not null,
  page integer not null,
  committed_at integer not null
) strict;

-- The log holds every record once; the current rows point into it.
create table tidemark_log (
  position integer primary key,
  commit_id integer not null,
  database_id integer not null,
  key text not null,
  action integer not null,
  previous integer,
  cursor text,
  upstream_at text,
  record text
) strict;

create table tidemark_rows (
  tenant_id integer not null,
  database_id integer not null,
  key text not null,
  position integer not null,
  status integer not null,
  hash text,
  upstream_at text,
  writer_id integer not null,
  owner_id integer not null,
  primary key (tenant_id, database_id, key)
) strict, without rowid;

-- Other owners that list the same row; it is swept only when no owner lists it.
create table tidemark_claims (
  tenant_id integer not null,
  database_id integer not null,
  key text not null,
  owner_id integer not null,
  cycle_id integer not null,
  primary key (tenant_id, database_id, key, owner_id)
) strict, without rowid;

-- Rows that an unfinished replace cycle saw unchanged, as ranges of sequences, one row per page.
create table tidemark_seen (
  tenant_id integer not null,
  cycle_id integer not null,
  page integer not null,
  ranges text not null,
  primary key (tenant_id, cycle_id, page)
) strict, without rowid;

create table tidemark_audit (
  audit_id integer primary key,
  tenant_id integer not null,
  sync_id integer not null,
  version integer not null,
  at integer not null,
  actor text not null,
  action text not null,
  reason text not null,
  cycle_id integer,
  state text
) strict;
create index tidemark_audit_by_sync on tidemark_audit (tenant_id, sync_id, audit_id);

create table tidemark_quarantine (
  quarantine_id integer primary key,
  tenant_id integer not null,
  sync_id integer not null,
  database_name text not null,
  identity text not null,
  key text,
  code text not null,
  message text not null,
  text text not null,
  cycle_id integer not null,
  page integer not null,
  at integer not null,
  unique (tenant_id, sync_id, database_name, identity)
) strict;

create table tidemark_pacers (
  tenant_id integer not null,
  sync_id integer not null,
  pacer text not null,
  slot_at integer not null,
  primary key (tenant_id, sync_id, pacer)
) strict, without rowid;

-- For users: the log with all facts of an entry.
create view tidemark_changes as
  select t.name as tenant, l.position % ${POSITIONS_PER_TENANT} as sequence, d.name as "database", l.key,
    case l.action when 1 then 'created' when 2 then 'updated' else 'deleted' end as action,
    strftime('%Y-%m-%dT%H:%M:%fZ', c.committed_at / 1000.0, 'unixepoch') as committed_at,
    g.connector_id as worker, g.stream_id as sync, c.cycle_id as cycle, c.page, l.cursor, l.upstream_at, l.record
  from tidemark_log l
  join tidemark_commits c on c.commit_id = l.commit_id
  join tidemark_registry g on g.sync_id = c.sync_id
  join tidemark_databases d on d.database_id = l.database_id
  join tidemark_tenants t on t.tenant_id = c.tenant_id;
`
