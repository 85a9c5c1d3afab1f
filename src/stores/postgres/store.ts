import type { Store } from '../../contract/index.ts'
import * as keys from './api-keys.ts'
import { commit } from './commit.ts'
import { Connection, type ConnectionOptions, type Session } from './connection.ts'
import * as consumers from './consumers.ts'
import * as served from './feed.ts'
import { listen } from './listen.ts'
import { migrate } from './migrate.ts'
import type { MigrationProgress } from './move-tables.ts'
import * as pacers from './pacers.ts'
import { notePause, pauses } from './pauses.ts'
import * as reading from './reading.ts'
import * as registry from './registry.ts'
import { standings } from './standings.ts'
import * as tenants from './tenants.ts'
import * as sealed from './sealed-texts.ts'
import * as webhooks from './webhooks.ts'

export interface PostgresStoreOptions extends ConnectionOptions {
  readonly tenant?: string
  /** Told while records of an older version's store are moved to their tables. */
  readonly onMigration?: (progress: MigrationProgress) => void
}

/** Opens, and on first use makes, a store in the schema `tidemark` of a PostgreSQL database. On a streaming replica it can only be read. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const connection = new Connection(options)
  try {
    return storeOf({ connection, tenant: options.tenant ?? 'default', ...(await migrate(connection, { onProgress: options.onMigration })) }, options)
  } catch (error) {
    await connection.close()
    throw error
  }
}

function storeOf(session: Session, options: ConnectionOptions): Store {
  const { connection, tenant, isReplica } = session
  return {
    tenant,
    isReplica,
    forTenant: (other) => storeOf({ ...session, tenant: other }, options),
    tenants: () => tenants.tenants(session),
    erase: (by) => tenants.erase(session, by),
    close: () => connection.close(),
    acquire: (ref, request) => registry.acquire(session, ref, request),
    renew: (lease, request) => registry.renew(session, lease, request),
    release: (lease, report) => registry.release(session, lease, report),
    begin: (lease, request) => registry.begin(session, lease, request),
    commit: (request) => commit(session, request),
    read: (ref, options) => registry.read(session, ref, options),
    standings: (query) => standings(session, query),
    listen: (ear) => listen(options, ear),
    syncs: () => registry.syncs(session),
    signal: (ref, signal) => registry.signal(session, ref, signal),
    audit: (ref, { limit = 100 } = {}) => registry.audit(session, ref, limit),
    trail: (query) => registry.trail(session, query),
    wrappingKeys: () => registry.wrappingKeys(session),
    dataKeys: () => registry.dataKeys(session),
    putDataKey: (key, by) => registry.putDataKey(session, key, by),
    sealedTexts: (query) => sealed.sealedTexts(session, query),
    reseal: (text, newText) => sealed.reseal(session, text, newText),
    removeDataKey: (id, by) => sealed.removeDataKey(session, id, by),
    cycles: (ref, { limit = 100 } = {}) => registry.cycles(session, ref, limit),
    takeSlots: (request) => pacers.takeSlots(session, request),
    pacers: (worker) => pacers.pacers(session, worker),
    notePause: (request) => notePause(session, request),
    pauses: (query) => pauses(session, query),
    position: () => reading.position(session),
    changes: (query) => reading.changes(session, query),
    rows: (query) => reading.rows(session, query),
    row: (database, key) => reading.row(session, database, key),
    history: (database, key) => reading.history(session, database, key),
    databases: () => reading.databases(session),
    databaseNames: () => reading.databaseNames(session),
    quarantined: (query = {}) => reading.quarantined(session, query),
    feed: (query) => served.feed(session, query),
    sequenceBefore: (time) => served.sequenceBefore(session, time),
    compact: (request) => served.compact(session, request),
    cursorSecrets: (offer) => served.cursorSecrets(session, offer),
    apiKey: (id) => keys.apiKey(session, id),
    apiKeys: () => keys.apiKeys(session),
    addApiKey: (key, by) => keys.addApiKey(session, key, by),
    endApiKey: (id, endsAt, by) => keys.endApiKey(session, id, endsAt, by),
    consumers: () => consumers.consumers(session),
    putConsumer: (consumer, bounds) => consumers.putConsumer(session, consumer, bounds),
    removeConsumer: (name) => consumers.removeConsumer(session, name),
    countRequests: (window, counts) => consumers.countRequests(session, window, counts),
    webhooks: () => webhooks.webhooks(session),
    putWebhook: (settings, place, by) => webhooks.putWebhook(session, settings, place, by),
    editWebhook: (id, edit, by) => webhooks.editWebhook(session, id, edit, by),
    rotateWebhook: (id, secrets, by) => webhooks.rotateWebhook(session, id, secrets, by),
    removeWebhook: (id, by) => webhooks.removeWebhook(session, id, by),
    restartWebhook: (id, request) => webhooks.restartWebhook(session, id, request),
    switchWebhook: (id, disabled, by) => webhooks.switchWebhook(session, id, disabled, by),
    claimWebhook: (id, request) => webhooks.claimWebhook(session, id, request),
    renewWebhook: (claim, request) => webhooks.renewWebhook(session, claim, request),
    releaseWebhook: (claim) => webhooks.releaseWebhook(session, claim),
    webhookSecrets: (claim) => webhooks.webhookSecrets(session, claim),
    noteDeliveries: (claim, note) => webhooks.noteDeliveries(session, claim, note),
    deliveries: (query) => webhooks.deliveries(session, query),
    claimInbound: (message, claim) => webhooks.claimInbound(session, message, claim),
    keptInbound: (query) => webhooks.keptInbound(session, query),
    settleInbound: (message, settled) => webhooks.settleInbound(session, message, settled),
  }
}
