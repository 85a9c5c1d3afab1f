/** Destinations with their claims and status, and the identity of the store that their tokens carry. */
export const DESTINATIONS = `
alter table tidemark_tenants add column store_id text;

create table tidemark_destinations (
  tenant_id integer not null,
  name text not null,
  kind text,
  location text,
  mode text,
  epoch integer not null,
  holder text,
  held_until integer,
  paused integer not null default false,
  triggered_at integer,
  resync text not null default '[]',
  started_at integer,
  ended_at integer,
  failures integer not null default 0,
  retry_at integer,
  error_code text,
  error_message text,
  databases text not null default '[]',
  primary key (tenant_id, name)
) strict, without rowid;
`
