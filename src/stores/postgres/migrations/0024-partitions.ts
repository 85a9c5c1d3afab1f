/** States of partitions, sealed, one row each. */
export const PARTITIONS = `
create table tidemark.partitions (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  sync_id integer not null,
  partition_key text collate "C" not null,
  state text not null,
  cycle_id bigint,
  primary key (tenant_id, sync_id, partition_key)
);

alter table tidemark.partitions enable row level security, force row level security;
create policy tenant on tidemark.partitions
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`
