/** Verifications of a database against its source: one row per run, the result as JSON. */
export const VERIFICATIONS = `
create table tidemark_verifications (
  tenant_id integer not null,
  verification_id integer not null,
  database_name text not null,
  actor text not null,
  holder text,
  held_until integer,
  started_at integer not null,
  ended_at integer,
  error_code text,
  report text,
  primary key (tenant_id, verification_id)
) strict, without rowid;

create index tidemark_verifications_by_database on tidemark_verifications (tenant_id, database_name, verification_id);
`
