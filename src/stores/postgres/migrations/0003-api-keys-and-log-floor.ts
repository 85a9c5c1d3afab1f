/**
 * A caller that presents a key's id may look it up before its tenant is known; everything else of the key stays behind
 * the tenant's policy.
 */
export const API_KEYS_AND_LOG_FLOOR = `
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

${['cursor_secrets', 'api_keys']
  .map(
    (name) => `
alter table tidemark.${name} enable row level security, force row level security;
create policy tenant on tidemark.${name}
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));`,
  )
  .join('')}
create policy presented on tidemark.api_keys for select using (key_id = nullif(current_setting('tidemark.api_key', true), ''));
`
