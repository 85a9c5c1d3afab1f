/** Exposes tenant names only, to a transaction that sets `lists_tenants`. */
export const TENANT_ERASURE = `
create policy listed on tidemark.tenants for select using (current_setting('tidemark.lists_tenants', true) = 'yes');

-- The audit log is deleted only with the tenant: after its syncs and data keys.
create or replace function tidemark.refuse() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and not exists (select from tidemark.registry where tenant_id = old.tenant_id)
    and not exists (select from tidemark.data_keys where tenant_id = old.tenant_id) then return old; end if;
  raise exception 'the audit is only ever added to';
end $$;
`
