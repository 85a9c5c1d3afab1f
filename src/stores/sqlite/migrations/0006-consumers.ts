export const CONSUMERS = `
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

-- Requests of each key per time window.
create table tidemark_requests (
  tenant_id integer not null,
  window integer not null,
  who text not null,
  count integer not null,
  primary key (tenant_id, window, who)
) strict, without rowid;
`
