export const INFLIGHT_GUARD = 'alter table tidemark_registry add column inflight_guard text'
