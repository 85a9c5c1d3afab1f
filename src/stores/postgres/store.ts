import type { Store } from '../../contract/index.ts'
import { bindPlans, type RoleMethods } from '../kit/roles/roles.ts'
import { commit } from './commit.ts'
import { Connection, type ConnectionOptions, type TenantSession } from './connection.ts'
import * as feed from './feed.ts'
import { subscribe } from './subscribe.ts'
import { migrate } from './migrate.ts'
import type { MigrationProgress } from './migrate-log.ts'
import * as queries from './queries.ts'
import * as schema from './schema-change.ts'
import * as rowSearch from './row-search.ts'
import { rowValues } from './row-values.ts'
import { runPlan } from './sql.ts'
import { listSyncStatus } from './sync-status.ts'
import { eraseTenant } from './erase-tenant.ts'

/** Options of `openPostgresStore`: the connection, and how records move to new tables. */
export interface PostgresStoreOptions extends ConnectionOptions {
  readonly tenant?: string
  /** Called while records of an older store are moved to their tables. */
  readonly onMigration?: (progress: MigrationProgress) => void
}

/**
 * Opens a store in the schema `tidemark` of a PostgreSQL database, and creates it on first use. On a streaming replica
 * it is read-only.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const connection = new Connection(options)
  try {
    return storeOf(
      {
        connection,
        tenant: options.tenant ?? 'default',
        ...(await migrate(connection, { onProgress: options.onMigration })),
      },
      options,
    )
  } catch (error) {
    await connection.close()
    throw error
  }
}

function storeOf(session: TenantSession, options: ConnectionOptions): Store {
  const { connection, tenant, isReplica } = session
  return {
    ...bindRoles(session),
    tenant,
    isReplica,
    supportsSoftDeletes: true,
    supportsScopedSweeps: true,
    forTenant: (other) => storeOf({ ...session, tenant: other }, options),
    eraseTenant: (by) => eraseTenant(session, by),
    close: () => connection.close(),
    commit: (request) => commit(session, request),
    listSyncStatus: (query) => listSyncStatus(session, query),
    subscribe: (listener) => subscribe(options, listener),
    changes: (query) => queries.changes(session, query),
    rows: (query) => queries.rows(session, query),
    rowValues: (query) => rowValues(session, query),
    row: (database, key) => queries.row(session, database, key),
    history: (database, key) => queries.history(session, database, key),
    searchRows: (search) => rowSearch.searchRows(session, search),
    columnStatistics: (request) => rowSearch.columnStatistics(session, request),
    databases: () => queries.databases(session),
    schemaDrift: () => schema.schemaDrift(session),
    schema: (database) => schema.schema(session, database),
    beginSchemaChange: (database, request) => schema.beginSchemaChange(session, database, request),
    advanceSchemaChange: (database, step) => schema.advanceSchemaChange(session, database, step),
    feed: (query) => feed.feed(session, query),
    compact: (request) => feed.compact(session, request),
    cursorSecrets: (candidate) => feed.cursorSecrets(session, candidate),
  }
}

function bindRoles(session: TenantSession): RoleMethods {
  return bindPlans((plan, args) => runPlan(session, plan, args))
}
