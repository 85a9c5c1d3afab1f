/** What the tables do not show of the records, and the change of their columns that is under way. */
export const SCHEMA_CHANGES = "alter table tidemark.databases add column drift text not null default '[]', add column change text"
