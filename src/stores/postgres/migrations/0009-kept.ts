export const KEPT = 'alter table tidemark.inbound add column payload text'
