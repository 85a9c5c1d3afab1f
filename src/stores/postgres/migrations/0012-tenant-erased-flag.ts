/** New epochs begin after the last one that an erased tenant gave out. */
export const TENANT_ERASED_FLAG =
  'alter table tidemark.tenants add column erased boolean not null default false, add column epoch bigint not null default 0'
