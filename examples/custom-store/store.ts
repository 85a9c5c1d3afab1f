import {
  bindPlans, COMPACTION, CURSOR_SECRETS, ERASE_TENANT, isFresh, joinStandings, lockTenant, NO_SCHEMA_CHANGES, OUTLINE_COLUMNS,
  type CompactRequest, type Compacted, type CursorSecret, type CursorSecretOffer, type CycleRow, type Erased, type Occupied, type OutlineEntry,
  type Standings, type StandingsQuery, type Store,
} from 'tidemark/store'
import { commit } from './commit.ts'
import { causeOf, Connection, LOCK_TIMEOUT, type ConnectionOptions } from './connection.ts'
import * as log from './log.ts'
import { migrate } from './schema.ts'
import { schema, schemaDrift } from './schema-info.ts'
import { perform, runPlan, type Session } from './sql.ts'
import { readTables, type Table } from './table.ts'

export interface MariadbStoreOptions extends ConnectionOptions {
  readonly tenant?: string
}

/** Opens, and on first use makes, a store in a MariaDB database. */
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

function storeOf(session: Session): Store {
  const { connection, tenant } = session
  const { changes, feed, history } = log.logOf(session)
  return {
    ...NO_SCHEMA_CHANGES,
    ...bindPlans((plan, args) => runPlan(session, plan, args)),
    tenant,
    forTenant: (other) => storeOf({ connection, tenant: other }),
    close: () => connection.close(),
    // MariaDB notifies no connection of what another one did.
    listen: () => ({ add: () => {}, close: () => Promise.resolve() }),
    commit: (request) => commit(session, request),
    standings: (query) => standings(session, query),
    changes: (query) => runPlan(session, changes, [query]),
    history: (database, key) => runPlan(session, history, [database, key]),
    feed: (query) => runPlan(session, feed, [query]),
    rows: (query) => log.rows(session, query),
    row: (database, key) => log.row(session, database, key),
    databases: () => log.databases(session),
    compact: (request) => compact(session, request),
    erase: (by) => erase(session, by),
    cursorSecrets: (offer) => cursorSecrets(session, offer),
    schema: (database) => schema(session, database),
    schemaDrift: () => schemaDrift(session),
  }
}

async function compact(session: Session, request: CompactRequest): Promise<Compacted> {
  const forgotten = await runPlan(session, COMPACTION.log, [request])
  const cycles = forgotten.more ? 0 : await runPlan(session, COMPACTION.cycles, [request])
  return { ...forgotten, cycles, more: forgotten.more || cycles === request.scanMax }
}

async function erase(session: Session, by: { actor: string; at: number }): Promise<Erased | Occupied> {
  const tables = await session.connection.read((transaction) => readTables(session, transaction))
  const erased = await runPlan(session, ERASE_TENANT, [by])
  if (erased.kind === 'held') return erased
  await dropTables(session, tables.values())
  return { ...erased, remains: 'the undo and redo logs of the server, its binary log, replicas and backups' }
}

/** The empty tables of an erased tenant. One that is used again by now stays. */
function dropTables(session: Session, tables: Iterable<Table>): Promise<void> {
  const { connection } = session
  return connection.write(async (transaction) => {
    await perform(session, transaction, lockTenant)
    const used = new Set([...(await readTables(session, transaction)).values()].map(({ name }) => name))
    for (const { name, history } of tables) {
      if (used.has(name)) continue
      // One that a reader holds stays, empty.
      await connection.alone((statements) => statements.run(`drop table if exists ${name}, ${history}`)).catch((error: unknown) => {
        if (causeOf(error) !== LOCK_TIMEOUT) throw error
      })
    }
  })
}

async function cursorSecrets(session: Session, offer: CursorSecretOffer): Promise<CursorSecret[]> {
  const known = await runPlan(session, CURSOR_SECRETS.known, [])
  return isFresh(known, offer) ? known : runPlan(session, CURSOR_SECRETS.renew, [offer])
}

/** All are told, whatever moved: a row of MariaDB does not say which transaction wrote it. */
function standings({ connection, tenant }: Session, { ref, recent }: StandingsQuery): Promise<Standings> {
  const which = ref === undefined ? '' : 'and g.connector_id = ? and g.stream_id = ?'
  const given = ref === undefined ? [tenant] : [tenant, ref.worker, ref.sync]
  return connection.read(async (transaction) => {
    const { now } = (await transaction.get<{ now: number }>('select cast(floor(unix_timestamp(sysdate(3)) * 1000) as signed) as now'))!
    const entries = await transaction.all<OutlineEntry>(`select ${OUTLINE_COLUMNS} from tidemark_registry g where g.tenant_id = ? ${which}`, ...given)
    const cycles = await transaction.all<CycleRow>(
      `select * from (select c.*, g.connector_id as worker, g.stream_id as sync, row_number() over (partition by c.sync_id order by c.cycle_id desc) as place
         from tidemark_registry g join tidemark_cycles c on c.tenant_id = g.tenant_id and c.sync_id = g.sync_id where g.tenant_id = ? ${which}
       ) newest where place <= ? order by cycle_id desc`, ...given, recent,
    )
    return { now, mark: '', syncs: joinStandings(entries, cycles) }
  })
}
