/** Drift between records and columns, and the running schema change. */
export const SCHEMA_CHANGES = `
alter table tidemark_databases add column drift text not null default '[]';
alter table tidemark_databases add column change text;
`
