/**
 * The minimum days of history of a database with a setting of its own. While that is longer than the log,
 * `history_floor` is the sequence up to which its history was deleted, and `history_floor_at` the time of that commit.
 */
export const HISTORY_DAYS = `
alter table tidemark.databases add column history_days integer, add column history_floor bigint, add column history_floor_at bigint;
`
