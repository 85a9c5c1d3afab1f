/** Version of the tables below; a database with a higher one was written by a newer tidemark and is left alone. */
export const SCHEMA_VERSION = 17

/** Before it states were not sealed, and what is not sealed is never taken for a state. No release wrote such a store. */
export const SCHEMA_VERSION_MIN = 4

/** PostgreSQL before this has no views that read with the rights of whoever asks. */
export const SERVER_VERSION_MIN = 15

/**
 * Every key starts with the tenant: one without it would answer, by refusing a duplicate, whether another tenant has it.
 * Text that is a key is compared by its bytes, whatever the language of the database.
 */
const TABLES = `
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
  -- The columns its view has, with their types; behind \`columns\` while somebody's query or view holds it fast.
  shown text,
  primary key (tenant_id, database_id),
  unique (tenant_id, name)
);

-- Who may sweep: a sync, or a backfill and its delta together.
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

-- One per page that changed something: what its log entries have in common. Its time never comes twice, and names it.
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
  -- The record's own text, for the few that jsonb would not give back meaning the same.
  exact text,
  primary key (tenant_id, sequence)
);

-- The room left in every page lets a changed row stay beside its old self, without touching the index.
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

-- Other owners that list the same row; it dies only when nobody does.
create table tidemark.claims (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  database_id integer not null,
  key text collate "C" not null,
  owner_id integer not null,
  cycle_id bigint not null,
  primary key (tenant_id, database_id, key, owner_id)
);

-- What an unfinished replace cycle has seen unchanged, as ranges of sequences, a row per page.
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
 * The second wall (invariant 10): every statement names its tenant, and were one to forget, it would find nothing. A
 * setting that a transaction made for itself is '' afterwards, not null; both mean no tenant. FORCE, because the tables
 * mostly belong to the very role that uses them.
 */
const WALLS = `
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

const FOR_PEOPLE = `
-- The log with everything that belongs to an entry.
create view tidemark.changes with (security_invoker = true) as
  select l.tenant_id as tenant, l.sequence, d.name as "database", l.key,
    case l.action when 1 then 'created' when 2 then 'updated' else 'deleted' end as action,
    to_timestamp(l.committed_at / 1000.0) as committed_at,
    g.connector_id as worker, g.stream_id as sync, c.cycle_id as cycle, c.page, l.cursor, l.upstream_at, l.record
  from tidemark.log l
  join tidemark.commits c on c.tenant_id = l.tenant_id and c.committed_at = l.committed_at
  join tidemark.registry g on g.tenant_id = l.tenant_id and g.sync_id = c.sync_id
  join tidemark.databases d on d.tenant_id = l.tenant_id and d.database_id = l.database_id;

-- For views: a role behind the wall that has not said whose rows it wants is told so, instead of finding none.
create function tidemark.is_tenant(tenant text) returns boolean language plpgsql stable parallel safe as $$
begin
  if current_setting('tidemark.tenant', true) is distinct from tenant and row_security_active('tidemark.rows') then
    raise insufficient_privilege using message = format('These rows belong to the tenant %s.', tenant), hint = format('Run: set tidemark.tenant = %L', tenant);
  end if;
  return true;
end $$;

-- A member as a number; null when it is none or does not fit. jsonb writes numbers out, without exponents, so that short
-- ones without a point need no closer look.
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

const STOP_WORD = 'alter table tidemark.cycles add column stop_word text'

/** Whoever knows a key's id may look it up before it is known whose it is; all else of it stays behind the tenant's wall. */
const SERVED = `
-- How far the log was compacted.
alter table tidemark.tenants add column floor bigint not null default 0, add column floor_committed_at bigint not null default 0;

create table tidemark.cursor_secrets (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  created_at bigint not null,
  secret text not null,
  primary key (tenant_id, created_at)
);

