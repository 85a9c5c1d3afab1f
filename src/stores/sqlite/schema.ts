/** Version of the tables below; a file with a higher one was written by a newer tidemark and is left alone. */
export const SCHEMA_VERSION = 17

/** Before it states were not sealed, and what is not sealed is never taken for a state. No release wrote such a store. */
export const SCHEMA_VERSION_MIN = 4

/** Up to version 16 the log had a `position`: tenant × 2^40 + sequence. */
export const POSITIONS_PER_TENANT = 2 ** 40

const TABLES = `
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

-- Who may sweep: a sync, or a backfill and its delta together.
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

-- One per page that changed something: what its log entries have in common.
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

-- Other owners that list the same row; it dies only when nobody does.
create table tidemark_claims (
  tenant_id integer not null,
  database_id integer not null,
  key text not null,
  owner_id integer not null,
  cycle_id integer not null,
  primary key (tenant_id, database_id, key, owner_id)
) strict, without rowid;

-- What an unfinished replace cycle has seen unchanged, as ranges of sequences, a row per page.
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

-- For people: the log with everything that belongs to an entry.
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

const STOP_WORD = 'alter table tidemark_cycles add column stop_word text'

const SERVED = `
-- How far the log was compacted.
alter table tidemark_tenants add column floor integer not null default 0;
alter table tidemark_tenants add column floor_committed_at integer not null default 0;

create table tidemark_cursor_secrets (
  tenant_id integer not null,
  created_at integer not null,
  secret text not null,
  primary key (tenant_id, created_at)
) strict, without rowid;

create table tidemark_api_keys (
  key_id text primary key,
  tenant_id integer not null,
  name text not null,
  hash text not null,
  scopes text not null,
  rate_limit integer not null,
  created_at integer not null,
  ends_at integer
) strict, without rowid;
`

const CHAIN = `
alter table tidemark_tenants add column audit_head text not null default '';
alter table tidemark_tenants add column audit_count integer not null default 0;
alter table tidemark_audit add column epoch integer not null default 0;
alter table tidemark_audit add column hash text not null default '';
create index tidemark_audit_by_tenant on tidemark_audit (tenant_id, audit_id);
create trigger tidemark_audit_stays before update on tidemark_audit begin select raise(abort, 'the audit is only ever added to'); end;
create trigger tidemark_audit_remains before delete on tidemark_audit begin select raise(abort, 'the audit is only ever added to'); end;

-- Keys that seal a tenant's states, each wrapped by a key that is not in this file.
create table tidemark_data_keys (
  tenant_id integer not null,
  key_id text not null,
  number integer not null,
  wrapped_by text not null,
  wrapped text not null,
  primary key (tenant_id, key_id)
) strict, without rowid;
`

const WEBHOOKS = `
create table tidemark_webhooks (
  tenant_id integer not null,
  webhook_id text not null,
  url text not null,
  databases text,
  actions text,
  allow text not null,
  secrets text not null,
  created_at integer not null,
  position integer not null,
  floor integer not null,
  streak integer not null default 0,
  retry_at integer,
  succeeded_at integer,
  failed_at integer,
  last_status integer,
  last_answer text,
  disabled text,
  epoch integer not null default 0,
  holder text,
  held_until integer,
  primary key (tenant_id, webhook_id)
) strict, without rowid;

-- What could not be delivered yet, or was given up.
create table tidemark_deliveries (
  tenant_id integer not null,
  webhook_id text not null,
  sequence integer not null,
  message_id text not null,
  database_name text not null,
  key text not null,
  body text not null,
  attempts integer not null,
  first_at integer,
  next_at integer not null,
  dead integer not null,
  last_status integer,
  last_answer text,
  primary key (tenant_id, webhook_id, sequence)
) strict, without rowid;

