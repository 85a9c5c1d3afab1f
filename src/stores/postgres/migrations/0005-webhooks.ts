export const WEBHOOKS = `
create table tidemark.webhooks (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  webhook_id text collate "C" not null,
  url text not null,
  databases text,
  actions text,
  allow text not null,
  secrets text not null,
  created_at bigint not null,
  position bigint not null,
  floor bigint not null,
  streak integer not null default 0,
  retry_at bigint,
  succeeded_at bigint,
  failed_at bigint,
  last_status integer,
  last_answer text,
  disabled text,
  epoch bigint not null default 0,
  holder text,
  held_until bigint,
  primary key (tenant_id, webhook_id)
);

-- Deliveries that are pending or were given up.
create table tidemark.deliveries (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  webhook_id text collate "C" not null,
  sequence bigint not null,
  message_id text not null,
  database_name text not null,
  key text not null,
  body text not null,
  attempts integer not null,
  first_at bigint,
  next_at bigint not null,
  dead boolean not null,
  last_status integer,
  last_answer text,
  primary key (tenant_id, webhook_id, sequence)
);

-- Received messages, so that each is processed exactly once.
create table tidemark.inbound (
  tenant_id text collate "C" not null check (tenant_id <> ''),
  source text collate "C" not null,
  message_id text collate "C" not null,
  at bigint not null,
  done boolean not null,
  primary key (tenant_id, source, message_id)
);
create index inbound_by_time on tidemark.inbound (tenant_id, source, at);
${['webhooks', 'deliveries', 'inbound']
  .map(
    (name) => `
alter table tidemark.${name} enable row level security, force row level security;
create policy tenant on tidemark.${name}
  using (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))
  with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''));`,
  )
  .join('')}
`
