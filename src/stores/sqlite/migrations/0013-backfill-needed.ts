/** How far a sync is complete, and whether a backfill was requested. */
export const BACKFILL_NEEDED = `
alter table tidemark_registry add column complete_since integer;
alter table tidemark_registry add column needed_at integer;
alter table tidemark_registry add column needed_reason text;
alter table tidemark_registry add column needed_cycle integer;
update tidemark_registry set complete_since = coalesce(
  (select c.started_at from tidemark_cycles c where c.tenant_id = tidemark_registry.tenant_id and c.cycle_id = tidemark_registry.committed_by), last_success_at
);
`