create table tidemark.api_keys (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  key_id text collate "C" not null,
  name text not null,
  hash text not null,
  scopes text not null,
  rate_limit bigint not null,
  created_at bigint not null,
  ends_at bigint,
  primary key (tenant_id, key_id)
);
create index api_keys_by_id on tidemark.api_keys (key_id);

${['cursor_secrets', 'api_keys'].map((name) => `
alter table tidemark.${name} enable row level security, force row level security;
create policy tenant on tidemark.${name}
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));`).join('')}
create policy presented on tidemark.api_keys for select using (key_id = nullif(current_setting('tidemark.api_key', true), ''));
`

const CHAIN = `
alter table tidemark.tenants add column audit_head text not null default '', add column audit_count bigint not null default 0;
alter table tidemark.audit add column epoch bigint not null default 0, add column hash text not null default '';
create function tidemark.refuse() returns trigger language plpgsql as $$ begin raise exception 'the audit is only ever added to'; end $$;
create trigger audit_stays before update or delete on tidemark.audit for each row execute function tidemark.refuse();

-- Keys that seal a tenant's states, each wrapped by a key that is not in this database.
create table tidemark.data_keys (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  key_id text collate "C" not null,
  number integer not null,
  wrapped_by text not null,
  wrapped text not null,
  primary key (tenant_id, key_id)
);
alter table tidemark.data_keys enable row level security, force row level security;
create policy tenant on tidemark.data_keys
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`

const WEBHOOKS = `
create table tidemark.webhooks (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  webhook_id text collate "C" not null,
  url text not null,
  databases text,
  actions text,
  allow text not null,
  secrets text not null,
  created_at bigint not null,
  position bigint not null,
  floor bigint not null,
  streak integer not null default 0,
  retry_at bigint,
  succeeded_at bigint,
  failed_at bigint,
  last_status integer,
  last_answer text,
  disabled text,
  epoch bigint not null default 0,
  holder text,
  held_until bigint,
  primary key (tenant_id, webhook_id)
);

-- What could not be delivered yet, or was given up.
create table tidemark.deliveries (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  webhook_id text collate "C" not null,
  sequence bigint not null,
  message_id text not null,
  database_name text not null,
  key text not null,
  body text not null,
  attempts integer not null,
  first_at bigint,
  next_at bigint not null,
  dead boolean not null,
  last_status integer,
  last_answer text,
  primary key (tenant_id, webhook_id, sequence)
);

-- Messages that came in, so that none has an effect twice.
create table tidemark.inbound (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  source text collate "C" not null,
  message_id text collate "C" not null,
  at bigint not null,
  done boolean not null,
  primary key (tenant_id, source, message_id)
);
create index inbound_by_time on tidemark.inbound (tenant_id, source, at);
${['webhooks', 'deliveries', 'inbound'].map((name) => `
alter table tidemark.${name} enable row level security, force row level security;
create policy tenant on tidemark.${name}
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));`).join('')}
`

const CONSUMERS = `
create table tidemark.consumers (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  owner text collate "C" not null,
  name text collate "C" not null,
  resource text collate "C" not null,
  databases text,
  sequence bigint not null,
  cursor text,
  checkpoint_at bigint not null,
  reported_at bigint not null,
  metadata text,
  primary key (tenant_id, owner, name, resource)
);

-- How often each key asked in a window of time, of all processes. Not in the WAL: after a crash a window may begin anew.
create unlogged table tidemark.requests (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  time_window bigint not null,
  who text collate "C" not null,
  count bigint not null,
  primary key (tenant_id, time_window, who)
);
${['consumers', 'requests'].map((name) => `
alter table tidemark.${name} enable row level security, force row level security;
create policy tenant on tidemark.${name}
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));`).join('')}
`

/** Names alone, for whoever says that it lists them. */
const ERASURE = `
create policy listed on tidemark.tenants for select using (current_setting('tidemark.lists_tenants', true) = 'yes');

-- The audit goes only with the tenant: when its syncs and the keys of their states are gone.
create or replace function tidemark.refuse() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and not exists (select from tidemark.registry where tenant_id = old.tenant_id)
    and not exists (select from tidemark.data_keys where tenant_id = old.tenant_id) then return old; end if;
  raise exception 'the audit is only ever added to';
