import { POSITIONS_PER_TENANT } from './0001-initial-tables.ts'

/**
 * From here on every database has its own table with typed columns, and a history table; the shared log is dropped.
 * `migrate-log.ts` moves its content, database by database: until then the old tables keep the names below.
 */
export const TYPED_TABLES = `
drop view tidemark_changes;
alter table tidemark_databases rename column view_name to table_name;
alter table tidemark_databases add column layout text not null default '[]';
alter table tidemark_commits rename to tidemark_old_commits;

-- The commit directory: the database of a range of sequences, and the facts its entries share. One row per commit and database.
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

-- Tombstones of deleted keys: an older version does not revive them.
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