-- Messages that came in, so that none has an effect twice.
create table tidemark_inbound (
  tenant_id integer not null,
  source text not null,
  message_id text not null,
  at integer not null,
  done integer not null,
  primary key (tenant_id, source, message_id)
) strict, without rowid;
create index tidemark_inbound_by_time on tidemark_inbound (tenant_id, source, at);
`

const CONSUMERS = `
create table tidemark_consumers (
  tenant_id integer not null,
  owner text not null,
  name text not null,
  resource text not null,
  databases text,
  sequence integer not null,
  cursor text,
  checkpoint_at integer not null,
  reported_at integer not null,
  metadata text,
  primary key (tenant_id, owner, name, resource)
) strict, without rowid;

-- How often each key asked in a window of time.
create table tidemark_requests (
  tenant_id integer not null,
  window integer not null,
  who text not null,
  count integer not null,
  primary key (tenant_id, window, who)
) strict, without rowid;
`

const ERASURE = `
-- The audit goes only with the tenant: when its syncs and the keys of their states are gone.
drop trigger tidemark_audit_remains;
create trigger tidemark_audit_remains before delete on tidemark_audit
when exists (select 1 from tidemark_registry where tenant_id = old.tenant_id) or exists (select 1 from tidemark_data_keys where tenant_id = old.tenant_id)
begin select raise(abort, 'the audit is only ever added to'); end;
`

const HELD_SINCE = 'alter table tidemark_registry add column held_since integer'

const KEPT = 'alter table tidemark_inbound add column payload text'

/** A budget is one for all syncs of a worker, so that none has a share which nobody uses. What was given so far counts. */
const SHARED_PACERS = `
alter table tidemark_pacers rename to tidemark_pacers_of_syncs;
create table tidemark_pacers (
  tenant_id integer not null,
  connector_id text not null,
  pacer text not null,
  slot_at integer not null,
  taken_at integer not null,
  primary key (tenant_id, connector_id, pacer)
) strict, without rowid;
insert into tidemark_pacers (tenant_id, connector_id, pacer, slot_at, taken_at)
  select p.tenant_id, g.connector_id, p.pacer, max(p.slot_at), 0 from tidemark_pacers_of_syncs p join tidemark_registry g on g.sync_id = p.sync_id group by 1, 2, 3;
drop table tidemark_pacers_of_syncs;
`

const GUARD = 'alter table tidemark_registry add column inflight_guard text'

/** Epochs begin behind all that an erased tenant has given out. */
const ERASED = `
alter table tidemark_tenants add column erased integer not null default 0;
alter table tidemark_tenants add column epoch integer not null default 0;
`

/** How far a sync is complete, and whether a backfill has been ordered. */
const BACKFILL_NEEDED = `
alter table tidemark_registry add column complete_since integer;
alter table tidemark_registry add column needed_at integer;
alter table tidemark_registry add column needed_reason text;
alter table tidemark_registry add column needed_cycle integer;
update tidemark_registry set complete_since = coalesce(
  (select c.started_at from tidemark_cycles c where c.tenant_id = tidemark_registry.tenant_id and c.cycle_id = tidemark_registry.committed_by), last_success_at
);
`

/** A pause that a source announced belongs to its account: every sync, process and command keeps it. */
const PAUSES = `
create table tidemark_pauses (
  tenant_id integer not null,
  connector_id text not null,
  pacer text not null,
  origin text not null,
  until_at integer not null,
  noted_at integer not null,
  primary key (tenant_id, connector_id, pacer, origin)
) strict, without rowid;
`

/** The last cycle whose listing contradicted the row's version; see StoredRow. */
const CONTESTED = 'alter table tidemark_rows add column contested_by integer'

/**
 * What binds a state outside its row: the audit log names the sync, also when its row is gone, and a cycle keeps the page it
 * has come to while it is unfinished. An entry of the audit log cannot be replaced by INSERT OR REPLACE either, which runs no
 * trigger on DELETE.
 */
const BOUND = `
alter table tidemark_audit add column connector_id text;
alter table tidemark_audit add column stream_id text;
drop trigger tidemark_audit_stays;
update tidemark_audit set (connector_id, stream_id) = (select connector_id, stream_id from tidemark_registry g where g.sync_id = tidemark_audit.sync_id);
create trigger tidemark_audit_stays before update on tidemark_audit begin select raise(abort, 'the audit is only ever added to'); end;
create trigger tidemark_audit_adds before insert on tidemark_audit when exists (select 1 from tidemark_audit where audit_id = new.audit_id)
begin select raise(abort, 'the audit is only ever added to'); end;
create index tidemark_audit_by_name on tidemark_audit (tenant_id, connector_id, stream_id, audit_id);
alter table tidemark_cycles add column page integer;
alter table tidemark_cycles add column has_state integer;
update tidemark_cycles set (page, has_state) = (select inflight_page, inflight_state is not null from tidemark_registry g where g.inflight_cycle = cycle_id);
create index tidemark_cycles_open on tidemark_cycles (sync_id) where page is not null;
`

/**
 * From here on a database is a table of its own with typed columns, and a history beside it; the shared log is gone. What
 * it holds is moved by `migrate-log.ts`, database by database: until then it waits under the names below.
 */
const TYPED_TABLES = `
drop view tidemark_changes;
alter table tidemark_databases rename column view_name to table_name;
alter table tidemark_databases add column layout text not null default '[]';
alter table tidemark_commits rename to tidemark_old_commits;

