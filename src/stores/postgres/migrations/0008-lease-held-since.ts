export const LEASE_HELD_SINCE = 'alter table tidemark.registry add column held_since bigint'
