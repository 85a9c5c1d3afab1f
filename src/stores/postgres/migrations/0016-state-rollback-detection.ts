/**
 * Evidence of a state outside its row: the audit log names the sync, even when its row is gone, and an unfinished cycle
 * keeps its current page. The audit log cannot be truncated either; TRUNCATE fires no row triggers.
 */
export const STATE_ROLLBACK_DETECTION = `
alter table tidemark.audit add column connector_id text collate "C", add column stream_id text collate "C";
alter table tidemark.cycles add column page bigint, add column has_state boolean;
alter table tidemark.audit disable row level security, disable trigger audit_stays;
alter table tidemark.cycles disable row level security;
alter table tidemark.registry disable row level security;
update tidemark.audit a set connector_id = g.connector_id, stream_id = g.stream_id from tidemark.registry g where g.tenant_id = a.tenant_id and g.sync_id = a.sync_id;
update tidemark.cycles c set page = g.inflight_page, has_state = g.inflight_state is not null
  from tidemark.registry g where g.tenant_id = c.tenant_id and g.inflight_cycle = c.cycle_id;
alter table tidemark.audit enable row level security, enable trigger audit_stays;
alter table tidemark.cycles enable row level security;
alter table tidemark.registry enable row level security;
create policy listed on tidemark.data_keys for select using (current_setting('tidemark.lists_tenants', true) = 'yes');
create index audit_by_name on tidemark.audit (tenant_id, connector_id, stream_id, audit_id);
create index cycles_open on tidemark.cycles (tenant_id, sync_id) where page is not null;
create function tidemark.refuse_truncate() returns trigger language plpgsql as $$ begin raise exception 'the audit is only ever added to'; end $$;
create trigger audit_remains before truncate on tidemark.audit for each statement execute function tidemark.refuse_truncate();
`
