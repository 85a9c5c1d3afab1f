export const LEASE_HELD_SINCE = 'alter table tidemark_registry add column held_since integer'
