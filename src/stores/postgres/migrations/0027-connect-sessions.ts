/**
 * Sessions of the connect flow, with sealed secrets. A browser that presents a session's id finds it before its tenant is
 * known; everything else stays behind the tenant's policy.
 */
export const CONNECT_SESSIONS = `
create table tidemark.connect_sessions (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  session_id text collate "C" not null,
  browser text not null,
  status text not null,
  version bigint not null,
  secrets text not null,
  created_at bigint not null,
  expires_at bigint not null,
  primary key (tenant_id, session_id)
);
create index connect_sessions_by_id on tidemark.connect_sessions (session_id);
create index connect_sessions_by_expiry on tidemark.connect_sessions (tenant_id, expires_at);

alter table tidemark.connect_sessions enable row level security, force row level security;
create policy tenant on tidemark.connect_sessions
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));
create policy presented on tidemark.connect_sessions for select
  using (session_id = nullif(current_setting('tidemark.connect_session', true), ''));
`
