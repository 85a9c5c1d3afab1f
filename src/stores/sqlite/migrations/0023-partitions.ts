/** States of partitions, sealed, one row each. */
export const PARTITIONS = `
create table tidemark_partitions (
  tenant_id integer not null,
  sync_id integer not null,
  partition_key text not null,
  state text not null,
  cycle_id integer,
  primary key (tenant_id, sync_id, partition_key)
) strict, without rowid;
`
