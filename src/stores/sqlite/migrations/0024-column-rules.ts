/** The keys of hashed and encrypted columns, and the column rules that the rows of each sync follow. */
export const COLUMN_RULES = `
create table tidemark_column_keys (
  tenant_id integer not null,
  key_id text not null,
  number integer not null,
  secret text not null,
  primary key (tenant_id, key_id)
) strict, without rowid;

create table tidemark_column_rules (
  tenant_id integer not null,
  connector_id text not null,
  stream_id text not null,
  database_name text not null,
  applied text not null,
  applied_since integer not null,
  pending text,
  pending_since integer,
  pending_cycle integer,
  used text not null default '[]',
  primary key (tenant_id, connector_id, stream_id, database_name)
) strict, without rowid;
`
