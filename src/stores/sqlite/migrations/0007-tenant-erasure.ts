export const TENANT_ERASURE = `
-- The audit log is deleted only with the tenant: after its syncs and data keys.
drop trigger tidemark_audit_remains;
create trigger tidemark_audit_remains before delete on tidemark_audit
when exists (select 1 from tidemark_registry where tenant_id = old.tenant_id) or exists (select 1 from tidemark_data_keys where tenant_id = old.tenant_id)
begin select raise(abort, 'the audit is only ever added to'); end;
`
