export const WEBHOOKS = `
create table tidemark_webhooks (
  tenant_id integer not null,
  webhook_id text not null,
  url text not null,
  databases text,
  actions text,
  allow text not null,
  secrets text not null,
  created_at integer not null,
  position integer not null,
  floor integer not null,
  streak integer not null default 0,
  retry_at integer,
  succeeded_at integer,
  failed_at integer,
  last_status integer,
  last_answer text,
  disabled text,
  epoch integer not null default 0,
  holder text,
  held_until integer,
  primary key (tenant_id, webhook_id)
) strict, without rowid;

-- Deliveries that are pending or were given up.
create table tidemark_deliveries (
  tenant_id integer not null,
  webhook_id text not null,
  sequence integer not null,
  message_id text not null,
  database_name text not null,
  key text not null,
  body text not null,
  attempts integer not null,
  first_at integer,
  next_at integer not null,
  dead integer not null,
  last_status integer,
  last_answer text,
  primary key (tenant_id, webhook_id, sequence)
) strict, without rowid;

-- Received messages, so that each is processed exactly once.
create table tidemark_inbound (
  tenant_id integer not null,
  source text not null,
  message_id text not null,
  at integer not null,
  done integer not null,
  primary key (tenant_id, source, message_id)
) strict, without rowid;
create index tidemark_inbound_by_time on tidemark_inbound (tenant_id, source, at);
`
