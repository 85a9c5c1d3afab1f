/** New epochs begin after the last one that an erased tenant gave out. */
export const TENANT_ERASED_FLAG = `
alter table tidemark_tenants add column erased integer not null default 0;
alter table tidemark_tenants add column epoch integer not null default 0;
`
