import type { AuditEntry, Inflight, Lease, SyncRef } from '../../contract/index.ts'
import { hashLink, serializeLink } from '../../registry/audit-chain.ts'
import type { StateEvidenceRow } from './check-state-rollback.ts'
import type { RegistryEntry } from './registry-rows.ts'
import type { Sql, Steps } from './sql/port.ts'
import { createTenantErasedError } from './tenant-erased-error.ts'
import { replaceNul } from './replace-nul.ts'
import { required } from '../../values/required.ts'

/** Steps over the tables of tenants, syncs and cycles that leases, roles and commits share. */

/** The id of the sync `:worker`, `:sync`: resolved once per statement, so that indexes that begin with it apply. */
export const SYNC_ID_SQL =
  '(select sync_id from {registry} where tenant_id = :tenant and connector_id = :worker and stream_id = :sync)'

/** The row of a tenant, locked by every commit. */
export interface TenantRow {
  readonly sequence: number
  readonly committed_at: number
  readonly erased: boolean | number
  readonly epoch: number
}

/** Includes the time, at the read, of the clock that decides lease expiry. */
export type RegistryEntryWithNow = RegistryEntry & { readonly now: number }

/**
 * Creates the tenant's row if there is none, and locks it. Invariant 7 depends on this lock. Sequences are assigned
 * while it is held, and it is released only when the transaction ends, after its entries have become visible: the next
 * holder finds all smaller sequences committed or rolled back, so no reader sees n + 1 before n.
 *
 * It is also the first lock of every transaction that takes it: rows of the registry, of webhooks and of all other
 * tables are locked after it, never before. A transaction without it locks one registry row or one webhook, and the
 * rows that belong to it.
 */
export function* lockTenant(sql: Sql): Steps<TenantRow> {
  const lock = () =>
    sql.get<TenantRow>(
      'select sequence, committed_at, erased, epoch from {tenants} where tenant_id = :tenant {for_update}',
    )
  const tenant = yield* lock()
  if (tenant !== undefined) return tenant
  yield* sql.run('{insert_new} into {tenants} (tenant_id) values (:tenant) {or_nothing}')
  return required(yield* lock(), 'The row of the tenant')
}

/**
 * Returns the epoch that the first row of a name begins with. Locks the tenant, and waits for a running erasure. It
 * revives an erased tenant, unless a schedule made the request.
 */
export function* reviveTenant(sql: Sql, automatic = false): Steps<number> {
  const { erased, epoch } = yield* lockTenant(sql)
  if (!erased) return epoch
  if (automatic) throw createTenantErasedError(sql.tenant)
  yield* sql.run('update {tenants} set erased = false where tenant_id = :tenant')
  return epoch
}

export function findEntry(
  sql: Sql,
  { worker, sync }: SyncRef,
  { at = 0, lock = '' }: { at?: number; lock?: '' | '{for_update}' } = {},
): Steps<RegistryEntryWithNow | undefined> {
  return sql.get<RegistryEntryWithNow>(
    `select g.*, :now as now from {registry} g where g.tenant_id = :tenant and g.connector_id = :worker and g.stream_id = :sync ${lock}`,
    { worker, sync, at },
  )
}

/** Returns the sync's registry row, locked, and creates it if there is none. */
export function* ensureEntry(
  sql: Sql,
  ref: SyncRef,
  { at = 0, automatic = false }: { at?: number; automatic?: boolean | undefined } = {},
): Steps<RegistryEntryWithNow> {
  const lock = '{for_update}'
  const found = yield* findEntry(sql, ref, { at, lock })
  if (found !== undefined) return found
  const epoch = yield* reviveTenant(sql, automatic)
  yield* sql.run(
    '{insert_new} into {registry} (tenant_id, connector_id, stream_id, epoch) values (:tenant, :worker, :sync, :epoch) {or_nothing}',
    { worker: ref.worker, sync: ref.sync, epoch },
  )
  return required(yield* findEntry(sql, ref, { at, lock }), 'The registry entry of the sync')
}

/**
 * Invariant 3: fences off an old lease. Returns the entry if the lease has the newest epoch, null otherwise; expiry
 * alone does not revoke a lease. The row stays locked, so the lease cannot be taken over before the transaction ends.
 */
