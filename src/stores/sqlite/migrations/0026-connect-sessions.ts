/** Sessions of the connect flow, with sealed secrets. A session is found by its id before its tenant is known. */
export const CONNECT_SESSIONS = `
create table tidemark_connect_sessions (
  tenant_id integer not null,
  session_id text not null,
  browser text not null,
  status text not null,
  version integer not null,
  secrets text not null,
  created_at integer not null,
  expires_at integer not null,
  primary key (tenant_id, session_id)
) strict, without rowid;
create index tidemark_connect_sessions_by_id on tidemark_connect_sessions (session_id);
create index tidemark_connect_sessions_by_expiry on tidemark_connect_sessions (tenant_id, expires_at);
`
