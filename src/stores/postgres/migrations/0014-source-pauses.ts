/** A pause announced by a source applies to its account: to every sync, process and command. */
export const SOURCE_PAUSES = `
create table tidemark.pauses (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  connector_id text collate "C" not null,
  pacer text collate "C" not null,
  origin text collate "C" not null,
  until_at bigint not null,
  noted_at bigint not null,
  primary key (tenant_id, connector_id, pacer, origin)
);
alter table tidemark.pauses enable row level security, force row level security;
create policy tenant on tidemark.pauses
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`
