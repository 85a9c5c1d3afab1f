export const KEPT = 'alter table tidemark_inbound add column payload text'
