/** The keys of hashed and encrypted columns, and the column rules that the rows of each sync follow. */
export const COLUMN_RULES = `
create table tidemark.column_keys (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  key_id text collate "C" not null,
  number bigint not null,
  secret text not null,
  primary key (tenant_id, key_id)
);

create table tidemark.column_rules (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  connector_id text collate "C" not null,
  stream_id text collate "C" not null,
  database_name text collate "C" not null,
  applied text not null,
  applied_since bigint not null,
  pending text,
  pending_since bigint,
  pending_cycle bigint,
  used text not null default '[]',
  primary key (tenant_id, connector_id, stream_id, database_name)
);

alter table tidemark.column_keys enable row level security, force row level security;
create policy tenant on tidemark.column_keys
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));

alter table tidemark.column_rules enable row level security, force row level security;
create policy tenant on tidemark.column_rules
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`
