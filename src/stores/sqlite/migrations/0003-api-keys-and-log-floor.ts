export const API_KEYS_AND_LOG_FLOOR = `
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
