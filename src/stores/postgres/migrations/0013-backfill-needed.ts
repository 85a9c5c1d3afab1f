/** How far a sync is complete, and whether a backfill was requested. */
export const BACKFILL_NEEDED = `
alter table tidemark.registry add column complete_since bigint, add column needed_at bigint, add column needed_reason text, add column needed_cycle bigint;
alter table tidemark.registry disable row level security;
alter table tidemark.cycles disable row level security;
update tidemark.registry g set complete_since = coalesce(
  (select c.started_at from tidemark.cycles c where c.tenant_id = g.tenant_id and c.cycle_id = g.committed_by), last_success_at
);
alter table tidemark.cycles enable row level security;
alter table tidemark.registry enable row level security;
`
