import type { Store } from '../../contract/index.ts'
import { Connection, type ConnectionOptions } from './connection.ts'
import { Ledger } from './ledger.ts'

export interface SqliteStoreOptions extends ConnectionOptions {
  readonly tenant?: string
}

/** Opens, and on first use makes, a store in one SQLite file. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const connection = new Connection(options)
  return inThread(connection, options.tenant ?? 'default')
}

function inThread(connection: Connection, tenant: string): Store {
  const ledger = new Ledger(connection, tenant)
  return {
    tenant,
    forTenant: (other) => inThread(connection, other),
    close: async () => connection.close(),
    acquire: async (ref, request) => ledger.acquire(ref, request),
    renew: async (lease, request) => ledger.renew(lease, request),
    release: async (lease, report) => ledger.release(lease, report),
    begin: async (lease, request) => ledger.begin(lease, request),
    commit: async (commit) => ledger.commit(commit),
    read: async (ref) => ledger.read(ref),
    syncs: async () => ledger.syncs(),
    signal: async (ref, signal) => ledger.signal(ref, signal),
    audit: async (ref, options) => ledger.audit(ref, options),
    cycles: async (ref, options) => ledger.cycles(ref, options),
    pacers: async (ref) => ledger.pacers(ref),
    position: async () => ledger.position(),
    changes: async (query) => ledger.changes(query),
    rows: async (query) => ledger.rows(query),
    row: async (database, key) => ledger.row(database, key),
    history: async (database, key) => ledger.history(database, key),
    databases: async () => ledger.databases(),
    quarantined: async (query) => ledger.quarantined(query),
  }
}
