import type {
  Acquired, AcquireRequest, AuditEntry, BeginRequest, Begun, Checkpoint, Column, CycleReport, Held,
  Inflight, Lease, SyncRef,
} from '../../contract/index.ts'
import { conflictEntry } from '../kit/audit-entries.ts'
import { checkBound, repaired, type BoundRow } from '../kit/check-bound.ts'
import { NEVER_RUN, toCheckpoint, toInflight, type RegistryEntry } from '../kit/registry-rows.ts'
import { tenantErased } from '../kit/tenant-erased.ts'
import { linkHash, linkText } from '../../registry/chain.ts'
import type { Session } from './connection.ts'
import { ensureTable } from './table.ts'

/** Leases, checkpoints and the record of cycles: who may write, and from where. */

export function acquire(session: Session, ref: SyncRef, request: AcquireRequest): Acquired | Held {
  const { connection } = session
  return connection.write(() => {
    const found = ensureEntry(session, ref, request.byItself)
    const bound = readBound(session, ref)
    if (request.forRepair !== true) checkBound(ref, found, bound)
    const entry = request.forRepair === true ? repaired(found, bound) : found
    if (entry.holder !== null && entry.held_until! > request.at && entry.holder !== request.evict) {
      return { kind: 'held' as const, by: entry.holder, until: entry.held_until! }
    }
    if (entry !== found) writeRepaired(session, entry, bound)
    const epoch = entry.epoch + 1
    connection.run(
      'update tidemark_registry set epoch = ?, holder = ?, held_since = ?, held_until = ? where tenant_id = ? and sync_id = ?',
      epoch, request.holder, request.at, request.at + request.ttlMs, session.tenantId, entry.sync_id,
    )
    return { kind: 'acquired' as const, lease: { ref, holder: request.holder, epoch }, checkpoint: toCheckpoint(entry) }
  })
}

export function renew(session: Session, lease: Lease, request: { ttlMs: number; at: number }): boolean {
  return session.connection.write(() => {
    const entry = heldEntry(session, lease)
    if (entry === null) return false
    extendLease(session, entry, request.at + request.ttlMs)
    return true
  })
}

export function release(session: Session, lease: Lease, report?: CycleReport): void {
  const { connection, tenantId } = session
  connection.write(() => {
    const entry = heldEntry(session, lease)
    if (entry === null) return
    connection.run('update tidemark_registry set holder = null, held_since = null, held_until = null where tenant_id = ? and sync_id = ?', tenantId, entry.sync_id)
    if (report === undefined) return
    connection.run(
      `update tidemark_cycles set ended_at = ?, stop_reason = ?, retries = retries + ?, waited_ms = waited_ms + ?, error_code = ?, error_message = ?
       where tenant_id = ? and cycle_id = ?`,
      report.endedAt, report.stopReason, report.retries, report.waitedMs, report.error?.code ?? null, report.error?.message ?? null,
      tenantId, report.cycle,
    )
    if (report.stopReason === 'complete') {
      connection.run(
        `update tidemark_registry set failures = 0, error_code = null, error_message = null, error_at = null, retry_at = null, last_success_at = ?
         where tenant_id = ? and sync_id = ?`,
        report.endedAt, tenantId, entry.sync_id,
      )
    } else if (report.error !== null) {
      connection.run(
        `update tidemark_registry set failures = ${report.isHeldBack === true ? 'max(failures, 1)' : 'failures + 1'}, error_code = ?, error_message = ?, error_at = ?, retry_at = ?
         where tenant_id = ? and sync_id = ?`,
        report.error.code, report.error.message, report.endedAt, report.retryAt, tenantId, entry.sync_id,
      )
      if (report.error.code === 'VERSION_CONFLICT') writeAudit(session, entry, conflictEntry(entry.version, report))
    }
  })
}