-- Which database a range of sequences is in, and what its entries have in common: one row per commit and database.
create table tidemark_commits (
  tenant_id integer not null,
  first_sequence integer not null,
  last_sequence integer not null,
  database_id integer not null,
  sync_id integer not null,
  cycle_id integer not null,
  page integer not null,
  committed_at integer not null,
  primary key (tenant_id, first_sequence)
) strict, without rowid;
create index tidemark_commits_by_time on tidemark_commits (tenant_id, committed_at);

-- The deletions of the feed.
create table tidemark_deletions (
  tenant_id integer not null,
  sequence integer not null,
  database_id integer not null,
  key text not null,
  upstream_at text,
  primary key (tenant_id, sequence)
) strict, without rowid;
create index tidemark_deletions_by_key on tidemark_deletions (tenant_id, database_id, key);

-- Keys that are gone, so that what is older than their deletion does not bring them back.
create table tidemark_tombstones (
  tenant_id integer not null,
  database_id integer not null,
  key text not null,
  sequence integer not null,
  status integer not null,
  upstream_at text,
  writer_id integer not null,
  owner_id integer not null,
  primary key (tenant_id, database_id, key)
) strict, without rowid;

-- Versions that a listing contradicted, and the last cycle that did; see StoredRow.
create table tidemark_contests (
  tenant_id integer not null,
  database_id integer not null,
  key text not null,
  cycle_id integer not null,
  primary key (tenant_id, database_id, key)
) strict, without rowid;

-- Databases whose entries are still in the old log, and up to where they have been moved.
create table tidemark_migration (
  database_id integer primary key,
  tenant_id integer not null,
  moved integer not null default 0
) strict;
insert into tidemark_migration (database_id, tenant_id) select database_id, tenant_id from tidemark_databases;
insert into tidemark_commits (tenant_id, first_sequence, last_sequence, database_id, sync_id, cycle_id, page, committed_at)
  select c.tenant_id, min(position) % ${POSITIONS_PER_TENANT}, max(position) % ${POSITIONS_PER_TENANT}, r.database_id, c.sync_id, c.cycle_id, c.page, c.committed_at
  from (
    select position, commit_id, database_id, sum(is_first) over (order by position) as range from (
      select position, commit_id, database_id,
        (lag(commit_id) over (order by position) is not commit_id or lag(database_id) over (order by position) is not database_id) as is_first
      from tidemark_log
    )
  ) r join tidemark_old_commits c on c.commit_id = r.commit_id group by r.range;
`

/** What takes the tables from version n to n + 1; the first makes them. All that are needed run in one transaction. */
export const MIGRATIONS: readonly string[] = [TABLES, STOP_WORD, SERVED, CHAIN, WEBHOOKS, CONSUMERS, ERASURE, HELD_SINCE, KEPT, SHARED_PACERS, GUARD, ERASED, BACKFILL_NEEDED, PAUSES, CONTESTED, BOUND, TYPED_TABLES]
