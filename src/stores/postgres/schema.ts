import { INITIAL_TABLES } from './migrations/0001-initial-tables.ts'
import { CYCLE_END_REASON } from './migrations/0002-cycle-end-reason.ts'
import { API_KEYS_AND_LOG_FLOOR } from './migrations/0003-api-keys-and-log-floor.ts'
import { AUDIT_CHAIN_AND_DATA_KEYS } from './migrations/0004-audit-chain-and-data-keys.ts'
import { WEBHOOKS } from './migrations/0005-webhooks.ts'
import { CONSUMERS } from './migrations/0006-consumers.ts'
import { TENANT_ERASURE } from './migrations/0007-tenant-erasure.ts'
import { LEASE_HELD_SINCE } from './migrations/0008-lease-held-since.ts'
import { INBOUND_PAYLOAD } from './migrations/0009-inbound-payload.ts'
import { SHARED_PACERS } from './migrations/0010-shared-pacers.ts'
import { INFLIGHT_GUARD } from './migrations/0011-inflight-guard.ts'
import { TENANT_ERASED_FLAG } from './migrations/0012-tenant-erased-flag.ts'
import { BACKFILL_NEEDED } from './migrations/0013-backfill-needed.ts'
import { SOURCE_PAUSES } from './migrations/0014-source-pauses.ts'
import { ROW_CONTESTED_BY } from './migrations/0015-row-contested-by.ts'
import { STATE_ROLLBACK_DETECTION } from './migrations/0016-state-rollback-detection.ts'
import { TYPED_TABLES } from './migrations/0017-typed-tables.ts'
import { SCHEMA_CHANGES } from './migrations/0018-schema-changes.ts'
import { HISTORY_DAYS } from './migrations/0019-history-days.ts'
import { DELETE_MODE } from './migrations/0020-delete-mode.ts'
import { DESTINATIONS } from './migrations/0021-destinations.ts'
import { PLAIN_COLUMN_NAMES } from './migrations/0022-plain-column-names.ts'
import { COMMIT_FUNCTIONS } from './migrations/0023-commit-functions.ts'
import { PARTITIONS } from './migrations/0024-partitions.ts'
import { COLUMN_RULES } from './migrations/0025-column-rules.ts'
import { CONNECTIONS } from './migrations/0026-connections.ts'
import { CONNECT_SESSIONS } from './migrations/0027-connect-sessions.ts'
import { VERIFICATIONS } from './migrations/0028-verifications.ts'

/**
 * Each migration takes the tables from version n to n + 1; the first creates them. All pending ones run in one
 * transaction.
 */
export const MIGRATIONS: readonly string[] = [
  INITIAL_TABLES,
  CYCLE_END_REASON,
  API_KEYS_AND_LOG_FLOOR,
  AUDIT_CHAIN_AND_DATA_KEYS,
  WEBHOOKS,
  CONSUMERS,
  TENANT_ERASURE,
  LEASE_HELD_SINCE,
  INBOUND_PAYLOAD,
  SHARED_PACERS,
  INFLIGHT_GUARD,
  TENANT_ERASED_FLAG,
  BACKFILL_NEEDED,
  SOURCE_PAUSES,
  ROW_CONTESTED_BY,
  STATE_ROLLBACK_DETECTION,
  TYPED_TABLES,
  SCHEMA_CHANGES,
  HISTORY_DAYS,
  DELETE_MODE,
  DESTINATIONS,
  PLAIN_COLUMN_NAMES,
  COMMIT_FUNCTIONS,
  PARTITIONS,
  COLUMN_RULES,
  CONNECTIONS,
  CONNECT_SESSIONS,
  VERIFICATIONS,
]

/** Version of the tables; a database with a higher one was written by a newer tidemark and is left alone. */
export const SCHEMA_VERSION = MIGRATIONS.length

/**
 * Earlier versions did not seal states, and an unsealed text is never accepted as a state. No release wrote such a
 * store.
 */
export const SCHEMA_VERSION_MIN = 4

/** Older PostgreSQL versions have no views with the rights of the caller (`security_invoker`). */
export const SERVER_VERSION_MIN = 15
