export const STOP_WORD = 'alter table tidemark_cycles add column stop_word text'