end $$;
`

const HELD_SINCE = 'alter table tidemark.registry add column held_since bigint'

const KEPT = 'alter table tidemark.inbound add column payload text'

/** A budget is one for all syncs of a worker, so that none has a share which nobody uses. What was given so far counts. */
const SHARED_PACERS = `
alter table tidemark.pacers rename to pacers_of_syncs;
create table tidemark.pacers (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  connector_id text collate "C" not null,
  pacer text collate "C" not null,
  slot_at bigint not null,
  taken_at bigint not null,
  constraint shared_pacers_pkey primary key (tenant_id, connector_id, pacer)
);
alter table tidemark.pacers_of_syncs disable row level security;
alter table tidemark.registry disable row level security;
insert into tidemark.pacers (tenant_id, connector_id, pacer, slot_at, taken_at)
  select p.tenant_id, g.connector_id, p.pacer, max(p.slot_at), 0 from tidemark.pacers_of_syncs p join tidemark.registry g using (tenant_id, sync_id) group by 1, 2, 3;
alter table tidemark.registry enable row level security;
drop table tidemark.pacers_of_syncs;
alter table tidemark.pacers enable row level security, force row level security;
create policy tenant on tidemark.pacers
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`

const GUARD = 'alter table tidemark.registry add column inflight_guard text'

/** Epochs begin behind all that an erased tenant has given out. */
const ERASED = 'alter table tidemark.tenants add column erased boolean not null default false, add column epoch bigint not null default 0'

/** How far a sync is complete, and whether a backfill has been ordered. */
const BACKFILL_NEEDED = `
alter table tidemark.registry add column complete_since bigint, add column needed_at bigint, add column needed_reason text, add column needed_cycle bigint;
alter table tidemark.registry disable row level security;
alter table tidemark.cycles disable row level security;
update tidemark.registry g set complete_since = coalesce(
  (select c.started_at from tidemark.cycles c where c.tenant_id = g.tenant_id and c.cycle_id = g.committed_by), last_success_at
);
alter table tidemark.cycles enable row level security;
alter table tidemark.registry enable row level security;
`

/** A pause that a source announced belongs to its account: every sync, process and command keeps it. */
const PAUSES = `
create table tidemark.pauses (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  connector_id text collate "C" not null,
  pacer text collate "C" not null,
  origin text collate "C" not null,
  until_at bigint not null,
  noted_at bigint not null,
  primary key (tenant_id, connector_id, pacer, origin)
);
alter table tidemark.pauses enable row level security, force row level security;
create policy tenant on tidemark.pauses
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`

/** The last cycle whose listing contradicted the row's version; see StoredRow. */
const CONTESTED = 'alter table tidemark.rows add column contested_by bigint'

/**
 * What binds a state outside its row: the audit log names the sync, also when its row is gone, and a cycle keeps the page it
 * has come to while it is unfinished. The audit log cannot be truncated either; TRUNCATE runs no trigger for rows.
 */
const BOUND = `
alter table tidemark.audit add column connector_id text collate "C", add column stream_id text collate "C";
alter table tidemark.cycles add column page bigint, add column has_state boolean;
alter table tidemark.audit disable row level security, disable trigger audit_stays;
alter table tidemark.cycles disable row level security;
alter table tidemark.registry disable row level security;
update tidemark.audit a set connector_id = g.connector_id, stream_id = g.stream_id from tidemark.registry g where g.tenant_id = a.tenant_id and g.sync_id = a.sync_id;
update tidemark.cycles c set page = g.inflight_page, has_state = g.inflight_state is not null
  from tidemark.registry g where g.tenant_id = c.tenant_id and g.inflight_cycle = c.cycle_id;
