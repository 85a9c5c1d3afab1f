import { SyncError } from 'tidemark/store'
import type { Connection } from './connection.ts'

/**
 * The store's own tables. Names and keys are binary, so that they are compared exactly, whatever the collation of the
 * database is. DDL commits implicitly in MariaDB, so each statement is idempotent.
 */
const NAME = 'varbinary(255) not null'
const TEXT = 'longtext'
const KEY = 'varbinary(1024) not null'
const NUMBER = 'bigint not null'
const COUNTS = [
  'pages',
  'created',
  'updated',
  'deleted',
  'swept',
  'unchanged',
  'stale',
  'missing',
  'quarantined',
  'retries',
  'waited_ms',
]
  .map((name) => `${name} bigint not null default 0`)
  .join(', ')

const TABLES: Readonly<Record<string, string>> = {
  tenants: `tenant_id ${NAME} primary key, sequence bigint not null default 0, committed_at bigint not null default 0, floor bigint not null default 0,
    floor_committed_at bigint not null default 0, audit_head varchar(64) not null default '', audit_count bigint not null default 0,
    erased boolean not null default false, epoch bigint not null default 0, store_id ${TEXT},
    connections_changed bigint not null default 0, key by_connections (connections_changed)`,
  databases: `database_id int auto_increment primary key, tenant_id ${NAME}, name ${NAME}, table_name varchar(64) not null unique, columns ${TEXT} not null,
    layout ${TEXT} not null, drift ${TEXT} not null, history_days int, history_floor bigint, history_floor_at bigint, unique (tenant_id, name)`,
  owners: `owner_id int auto_increment primary key, tenant_id ${NAME}, name varbinary(511) not null, sweeps boolean not null default false, unique (tenant_id, name)`,
  registry: `sync_id int auto_increment primary key, tenant_id ${NAME}, connector_id ${NAME}, stream_id ${NAME}, version bigint not null default 0, committed ${TEXT},
    committed_by bigint, inflight_cycle bigint, inflight_mode varchar(20), inflight_page bigint, inflight_state ${TEXT}, inflight_started_at bigint,
    inflight_scope ${TEXT}, inflight_tidemark ${TEXT}, inflight_guard ${TEXT}, inflight_start_sequence bigint, scope ${TEXT}, tidemark ${TEXT},
    paused boolean not null default false, triggered_at bigint, failures bigint not null default 0, error_code varchar(100), error_message ${TEXT}, error_at bigint,
    retry_at bigint, last_success_at bigint, complete_since bigint, needed_at bigint, needed_reason ${TEXT}, needed_cycle bigint, epoch bigint not null default 0,
    holder ${TEXT}, held_since bigint, held_until bigint, unique (tenant_id, connector_id, stream_id)`,
  cycles: `cycle_id bigint auto_increment primary key, tenant_id ${NAME}, sync_id int not null, mode varchar(20) not null, "trigger" ${TEXT} not null, started_at ${NUMBER},
    start_sequence ${NUMBER}, ended_at bigint, stop_reason varchar(20), end_reason ${TEXT}, ${COUNTS}, error_code varchar(100), error_message ${TEXT},
    page bigint, has_state boolean, key by_sync (tenant_id, sync_id, cycle_id), key open (tenant_id, sync_id, page)`,
  commits: `tenant_id ${NAME}, first_sequence ${NUMBER}, last_sequence ${NUMBER}, database_id int not null, sync_id int not null, cycle_id ${NUMBER}, page ${NUMBER},
    committed_at ${NUMBER}, primary key (tenant_id, first_sequence), key by_time (tenant_id, committed_at)`,
  deletions: `tenant_id ${NAME}, sequence ${NUMBER}, database_id int not null, "key" ${KEY}, upstream_at varchar(40), primary key (tenant_id, sequence),
    key by_key (database_id, "key")`,
  tombstones: `tenant_id ${NAME}, database_id int not null, "key" ${KEY}, sequence ${NUMBER}, status varchar(10) not null, upstream_at varchar(40), writer_id int not null,
    owner_id int not null, primary key (tenant_id, database_id, "key")`,
  contests: `tenant_id ${NAME}, database_id int not null, "key" ${KEY}, cycle_id ${NUMBER}, primary key (tenant_id, database_id, "key")`,
  claims: `tenant_id ${NAME}, database_id int not null, "key" ${KEY}, owner_id int not null, cycle_id ${NUMBER}, primary key (tenant_id, database_id, "key", owner_id)`,
  seen: `tenant_id ${NAME}, cycle_id ${NUMBER}, page ${NUMBER}, ranges ${TEXT} not null, primary key (tenant_id, cycle_id, page)`,
  audit: `audit_id bigint auto_increment primary key, tenant_id ${NAME}, sync_id int not null, connector_id varbinary(255), stream_id varbinary(255), version ${NUMBER},
    at ${NUMBER}, actor ${TEXT} not null, action varchar(100) not null, reason ${TEXT} not null, cycle_id bigint, state ${TEXT}, epoch ${NUMBER}, hash varchar(64) not null,
    key by_tenant (tenant_id, audit_id), key by_name (tenant_id, connector_id, stream_id, audit_id)`,
  quarantine: `quarantine_id bigint auto_increment primary key, tenant_id ${NAME}, sync_id int not null, database_name ${NAME}, identity varbinary(1100) not null,
    "key" varbinary(1024), code varchar(100) not null, message ${TEXT} not null, text ${TEXT} not null, cycle_id ${NUMBER}, page ${NUMBER}, at ${NUMBER},
    unique (tenant_id, sync_id, database_name, identity)`,
  cursor_secrets: `tenant_id ${NAME}, created_at ${NUMBER}, secret ${TEXT} not null, primary key (tenant_id, created_at)`,
  api_keys: `key_id ${NAME} primary key, tenant_id ${NAME}, name ${TEXT} not null, hash ${TEXT} not null, scopes ${TEXT} not null, rate_limit ${NUMBER}, created_at ${NUMBER},
    ends_at bigint`,
  data_keys: `tenant_id ${NAME}, key_id ${NAME}, number ${NUMBER}, wrapped_by ${NAME}, wrapped ${TEXT} not null, primary key (tenant_id, key_id)`,
  webhooks: `tenant_id ${NAME}, webhook_id ${NAME}, url ${TEXT} not null, "databases" ${TEXT}, actions ${TEXT}, allow ${TEXT} not null, secrets ${TEXT} not null,
    created_at ${NUMBER}, sequence ${NUMBER}, floor ${NUMBER}, failure_streak bigint not null default 0, retry_at bigint, succeeded_at bigint, failed_at bigint, last_status int,
    last_response ${TEXT}, disabled ${TEXT}, epoch bigint not null default 0, holder ${TEXT}, held_until bigint, primary key (tenant_id, webhook_id)`,
  deliveries: `tenant_id ${NAME}, webhook_id ${NAME}, sequence ${NUMBER}, message_id ${TEXT} not null, database_name ${NAME}, "key" ${KEY}, body ${TEXT} not null,
    attempts ${NUMBER}, first_at bigint, next_at ${NUMBER}, failed boolean not null, last_status int, last_response ${TEXT}, primary key (tenant_id, webhook_id, sequence)`,
  inbound: `tenant_id ${NAME}, source ${NAME}, message_id varbinary(1024) not null, at ${NUMBER}, done boolean not null, payload ${TEXT},
    primary key (tenant_id, source, message_id), key by_time (tenant_id, source, at)`,
  consumers: `tenant_id ${NAME}, owner ${NAME}, name ${NAME}, resource ${NAME}, "databases" ${TEXT}, sequence ${NUMBER}, "cursor" ${TEXT}, checkpoint_at ${NUMBER},
    reported_at ${NUMBER}, metadata ${TEXT}, primary key (tenant_id, owner, name, resource)`,
  requests: `tenant_id ${NAME}, "window" ${NUMBER}, caller ${NAME}, count ${NUMBER}, primary key (tenant_id, "window", caller)`,
  pacers: `tenant_id ${NAME}, connector_id ${NAME}, pacer ${NAME}, slot_at double not null, taken_at double not null, primary key (tenant_id, connector_id, pacer)`,
  pauses: `tenant_id ${NAME}, connector_id ${NAME}, pacer ${NAME}, origin ${NAME}, until_at ${NUMBER}, noted_at ${NUMBER}, primary key (tenant_id, connector_id, pacer, origin)`,
  partitions: `tenant_id ${NAME}, sync_id int not null, partition_key ${KEY}, state ${TEXT} not null, cycle_id bigint,
    primary key (tenant_id, sync_id, partition_key)`,
  column_keys: `tenant_id ${NAME}, key_id ${NAME}, number ${NUMBER}, secret ${TEXT} not null, primary key (tenant_id, key_id)`,
  column_rules: `tenant_id ${NAME}, connector_id ${NAME}, stream_id ${NAME}, database_name ${NAME}, applied ${TEXT} not null, applied_since ${NUMBER},
    pending ${TEXT}, pending_since bigint, pending_cycle bigint, used ${TEXT} not null, primary key (tenant_id, connector_id, stream_id, database_name)`,
  destinations: `tenant_id ${NAME}, name ${NAME}, kind ${TEXT}, location ${TEXT}, mode ${TEXT}, epoch ${NUMBER}, holder ${TEXT}, held_until bigint,
    paused boolean not null default false, triggered_at bigint, resync ${TEXT} not null default '[]', started_at bigint, ended_at bigint,
    failures bigint not null default 0, retry_at bigint, error_code varchar(100), error_message ${TEXT}, "databases" ${TEXT} not null default '[]',
    primary key (tenant_id, name)`,
  connections: `tenant_id ${NAME}, name ${NAME}, provider ${TEXT} not null, status varchar(40) not null, status_reason ${TEXT}, settings ${TEXT} not null,
    scopes ${TEXT} not null, account ${TEXT}, credentials ${TEXT} not null, credentials_version ${NUMBER}, version ${NUMBER}, created_at ${NUMBER},
    updated_at ${NUMBER}, primary key (tenant_id, name)`,
  connect_sessions: `tenant_id ${NAME}, session_id ${NAME}, browser ${TEXT} not null, status varchar(40) not null, version ${NUMBER}, secrets ${TEXT} not null,
    created_at ${NUMBER}, expires_at ${NUMBER}, primary key (tenant_id, session_id), key by_id (session_id), key by_expiry (tenant_id, expires_at)`,
  verifications: `tenant_id ${NAME}, verification_id ${NUMBER}, database_name ${NAME}, actor ${TEXT} not null, holder ${TEXT}, held_until bigint,
    started_at ${NUMBER}, ended_at bigint, error_code varchar(100), report ${TEXT}, primary key (tenant_id, verification_id),
    key by_database (tenant_id, database_name, verification_id)`,
}

