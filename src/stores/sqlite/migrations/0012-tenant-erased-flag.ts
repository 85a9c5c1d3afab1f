/** Epochs begin behind all that an erased tenant has given out. */
export const TENANT_ERASED_FLAG = `
alter table tidemark_tenants add column erased integer not null default 0;
alter table tidemark_tenants add column epoch integer not null default 0;
`
