export const INBOUND_PAYLOAD = 'alter table tidemark_inbound add column payload text'
