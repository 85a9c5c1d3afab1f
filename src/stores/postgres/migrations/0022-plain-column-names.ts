/** Names of the contract for the end reason of a cycle and for webhooks. Renaming a column does not rewrite its table. */
export const PLAIN_COLUMN_NAMES = `
alter table tidemark.cycles rename column stop_word to end_reason;
alter table tidemark.webhooks rename column position to sequence;
alter table tidemark.webhooks rename column streak to failure_streak;
alter table tidemark.webhooks rename column last_answer to last_response;
alter table tidemark.deliveries rename column dead to failed;
alter table tidemark.deliveries rename column last_answer to last_response;
alter table tidemark.requests rename column who to caller;
`
