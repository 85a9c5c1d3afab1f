export const INBOUND_PAYLOAD = 'alter table tidemark.inbound add column payload text'
