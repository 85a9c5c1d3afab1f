/** All syncs of a worker share one budget, so that no share stays unused. Slots given out earlier still count. */
export const SHARED_PACERS = `
alter table tidemark.pacers rename to pacers_of_syncs;
create table tidemark.pacers (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  connector_id text collate "C" not null,
  pacer text collate "C" not null,
  slot_at bigint not null,
  taken_at bigint not null,
  constraint shared_pacers_pkey primary key (tenant_id, connector_id, pacer)
);
alter table tidemark.pacers_of_syncs disable row level security;
alter table tidemark.registry disable row level security;
insert into tidemark.pacers (tenant_id, connector_id, pacer, slot_at, taken_at)
  select p.tenant_id, g.connector_id, p.pacer, max(p.slot_at), 0 from tidemark.pacers_of_syncs p join tidemark.registry g using (tenant_id, sync_id) group by 1, 2, 3;
alter table tidemark.registry enable row level security;
drop table tidemark.pacers_of_syncs;
alter table tidemark.pacers enable row level security, force row level security;
create policy tenant on tidemark.pacers
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`
