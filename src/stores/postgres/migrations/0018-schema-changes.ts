/** Drift between records and columns, and the running schema change. */
export const SCHEMA_CHANGES =
  "alter table tidemark.databases add column drift text not null default '[]', add column change text"
