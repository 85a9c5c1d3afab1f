/**
 * Records are in a typed table per database, replaced versions in its history. The old tables keep other names until
 * `migrate-log.ts` has moved their content; while `old_log` exists, the move is not complete.
 */
export const TYPED_TABLES = `
drop view tidemark.changes;
alter table tidemark.commits rename to old_commits;
alter table tidemark.old_commits rename constraint commits_pkey to old_commits_pkey;
alter table tidemark.log rename to old_log;
alter table tidemark.rows rename to old_rows;
alter table tidemark.databases rename column view_name to table_name;
alter table tidemark.databases add column history_name text, add column layout text, add column moved_to bigint not null default 0;

-- The commit directory: one row per commit and database, whose entries have consecutive sequences.
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

-- One tombstone per deleted or unknown key: an older version does not revive it.
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

-- Databases in which an owner may have rows, so that its sweep reads no other table.
create table tidemark.holdings (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  owner_id integer not null,
  database_id integer not null,
  primary key (tenant_id, owner_id, database_id)
);
${['commits', 'deletions', 'tombstones', 'contests', 'holdings']
  .map(
    (name) => `
alter table tidemark.${name} enable row level security, force row level security;
create policy tenant on tidemark.${name}
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));`,
  )
  .join('')}
`

/** Drops the old tables once everything has been moved. */
export const DROP_OLD_TABLES = `
drop table tidemark.old_log, tidemark.old_rows, tidemark.old_commits;
drop function tidemark.is_tenant(text), tidemark.as_bigint(jsonb, text), tidemark.as_double(jsonb, text), tidemark.as_numeric(jsonb, text), tidemark.as_boolean(jsonb, text);
alter table tidemark.databases drop column shown, drop column moved_to, alter column layout set not null, alter column history_name set not null;
`
