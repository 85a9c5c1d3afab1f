export const AUDIT_CHAIN_AND_DATA_KEYS = `
alter table tidemark.tenants add column audit_head text not null default '', add column audit_count bigint not null default 0;
alter table tidemark.audit add column epoch bigint not null default 0, add column hash text not null default '';
create function tidemark.refuse() returns trigger language plpgsql as $$ begin raise exception 'the audit is only ever added to'; end $$;
create trigger audit_stays before update or delete on tidemark.audit for each row execute function tidemark.refuse();

-- Keys that seal a tenant's states, each wrapped by a key that is not in this database.
create table tidemark.data_keys (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  key_id text collate "C" not null,
  number integer not null,
  wrapped_by text not null,
  wrapped text not null,
  primary key (tenant_id, key_id)
);
alter table tidemark.data_keys enable row level security, force row level security;
create policy tenant on tidemark.data_keys
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
`
