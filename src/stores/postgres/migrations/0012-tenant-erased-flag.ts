/** Epochs begin behind all that an erased tenant has given out. */
export const TENANT_ERASED_FLAG = 'alter table tidemark.tenants add column erased boolean not null default false, add column epoch bigint not null default 0'
