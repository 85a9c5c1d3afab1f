/** The last cycle whose listing contradicted the row's version; see StoredRow. */
export const ROW_CONTESTED_BY = 'alter table tidemark_rows add column contested_by integer'
