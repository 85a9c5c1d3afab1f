export const CYCLE_END_REASON = 'alter table tidemark_cycles add column stop_word text'
