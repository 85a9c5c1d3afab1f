/** How the rows of a database are deleted; see `kit/tables/delete-state.ts`. */
export const DELETE_MODE = `
alter table tidemark_databases add column deletes text;
alter table tidemark_databases add column purged_to text;
`
