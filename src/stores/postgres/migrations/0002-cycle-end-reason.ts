export const CYCLE_END_REASON = 'alter table tidemark.cycles add column stop_word text'
