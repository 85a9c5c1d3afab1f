export const INFLIGHT_GUARD = 'alter table tidemark.registry add column inflight_guard text'
