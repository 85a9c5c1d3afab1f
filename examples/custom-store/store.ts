import {
  bindPlans,
  COMPACTION_PLANS,
  CURSOR_SECRET_PLANS,
  ERASE_TENANT_PLAN,
  hasFreshSecret,
  joinSyncStatus,
  lockTenant,
  UNSUPPORTED_SCHEMA_CHANGES,
  CHECKPOINT_SUMMARY_COLUMNS,
  type CompactRequest,
  type CompactResult,
  type CursorSecret,
  type CursorSecretCandidate,
  type CycleRow,
  type EraseResult,
  type TenantBusy,
  type CheckpointSummaryEntry,
  type SyncStatusList,
  type SyncStatusQuery,
  type Store,
} from 'tidemark/store'
import { commit } from './commit.ts'
import { errnoOfCause, Connection, LOCK_TIMEOUT, type ConnectionOptions } from './connection.ts'
import * as log from './log.ts'
import { migrate } from './schema.ts'
import { schema, schemaDrift } from './schema-info.ts'
import { performSteps, runPlan, type TenantSession } from './sql.ts'
import { readTables, type Table } from './table.ts'

export interface MariadbStoreOptions extends ConnectionOptions {
  readonly tenant?: string
}

/** Opens a store in a MariaDB database, and creates it on first use. */
export async function openMariadbStore({ tenant = 'default', ...options }: MariadbStoreOptions): Promise<Store> {
  const connection = new Connection(options)
  try {
    await migrate(connection)
  } catch (error) {
    await connection.close()
    throw error
  }
  return storeOf({ connection, tenant })
}

function storeOf(session: TenantSession): Store {
  const { connection, tenant } = session
  const { changes, feed, history } = log.createTenantLogPlans(session)
  return {
    ...UNSUPPORTED_SCHEMA_CHANGES,
    ...bindPlans((plan, args) => runPlan(session, plan, args)),
    tenant,
    forTenant: (other) => storeOf({ connection, tenant: other }),
    close: () => connection.close(),
    // MariaDB does not notify connections of each other's changes.
    subscribe: () => ({ addTenant: () => {}, close: () => Promise.resolve() }),
    commit: (request) => commit(session, request),
    listSyncStatus: (query) => listSyncStatus(session, query),
    changes: (query) => runPlan(session, changes, [query]),
    history: (database, key) => runPlan(session, history, [database, key]),
    feed: (query) => runPlan(session, feed, [query]),
    rows: (query) => log.rows(session, query),
    row: (database, key) => log.row(session, database, key),
    databases: () => log.databases(session),
    compact: (request) => compact(session, request),
    eraseTenant: (by) => eraseTenant(session, by),
    cursorSecrets: (candidate) => cursorSecrets(session, candidate),
    schema: (database) => schema(session, database),
    schemaDrift: () => schemaDrift(session),
  }
}

async function compact(session: TenantSession, request: CompactRequest): Promise<CompactResult> {
  const compacted = await runPlan(session, COMPACTION_PLANS.log, [request])
  const cycles = compacted.hasMore ? 0 : await runPlan(session, COMPACTION_PLANS.cycles, [request])
  return { ...compacted, removedCycles: cycles, hasMore: compacted.hasMore || cycles === request.scanMax }
}

async function eraseTenant(
  session: TenantSession,
  by: { actor: string; at: number },
): Promise<EraseResult | TenantBusy> {
  const tables = await session.connection.read((transaction) => readTables(session, transaction))
  const erased = await runPlan(session, ERASE_TENANT_PLAN, [by])
  if (erased.kind === 'held') return erased
  await dropTables(session, tables.values())
  return { ...erased, remains: 'the undo and redo logs of the server, its binary log, replicas and backups' }
}

/** Drops the empty tables of an erased tenant. A table that is already used again stays. */
function dropTables(session: TenantSession, tables: Iterable<Table>): Promise<void> {
  const { connection } = session
  return connection.write(async (transaction) => {
    await performSteps(session, transaction, lockTenant)
    const used = new Set([...(await readTables(session, transaction)).values()].map(({ name }) => name))
    for (const { name, history } of tables) {
      if (used.has(name)) continue
      // A table that a reader holds stays, empty.
      await connection
        .runOutsideTransaction((statements) => statements.run(`drop table if exists ${name}, ${history}`))
        .catch((error: unknown) => {
          if (errnoOfCause(error) !== LOCK_TIMEOUT) throw error
        })
    }
  })
}

async function cursorSecrets(session: TenantSession, candidate: CursorSecretCandidate): Promise<CursorSecret[]> {
  const known = await runPlan(session, CURSOR_SECRET_PLANS.known, [])
  return hasFreshSecret(known, candidate) ? known : runPlan(session, CURSOR_SECRET_PLANS.renew, [candidate])
}

/** Returns all syncs, changed or not: a MariaDB row does not record which transaction wrote it. */
function listSyncStatus(
  { connection, tenant }: TenantSession,
  { ref, recent }: SyncStatusQuery,
): Promise<SyncStatusList> {
  const which = ref === undefined ? '' : 'and g.connector_id = ? and g.stream_id = ?'
  const given = ref === undefined ? [tenant] : [tenant, ref.worker, ref.sync]
  return connection.read(async (transaction) => {
    const { now } = await transaction.one<{ now: number }>(
      'select cast(floor(unix_timestamp(sysdate(3)) * 1000) as signed) as now',
    )
    const entries = await transaction.all<CheckpointSummaryEntry>(
      `select ${CHECKPOINT_SUMMARY_COLUMNS} from tidemark_registry g where g.tenant_id = ? ${which}`,
      ...given,
    )
    const cycles = await transaction.all<CycleRow>(
      `select * from (select c.*, g.connector_id as worker, g.stream_id as sync, row_number() over (partition by c.sync_id order by c.cycle_id desc) as recency
         from tidemark_registry g join tidemark_cycles c on c.tenant_id = g.tenant_id and c.sync_id = g.sync_id where g.tenant_id = ? ${which}
       ) newest where recency <= ? order by cycle_id desc`,
      ...given,
      recent,
    )
    return { now, changeToken: '', syncs: joinSyncStatus(entries, cycles) }
  })
}
