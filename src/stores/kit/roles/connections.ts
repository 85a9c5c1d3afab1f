import {
  SyncError,
  type Connection,
  type ConnectionAccount,
  type ConnectionStatus,
  type ConnectionStore,
  type JsonObject,
  type ConnectionSummary,
} from '../../../contract/index.ts'
import { createConnectionAuditEntry } from '../audit-entries.ts'
import { lockTenant, reviveTenant } from '../registry.ts'
import { replaceNul } from '../replace-nul.ts'
import { defineRead, defineWrite, type PlansOf, type Sql, type Steps } from '../sql/port.ts'
import { checkSealingKey } from './data-keys.ts'

/** Numbers are unique over all tenants, and the index returns the last one. */
const LAST_CHANGE =
  'select coalesce(max(connections_changed), 0) as number from {tenants} where connections_changed > 0'
const WHERE = 'where tenant_id = :tenant and name = :name'

/** Everything but the credentials, so that a list never reads them. */
const COLUMNS =
  'name, provider, status, status_reason, settings, scopes, account, credentials_version, version, created_at, updated_at'

export const CONNECTION_PLANS = {
  connections: defineRead(function* (sql) {
    const found = yield* sql.all<ConnectionRow>(
      `select ${COLUMNS} from {connections} where tenant_id = :tenant order by name`,
    )
    return found.map(toConnection)
  }),

  connection: defineRead(function* (sql, name) {
    return yield* findConnection(sql, name)
  }),

  connectionCredentials: defineRead(function* (sql, name) {
    const found = yield* sql.get<ConnectionRow & { credentials: string }>(
      `select ${COLUMNS}, credentials from {connections} ${WHERE}`,
      { name },
    )
    return found === undefined ? null : { connection: toConnection(found), credentials: found.credentials }
  }),

  putConnection: defineWrite(function* (sql, write, { actor, at, reason = '' }) {
    const { name, provider, status, settings, scopes, account, credentials, replaces } = write
    yield* replaces === null ? reviveTenant(sql) : lockTenant(sql)
    if (credentials !== undefined) yield* checkSealingKey(sql, credentials)
    const found = yield* findConnection(sql, name, '{for_update}')
    if (found?.version !== replaces?.version || found?.createdAt !== replaces?.createdAt) return null
    if (credentials !== undefined && found?.credentialsVersion !== replaces?.credentialsVersion) return null
    const values = {
      name,
      status,
      statusReason: replaceNul(write.statusReason),
      settings: JSON.stringify(settings),
      scopes: JSON.stringify(scopes),
      account: account === null ? null : JSON.stringify(account),
      version: (replaces?.version ?? 0) + 1,
      at,
    }
    if (found === null && credentials === undefined)
      throw new SyncError('CONNECTION_INVALID', `The connection ${name} has no credentials.`)
    if (found === null)
      yield* sql.run(
        `insert into {connections} (tenant_id, name, provider, status, status_reason, settings, scopes, account, credentials, credentials_version, version, created_at, updated_at)
         values (:tenant, :name, :provider, :status, :statusReason, :settings, :scopes, :account, :credentials, 1, :version, :at, :at)`,
        { ...values, provider, credentials: credentials ?? '' },
      )
    else {
      yield* sql.run(
        `update {connections} set status = :status, status_reason = :statusReason, settings = :settings, scopes = :scopes, account = :account,
           version = :version, updated_at = :at ${WHERE}`,
        values,
      )
      if (credentials !== undefined)
        yield* sql.run(
          `update {connections} set credentials = :credentials, credentials_version = credentials_version + 1 ${WHERE}`,
          { name, credentials },
        )
    }
    const action = found === null ? 'add' : credentials === undefined ? 'change' : 'authorize'
    const detail = describeChange(provider, account, reason)
    yield* sql.kernel.writeAudit(null, createConnectionAuditEntry(name, action, detail, { actor, at }))
    yield* recordChange(sql)
    return yield* findConnection(sql, name)
  }),

  swapCredentials: defineWrite(function* (sql, name, { credentials, replaces: { credentialsVersion, createdAt } }) {
    yield* lockTenant(sql)
    yield* checkSealingKey(sql, credentials)
    const changed = yield* sql.run(
      `update {connections} set credentials = :credentials, credentials_version = credentials_version + 1 ${WHERE}
         and credentials_version = :credentialsVersion and created_at = :createdAt`,
      { name, credentials, credentialsVersion, createdAt },
    )
    return changed > 0
  }),

  setConnectionStatus: defineWrite(function* (sql, name, { status, reason, credentials }, { actor, at }) {
    yield* lockTenant(sql)
    const found = yield* findConnection(sql, name, '{for_update}')
    if (found === null) return false
    if (credentials !== undefined) {
      const { credentialsVersion, createdAt } = credentials
      if (found.credentialsVersion !== credentialsVersion || found.createdAt !== createdAt) return false
    }
    yield* sql.run(
      `update {connections} set status = :status, status_reason = :reason, version = version + 1, updated_at = :at ${WHERE}`,
      { name, status, reason: status === 'active' ? null : replaceNul(reason), at },
    )
    yield* sql.kernel.writeAudit(null, createConnectionAuditEntry(name, status, reason, { actor, at }))
    yield* recordChange(sql)
    return true
  }),

  removeConnection: defineWrite(function* (sql, name, { actor, at, reason = '' }) {
    yield* lockTenant(sql)
    const removed = yield* sql.run(`delete from {connections} ${WHERE}`, { name })
    if (removed === 0) return false
    yield* sql.kernel.writeAudit(null, createConnectionAuditEntry(name, 'remove', reason, { actor, at }))
    yield* recordChange(sql)
    return true
  }),

  connectionChanges: defineRead(function* (sql, { since, limit }) {
    yield* sql.kernel.widenRowSecurity({ tenants: true })
    const { number } = yield* sql.one<{ number: number }>(LAST_CHANGE)
    const token = since === null ? 0 : Number(since)
    // After a restore of an older database, the token may be ahead of it.
    const after = token > number ? 0 : token
    // One statement: a tenant that changes between two would be listed without its connections.
    const rows = yield* sql.all<ListedRow>(
      `select ${sql.dialect.tenantName('t')} as tenant, t.connections_changed as number, c.name, c.provider, c.status, c.status_reason, c.version, c.updated_at
       from (select * from {tenants} where connections_changed > :after and connections_changed <= :number
             order by connections_changed limit :limit) t
       left join {connections} c on c.tenant_id = t.tenant_id order by t.connections_changed, c.name`,
      { after, number, limit },
    )
    const tenants = new Map<string, ConnectionSummary[]>()
    for (const row of rows) {
      const listed = tenants.get(row.tenant) ?? []
      tenants.set(row.tenant, listed)
      const { name, provider, status, status_reason: statusReason, version, updated_at: updatedAt } = row
      if (name !== null) listed.push({ name, provider, status, statusReason, version, updatedAt })
    }
    const hasMore = tenants.size === limit
    return {
      changeToken: String(hasMore ? (rows.at(-1)?.number ?? number) : number),
      hasMore,
      tenants: [...tenants].map(([tenant, connections]) => ({ tenant, connections })),
    }
  }),
} satisfies PlansOf<ConnectionStore>

