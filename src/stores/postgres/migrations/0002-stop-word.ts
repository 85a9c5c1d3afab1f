export const STOP_WORD = 'alter table tidemark.cycles add column stop_word text'
