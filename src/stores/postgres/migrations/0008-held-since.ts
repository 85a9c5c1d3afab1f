export const HELD_SINCE = 'alter table tidemark.registry add column held_since bigint'