/**
 * Numbers a change of the tenant's connections, so that a reader of all tenants finds it by index. A lock of the whole
 * store is held until the transaction ends, so numbers become visible in their order. Legal once the tenant is locked.
 */
export function* recordChange(sql: Sql): Steps<void> {
  yield* sql.kernel.lockConnectionChanges()
  yield* sql.kernel.widenRowSecurity({ tenants: true })
  const { number } = yield* sql.one<{ number: number }>(LAST_CHANGE)
  yield* sql.run('update {tenants} set connections_changed = :number where tenant_id = :tenant', { number: number + 1 })
  yield* sql.kernel.notify('connections')
  yield* sql.kernel.notify()
}

function* findConnection(sql: Sql, name: string, lock: '' | '{for_update}' = ''): Steps<Connection | null> {
  const found = yield* sql.get<ConnectionRow>(`select ${COLUMNS} from {connections} ${WHERE} ${lock}`, { name })
  return found === undefined ? null : toConnection(found)
}

function describeChange(provider: string, account: ConnectionAccount | null, reason: string): string {
  return [provider, ...(account === null ? [] : [`account ${account.id}`]), ...(reason === '' ? [] : [reason])].join(
    '; ',
  )
}

interface ConnectionRow {
  name: string
  provider: string
  status: ConnectionStatus
  status_reason: string | null
  settings: string
  scopes: string
  account: string | null
  credentials_version: number
  version: number
  created_at: number
  updated_at: number
}

/** The columns of a connection are null if its tenant has none. */
interface ListedRow extends Pick<ConnectionRow, 'provider' | 'status' | 'status_reason' | 'version' | 'updated_at'> {
  tenant: string
  number: number
  name: string | null
}

function toConnection(row: ConnectionRow): Connection {
  return {
    name: row.name,
    provider: row.provider,
    status: row.status,
    statusReason: row.status_reason,
    settings: JSON.parse(row.settings) as JsonObject,
    scopes: JSON.parse(row.scopes) as string[],
    account: row.account === null ? null : (JSON.parse(row.account) as ConnectionAccount),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    version: row.version,
    credentialsVersion: row.credentials_version,
  }
}
