/** How the rows of a database are deleted; see `kit/tables/delete-state.ts`. */
export const DELETE_MODE =
  'alter table tidemark.databases add column deletes text, add column purged_to text collate "C"'