export const TABLE_OPTIONS = 'engine = innodb row_format = dynamic character set utf8mb4 collate utf8mb4_nopad_bin'

/** Erased with a tenant, in this order. */
export const TENANT_TABLES = Object.keys(TABLES).filter((name) => name !== 'tenants' && name !== 'audit')

function createTable(name: string): string {
  return `create table if not exists tidemark_${name} (${TABLES[name]}) ${TABLE_OPTIONS}`
}

/** Each migration takes the tables from version n to n + 1. The first creates them with their current columns. */
const MIGRATIONS: readonly (readonly string[])[] = [
  [
    ...Object.keys(TABLES).map(createTable),
    `create trigger if not exists tidemark_audit_stays before update on tidemark_audit for each row
     signal sqlstate '45000' set message_text = 'the audit is only ever added to'`,
  ],
  // Without effect on a new database, which has the current columns from the start.
  [
    `alter table tidemark_tenants add column if not exists store_id ${TEXT}`,
    createTable('destinations'),
    'alter table tidemark_cycles rename column if exists stop_word to end_reason',
    `alter table tidemark_webhooks rename column if exists position to sequence, rename column if exists streak to failure_streak,
     rename column if exists last_answer to last_response`,
    'alter table tidemark_deliveries rename column if exists dead to failed, rename column if exists last_answer to last_response',
    'alter table tidemark_requests rename column if exists who to caller',
  ],
  [createTable('partitions'), createTable('column_keys'), createTable('column_rules')],
  [
    `alter table tidemark_tenants add column if not exists connections_changed bigint not null default 0,
     add key if not exists by_connections (connections_changed)`,
    createTable('connections'),
    createTable('connect_sessions'),
  ],
  [createTable('verifications')],
]

