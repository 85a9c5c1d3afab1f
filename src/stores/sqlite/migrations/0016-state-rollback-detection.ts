/**
 * Evidence of a state outside its row: the audit log names the sync, even when its row is gone, and an unfinished cycle
 * keeps its current page. An entry of the audit log cannot be replaced by INSERT OR REPLACE either, which fires no
 * DELETE trigger.
 */
export const STATE_ROLLBACK_DETECTION = `
alter table tidemark_audit add column connector_id text;
alter table tidemark_audit add column stream_id text;
drop trigger tidemark_audit_stays;
update tidemark_audit set (connector_id, stream_id) = (select connector_id, stream_id from tidemark_registry g where g.sync_id = tidemark_audit.sync_id);
create trigger tidemark_audit_stays before update on tidemark_audit begin select raise(abort, 'the audit is only ever added to'); end;
create trigger tidemark_audit_adds before insert on tidemark_audit when exists (select 1 from tidemark_audit where audit_id = new.audit_id)
begin select raise(abort, 'the audit is only ever added to'); end;
create index tidemark_audit_by_name on tidemark_audit (tenant_id, connector_id, stream_id, audit_id);
alter table tidemark_cycles add column page integer;
alter table tidemark_cycles add column has_state integer;
update tidemark_cycles set (page, has_state) = (select inflight_page, inflight_state is not null from tidemark_registry g where g.inflight_cycle = cycle_id);
create index tidemark_cycles_open on tidemark_cycles (sync_id) where page is not null;
`
