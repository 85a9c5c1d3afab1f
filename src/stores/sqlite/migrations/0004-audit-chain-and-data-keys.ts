export const AUDIT_CHAIN_AND_DATA_KEYS = `
alter table tidemark_tenants add column audit_head text not null default '';
alter table tidemark_tenants add column audit_count integer not null default 0;
alter table tidemark_audit add column epoch integer not null default 0;
alter table tidemark_audit add column hash text not null default '';
create index tidemark_audit_by_tenant on tidemark_audit (tenant_id, audit_id);
create trigger tidemark_audit_stays before update on tidemark_audit begin select raise(abort, 'the audit is only ever added to'); end;
create trigger tidemark_audit_remains before delete on tidemark_audit begin select raise(abort, 'the audit is only ever added to'); end;

-- Keys that seal a tenant's states, each wrapped by a key that is not in this file.
create table tidemark_data_keys (
  tenant_id integer not null,
  key_id text not null,
  number integer not null,
  wrapped_by text not null,
  wrapped text not null,
  primary key (tenant_id, key_id)
) strict, without rowid;
`
