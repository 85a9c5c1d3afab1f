/** Connections with sealed credentials, and the number of the last change to the connections of each tenant. */
export const CONNECTIONS = `
alter table tidemark_tenants add column connections_changed integer not null default 0;
create index tidemark_tenants_by_connections on tidemark_tenants (connections_changed) where connections_changed > 0;

create table tidemark_connections (
  tenant_id integer not null,
  name text not null,
  provider text not null,
  status text not null,
  status_reason text,
  settings text not null,
  scopes text not null,
  account text,
  credentials text not null,
  credentials_version integer not null,
  version integer not null,
  created_at integer not null,
  updated_at integer not null,
  primary key (tenant_id, name)
) strict, without rowid;
`