alter table tidemark.audit enable row level security, enable trigger audit_stays;
alter table tidemark.cycles enable row level security;
alter table tidemark.registry enable row level security;
create policy listed on tidemark.data_keys for select using (current_setting('tidemark.lists_tenants', true) = 'yes');
create index audit_by_name on tidemark.audit (tenant_id, connector_id, stream_id, audit_id);
create index cycles_open on tidemark.cycles (tenant_id, sync_id) where page is not null;
create function tidemark.refuse_truncate() returns trigger language plpgsql as $$ begin raise exception 'the audit is only ever added to'; end $$;
create trigger audit_remains before truncate on tidemark.audit for each statement execute function tidemark.refuse_truncate();
`

/**
 * Records live in a typed table per database, the versions they replaced in its history. What was there before is kept under
 * other names until `move-tables.ts` has moved it; as long as there is an `old_log`, the move is not over.
 */
const TYPED_TABLES = `
drop view tidemark.changes;
alter table tidemark.commits rename to old_commits;
alter table tidemark.old_commits rename constraint commits_pkey to old_commits_pkey;
alter table tidemark.log rename to old_log;
alter table tidemark.rows rename to old_rows;
alter table tidemark.databases rename column view_name to table_name;
alter table tidemark.databases add column history_name text, add column layout text, add column moved_to bigint not null default 0;

-- The directory of commits: one row per commit and database, whose entries have consecutive sequences.
create table tidemark.commits (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  first_sequence bigint not null,
  last_sequence bigint not null,
  database_id integer not null,
  sync_id integer not null,
  cycle_id bigint not null,
  page bigint not null,
  committed_at bigint not null,
  primary key (tenant_id, first_sequence)
);
create index commits_by_time on tidemark.commits (tenant_id, committed_at);

-- One per entry of the feed that deletes a row.
create table tidemark.deletions (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  sequence bigint not null,
  database_id integer not null,
  key text collate "C" not null,
  upstream_at timestamptz,
  primary key (tenant_id, sequence)
);
create index deletions_by_key on tidemark.deletions (tenant_id, database_id, key);

-- One per key that is gone, or was never there: an older version does not bring it back.
create table tidemark.tombstones (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  database_id integer not null,
  key text collate "C" not null,
  sequence bigint not null,
  status smallint not null,
  upstream_at timestamptz,
  writer_id integer not null,
  owner_id integer not null,
  primary key (tenant_id, database_id, key)
);

-- Rows whose version the listing of a cycle contradicted; nearly always empty.
create table tidemark.contests (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  database_id integer not null,
  key text collate "C" not null,
  cycle_id bigint not null,
  primary key (tenant_id, database_id, key)
);

-- Databases in which an owner may have rows, so that its sweep looks at no other table.
create table tidemark.holdings (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  owner_id integer not null,
  database_id integer not null,
  primary key (tenant_id, owner_id, database_id)
);
${['commits', 'deletions', 'tombstones', 'contests', 'holdings'].map((name) => `
alter table tidemark.${name} enable row level security, force row level security;
create policy tenant on tidemark.${name}
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));`).join('')}
`

/** What is left when everything is in its table. */
export const DROP_OLD_TABLES = `
drop table tidemark.old_log, tidemark.old_rows, tidemark.old_commits;
drop function tidemark.is_tenant(text), tidemark.as_bigint(jsonb, text), tidemark.as_double(jsonb, text), tidemark.as_numeric(jsonb, text), tidemark.as_boolean(jsonb, text);
alter table tidemark.databases drop column shown, drop column moved_to, alter column layout set not null, alter column history_name set not null;
`

/** What takes the tables from version n to n + 1; the first makes them. All that are needed run in one transaction. */
export const MIGRATIONS: readonly string[] = [
  TABLES + WALLS + FOR_PEOPLE, STOP_WORD, SERVED, CHAIN, WEBHOOKS, CONSUMERS, ERASURE, HELD_SINCE, KEPT, SHARED_PACERS, GUARD, ERASED,
  BACKFILL_NEEDED, PAUSES, CONTESTED, BOUND, TYPED_TABLES,
]