export function* findLeasedEntry(sql: Sql, lease: Lease, at = 0): Steps<RegistryEntryWithNow | null> {
  const entry = yield* findEntry(sql, lease.ref, { at, lock: '{for_update}' })
  return entry !== undefined && entry.epoch === lease.epoch && entry.holder === lease.holder ? entry : null
}

/** Replaces the unfinished cycle of a sync, or removes it. */
export function writeInflight(sql: Sql, syncId: number, inflight: Inflight | null): Steps<void> {
  return sql.send(
    `update {registry} set inflight_cycle = :cycle, inflight_mode = :mode, inflight_page = :page, inflight_state = :state, inflight_started_at = :startedAt,
       inflight_start_sequence = :startSequence, inflight_scope = :scope, inflight_tidemark = :tidemark, inflight_guard = :guard
     where tenant_id = :tenant and sync_id = :sync`,
    {
      sync: syncId,
      cycle: inflight?.cycle ?? null,
      mode: inflight?.mode ?? null,
      page: inflight?.page ?? null,
      state: inflight?.state ?? null,
      startedAt: inflight?.startedAt ?? null,
      startSequence: inflight?.startSequence ?? null,
      scope: replaceNul(inflight?.scope ?? null),
      tidemark: replaceNul(inflight?.tidemark ?? null),
      guard: inflight?.guardState ?? null,
    },
  )
}

/** Deletes the record of rows that a replace cycle returned. */
export function deleteSeen(sql: Sql, cycle: number): Steps<void> {
  return sql.send('delete from {seen} where tenant_id = :tenant and cycle_id = :cycle', { cycle })
}

/** Marks that the cycle is no longer the unfinished one of its sync. */
export function closeCycle(sql: Sql, cycle: number): Steps<void> {
  return sql.send('update {cycles} set page = null, has_state = null where tenant_id = :tenant and cycle_id = :cycle', {
    cycle,
  })
}

/**
 * Appends an audit entry, chained to the previous one, in the transaction it describes. Legal once the tenant is
 * locked. `entry` is null for an action on the tenant as a whole.
 */
export function* appendAuditEntry(sql: Sql, entry: RegistryEntry | null, audit: AuditEntry): Steps<void> {
  const chained = toAuditChainInput(entry, audit)
  const { head: previous } = yield* sql.one<{ head: string }>(
    'select audit_head as head from {tenants} where tenant_id = :tenant',
  )
  const hash = hashLink(previous, serializeLink(chained))
  yield* sql.send('update {tenants} set audit_head = :hash, audit_count = audit_count + 1 where tenant_id = :tenant', {
    hash,
  })
  yield* sql.send(
    `insert into {audit} (tenant_id, sync_id, connector_id, stream_id, version, at, actor, action, reason, cycle_id, state, epoch, hash)
     values (:tenant, :id, :worker, :sync, :version, :at, :actor, :action, :reason, :cycle, :state, :epoch, :hash)`,
    { id: entry?.sync_id ?? 0, ...chained, hash },
  )
}

/** Returns the entry with every field that its hash covers. */
export function toAuditChainInput(
  entry: RegistryEntry | null,
  { version, at, actor, action, reason, cycle, state }: AuditEntry,
) {
  return {
    version,
    at,
    actor: replaceNul(actor),
    action,
    reason: replaceNul(reason),
    cycle,
    state,
    worker: entry?.connector_id ?? null,
    sync: entry?.stream_id ?? null,
    epoch: entry?.epoch ?? 0,
  }
}

/** See kit/check-state-rollback.ts. */
export function* readStateEvidence(sql: Sql, { worker, sync }: SyncRef): Steps<StateEvidenceRow> {
  return yield* sql.one<StateEvidenceRow>(
    `select m.version as moved_version, m.state is not null as moved_has_state, o.cycle_id as open_cycle, o.page as open_page, o.has_state as open_has_state
     from (select 1 as one) one
     left join (select version, state from {audit} where tenant_id = :tenant and connector_id = :worker and stream_id = :sync and action in ('complete', 'set')
                order by audit_id desc limit 1) m on true
     left join (select cycle_id, page, has_state from {open_cycles} where tenant_id = :tenant and page is not null and sync_id = ${SYNC_ID_SQL}
                order by cycle_id desc limit 1) o on true`,
    { worker, sync },
  )
}
