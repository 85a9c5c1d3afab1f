/** A pause announced by a source applies to its account: to every sync, process and command. */
export const SOURCE_PAUSES = `
create table tidemark_pauses (
  tenant_id integer not null,
  connector_id text not null,
  pacer text not null,
  origin text not null,
  until_at integer not null,
  noted_at integer not null,
  primary key (tenant_id, connector_id, pacer, origin)
) strict, without rowid;
`