export function begin(session: Session, lease: Lease, request: BeginRequest): Begun | null {
  const { connection, tenantId } = session
  return connection.write(() => {
    const entry = heldEntry(session, lease)
    if (entry === null) return null
    checkBound(lease.ref, entry, readBound(session, lease.ref))
    for (const database of request.databases) ensureTable(session, database, [])
    const columns = columnsOf(session, request.databases)
    connection.run('update tidemark_registry set triggered_at = null where tenant_id = ? and sync_id = ?', tenantId, entry.sync_id)
    const position = readSequence(session)
    const unfinished = toInflight(entry)
    if (unfinished !== null && !request.fresh && unfinished.mode === request.mode) {
      connection.run(
        'update tidemark_cycles set ended_at = null, stop_reason = null, error_code = null, error_message = null where tenant_id = ? and cycle_id = ?',
        tenantId, unfinished.cycle,
      )
      return { inflight: unfinished, resumed: true, position, columns }
    }
    if (unfinished !== null) {
      forgetSeen(session, unfinished.cycle)
      closeCycle(session, unfinished.cycle)
    }
    // A replace cycle pages from the start; an incremental one goes on from what is committed.
    const state = request.mode === 'replace' ? null : entry.committed
    const cycle = connection.run(
      'insert into tidemark_cycles (tenant_id, sync_id, mode, trigger, started_at, start_sequence, page, has_state) values (?, ?, ?, ?, ?, ?, 0, ?)',
      tenantId, entry.sync_id, request.mode, request.trigger, request.at, position, Number(state !== null),
    ).lastInsertRowid
    const inflight: Inflight = { cycle, mode: request.mode, page: 0, state, startedAt: request.at, scope: null, tidemark: null, guard: null, startSequence: position }
    writeInflight(session, entry.sync_id, inflight)
    return { inflight, resumed: false, position, columns }
  })
}

function columnsOf({ connection, tenantId }: Session, databases: readonly string[]): Begun['columns'] {
  return Object.fromEntries(databases.map((name) => {
    const { columns } = connection.get<{ columns: string }>('select columns from tidemark_databases where tenant_id = ? and name = ?', tenantId, name)!
    return [name, JSON.parse(columns) as Column[]]
  }))
}

export function read(session: Session, ref: SyncRef, { forRepair = false }: { forRepair?: boolean } = {}): Checkpoint {
  const entry = findEntry(session, ref)
  const bound = readBound(session, ref)
  if (!forRepair) checkBound(ref, entry, bound)
  return toCheckpoint(forRepair ? repaired(entry ?? NEVER_RUN, bound) : entry)
}

// ── what the commit needs too ────────────────────────────────────────────────────────────────────────────────────────

/** The entry if the lease is still the newest; null when it is not (invariant 3). Expiry alone takes nothing away. */
export function heldEntry(session: Session, lease: Lease): RegistryEntry | null {
  const entry = findEntry(session, lease.ref)
  return entry !== undefined && entry.epoch === lease.epoch && entry.holder === lease.holder ? entry : null
}

export function extendLease(session: Session, entry: RegistryEntry, until: number): void {
  session.connection.run(
    'update tidemark_registry set held_until = max(held_until, ?) where tenant_id = ? and sync_id = ?', until, session.tenantId, entry.sync_id,
  )
}

export function writeInflight(session: Session, syncId: number, inflight: Inflight | null): void {
  session.connection.run(
    `update tidemark_registry set inflight_cycle = ?, inflight_mode = ?, inflight_page = ?, inflight_state = ?, inflight_started_at = ?, inflight_scope = ?, inflight_tidemark = ?, inflight_guard = ?, inflight_start_sequence = ?
     where tenant_id = ? and sync_id = ?`,
    inflight?.cycle ?? null, inflight?.mode ?? null, inflight?.page ?? null, inflight?.state ?? null,
    inflight?.startedAt ?? null, inflight?.scope ?? null, inflight?.tidemark ?? null, inflight?.guard ?? null, inflight?.startSequence ?? null, session.tenantId, syncId,
  )
}