export async function migrate(connection: Connection): Promise<void> {
  await connection.runOutsideTransaction(async (statements) => {
    const { bytes } = await statements.one<{ bytes: number }>('select @@max_allowed_packet as bytes')
    connection.bytesMax = Math.min(connection.bytesMax, bytes / 8)
    const version = 'select version from tidemark_schema'
    const there = await statements.get(
      "select 1 as there from information_schema.tables where table_schema = database() and table_name = 'tidemark_schema'",
    )
    if (there !== undefined && (await statements.get<{ version: number }>(version))?.version === MIGRATIONS.length)
      return
    // Several processes may open the database at once.
    await statements.run("select get_lock(concat('tidemark ', database()), 60)")
    await statements.run(
      `create table if not exists tidemark_schema (one boolean primary key, version int not null) ${TABLE_OPTIONS}`,
    )
    const found = (await statements.get<{ version: number }>(version))?.version ?? 0
    if (found > MIGRATIONS.length)
      throw new SyncError(
        'STORE_NEWER',
        `The database has schema version ${found}; this store knows ${MIGRATIONS.length}.`,
      )
    for (const sql of MIGRATIONS.slice(found).flat()) await statements.run(sql)
    await statements.run('replace into tidemark_schema values (true, ?)', MIGRATIONS.length)
    await statements.run("do release_lock(concat('tidemark ', database()))")
  })
}
