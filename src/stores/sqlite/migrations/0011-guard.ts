export const GUARD = 'alter table tidemark_registry add column inflight_guard text'