/** Chained to the entry before it, in the transaction of what it tells of. Null for what concerns the tenant as a whole. */
export function writeAudit(session: Session, entry: RegistryEntry | null, audit: AuditEntry): void {
  const { connection, tenantId } = session
  const { audit_head: previous } = connection.get<{ audit_head: string }>('select audit_head from tidemark_tenants where tenant_id = ?', tenantId)!
  const chained = { ...audit, worker: entry?.connector_id ?? null, sync: entry?.stream_id ?? null, epoch: entry?.epoch ?? 0 }
  const head = linkHash(previous, linkText(chained))
  connection.run('update tidemark_tenants set audit_head = ?, audit_count = audit_count + 1 where tenant_id = ?', head, tenantId)
  connection.run(
    `insert into tidemark_audit (tenant_id, sync_id, connector_id, stream_id, version, at, actor, action, reason, cycle_id, state, epoch, hash)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    tenantId, entry?.sync_id ?? 0, chained.worker, chained.sync, audit.version, audit.at, audit.actor, audit.action, audit.reason, audit.cycle, audit.state, chained.epoch, head,
  )
}

export function forgetSeen(session: Session, cycle: number): void {
  session.connection.run('delete from tidemark_seen where tenant_id = ? and cycle_id = ?', session.tenantId, cycle)
}

export function readSequence(session: Session): number {
  return session.connection.get<{ sequence: number }>('select sequence from tidemark_tenants where tenant_id = ?', session.tenantId)!.sequence
}

/** The cycle is no longer the unfinished one of its sync. */
export function closeCycle({ connection, tenantId }: Session, cycle: number): void {
  connection.run('update tidemark_cycles set page = null, has_state = null where tenant_id = ? and cycle_id = ?', tenantId, cycle)
}

function readBound({ connection, tenantId }: Session, { worker, sync }: SyncRef): BoundRow {
  return connection.get<BoundRow>(
    `select m.version as moved_version, m.state is not null as moved_has_state, o.cycle_id as open_cycle, o.page as open_page, o.has_state as open_has_state
     from (select 1)
     left join (select version, state from tidemark_audit where tenant_id = ?1 and connector_id = ?2 and stream_id = ?3 and action in ('complete', 'set')
                order by audit_id desc limit 1) m on true
     left join (select cycle_id, page, has_state from tidemark_cycles where page is not null
                and sync_id = (select sync_id from tidemark_registry where tenant_id = ?1 and connector_id = ?2 and stream_id = ?3)
                order by cycle_id desc limit 1) o on true`,
    tenantId, worker, sync,
  )!
}

function writeRepaired(session: Session, entry: RegistryEntry, { open_cycle: open }: BoundRow): void {
  const { connection, tenantId } = session
  connection.run('update tidemark_registry set version = ?, committed = null, committed_by = null where tenant_id = ? and sync_id = ?', entry.version, tenantId, entry.sync_id)
  writeInflight(session, entry.sync_id, null)
  if (open === null) return
  forgetSeen(session, open)
  closeCycle(session, open)
}

function findEntry(session: Session, ref: SyncRef): RegistryEntry | undefined {
  return session.connection.get<RegistryEntry>(
    'select * from tidemark_registry where tenant_id = ? and connector_id = ? and stream_id = ?', session.tenantId, ref.worker, ref.sync,
  )
}

export function ensureEntry(session: Session, ref: SyncRef, byItself = false): RegistryEntry {
  const found = findEntry(session, ref)
  if (found !== undefined) return found
  const epoch = welcomeTenant(session, byItself)
  session.connection.run('insert into tidemark_registry (tenant_id, connector_id, stream_id, epoch) values (?, ?, ?, ?)', session.tenantId, ref.worker, ref.sync, epoch)
  return findEntry(session, ref)!
}

/** For what is the first of its name, and begins with this epoch. An erased tenant comes back by it, unless nobody asked. */
export function welcomeTenant(session: Session, byItself = false): number {
  const { connection, tenantId } = session
  if (byItself) refuseErased(session)
  connection.run('update tidemark_tenants set erased = 0 where tenant_id = ? and erased = 1', tenantId)
  return connection.get<{ epoch: number }>('select epoch from tidemark_tenants where tenant_id = ?', tenantId)!.epoch
}

export function refuseErased({ connection, tenant, tenantId }: Session): void {
  if (connection.get('select 1 from tidemark_tenants where tenant_id = ? and erased = 1', tenantId) !== undefined) throw tenantErased(tenant)
}
