export const CONSUMERS = `
create table tidemark.consumers (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  owner text collate "C" not null,
  name text collate "C" not null,
  resource text collate "C" not null,
  databases text,
  sequence bigint not null,
  cursor text,
  checkpoint_at bigint not null,
  reported_at bigint not null,
  metadata text,
  primary key (tenant_id, owner, name, resource)
);

-- Requests of each key per time window, over all processes. Unlogged: after a crash a window may start over.
create unlogged table tidemark.requests (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  time_window bigint not null,
  who text collate "C" not null,
  count bigint not null,
  primary key (tenant_id, time_window, who)
);
${['consumers', 'requests']
  .map(
    (name) => `
alter table tidemark.${name} enable row level security, force row level security;
create policy tenant on tidemark.${name}
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));`,
  )
  .join('')}
`
