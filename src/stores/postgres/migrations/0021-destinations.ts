/** Destinations with their claims and status, and the identity of the store that their tokens carry. */
export const DESTINATIONS = `
alter table tidemark.tenants add column store_id text;

create table tidemark.destinations (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  name text collate "C" not null,
  kind text,
  location text,
  mode text,
  epoch bigint not null,
  holder text,
  held_until bigint,
  paused boolean not null default false,
  triggered_at bigint,
  resync text not null default '[]',
  started_at bigint,
  ended_at bigint,
  failures bigint not null default 0,
  retry_at bigint,
  error_code text,
  error_message text,
  databases text not null default '[]',
  primary key (tenant_id, name)
);

alter table tidemark.destinations enable row level security, force row level security;
create policy tenant on tidemark.destinations
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`
