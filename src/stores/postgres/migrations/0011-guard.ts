export const GUARD = 'alter table tidemark.registry add column inflight_guard text'
