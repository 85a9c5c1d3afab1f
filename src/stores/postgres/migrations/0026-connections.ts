/** Connections with sealed credentials, and the number of the last change to the connections of each tenant. */
export const CONNECTIONS = `
alter table tidemark.tenants add column connections_changed bigint not null default 0;
create index tenants_by_connections on tidemark.tenants (connections_changed) where connections_changed > 0;

create table tidemark.connections (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  name text collate "C" not null,
  provider text not null,
  status text not null,
  status_reason text,
  settings text not null,
  scopes text not null,
  account text,
  credentials text not null,
  credentials_version bigint not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint not null,
  primary key (tenant_id, name)
);

alter table tidemark.connections enable row level security, force row level security;
create policy tenant on tidemark.connections
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
create policy listed on tidemark.connections for select using (current_setting('tidemark.lists_tenants', true) = 'yes');
`
