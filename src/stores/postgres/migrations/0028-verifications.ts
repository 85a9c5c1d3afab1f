/** Verifications of a database against its source: one row per run, the result as JSON. */
export const VERIFICATIONS = `
create table tidemark.verifications (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  verification_id bigint not null,
  database_name text collate "C" not null,
  actor text not null,
  holder text,
  held_until bigint,
  started_at bigint not null,
  ended_at bigint,
  error_code text,
  report text,
  primary key (tenant_id, verification_id)
);

create index verifications_by_database on tidemark.verifications (tenant_id, database_name, verification_id);

alter table tidemark.verifications enable row level security, force row level security;
create policy tenant on tidemark.verifications
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`
