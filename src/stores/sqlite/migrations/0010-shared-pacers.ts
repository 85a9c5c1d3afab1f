/** All syncs of a worker share one budget, so that no share stays unused. Slots given out earlier still count. */
export const SHARED_PACERS = `
alter table tidemark_pacers rename to tidemark_pacers_of_syncs;
create table tidemark_pacers (
  tenant_id integer not null,
  connector_id text not null,
  pacer text not null,
  slot_at integer not null,
  taken_at integer not null,
  primary key (tenant_id, connector_id, pacer)
) strict, without rowid;
insert into tidemark_pacers (tenant_id, connector_id, pacer, slot_at, taken_at)
  select p.tenant_id, g.connector_id, p.pacer, max(p.slot_at), 0 from tidemark_pacers_of_syncs p join tidemark_registry g on g.sync_id = p.sync_id group by 1, 2, 3;
drop table tidemark_pacers_of_syncs;
`
