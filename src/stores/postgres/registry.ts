import type {
  Acquired, AcquireRequest, AuditEntry, BeginRequest, Begun, Checkpoint, CycleReport, Held,
  Inflight, Lease, SyncRef,
} from '../../contract/index.ts'
import { conflictEntry } from '../kit/audit-entries.ts'
import { checkBound, repaired, type BoundRow } from '../kit/check-bound.ts'
import { NEVER_RUN, toCheckpoint, toInflight, type RegistryEntry } from '../kit/registry-rows.ts'
import { tenantErased } from '../kit/tenant-erased.ts'
import { linkText } from '../../registry/chain.ts'
import { withoutNul } from '../kit/without-nul.ts'
import type { Session, Transaction } from './connection.ts'
import { tell } from './listen.ts'
import { NOW_MS } from './now.ts'
import { ensureTables, readTables } from './table.ts'

/** Leases, checkpoints and the record of cycles: who may write, and from where. */

export function acquire(session: Session, ref: SyncRef, request: AcquireRequest): Promise<Acquired | Held> {
  return session.connection.write(session.tenant, async (transaction) => {
    const found = await ensureEntry(transaction, ref, request.byItself)
    const bound = await readBound(transaction, ref)
    if (request.forRepair !== true) checkBound(ref, found, bound)
    const repair = request.forRepair === true ? repaired(found, bound) : found
    const entry = { ...found, ...repair }
    if (entry.holder !== null && entry.held_until! > entry.now && entry.holder !== request.evict) {
      return { kind: 'held' as const, by: entry.holder, until: entry.held_until! }
    }
    if (repair !== found) writeRepaired(transaction, entry, bound)
    const epoch = entry.epoch + 1
    transaction.send(
      'update tidemark.registry set epoch = $3, holder = $4, held_since = $5, held_until = $6 where tenant_id = $1 and sync_id = $2',
      session.tenant, entry.sync_id, epoch, request.holder, entry.now, entry.now + request.ttlMs,
    )
    return { kind: 'acquired' as const, lease: { ref, holder: request.holder, epoch }, checkpoint: toCheckpoint(entry) }
  })
}

export function renew(session: Session, lease: Lease, request: { ttlMs: number; at: number }): Promise<boolean> {
  return session.connection.write(session.tenant, async (transaction) => {
    const entry = await heldEntry(transaction, lease)
    if (entry === null) return false
    transaction.send(
      'update tidemark.registry set held_until = greatest(held_until, $3) where tenant_id = $1 and sync_id = $2',
      session.tenant, entry.sync_id, entry.now + request.ttlMs,
    )
    return true
  })
}

export function release(session: Session, lease: Lease, report?: CycleReport): Promise<void> {
  const { tenant } = session
  return session.connection.write(tenant, async (transaction) => {
    const isConflict = report?.error?.code === 'VERSION_CONFLICT'
    if (isConflict) await lockTenant(transaction)
    const entry = await heldEntry(transaction, lease)
    if (entry === null) return
    transaction.send('update tidemark.registry set holder = null, held_since = null, held_until = null where tenant_id = $1 and sync_id = $2', tenant, entry.sync_id)
    tell(transaction)
    if (report === undefined) return
    const message = withoutNul(report.error?.message ?? null)
    transaction.send(
      `update tidemark.cycles set ended_at = $3, stop_reason = $4, retries = retries + $5, waited_ms = waited_ms + $6, error_code = $7, error_message = $8
       where tenant_id = $1 and cycle_id = $2`,
      tenant, report.cycle, report.endedAt, report.stopReason, report.retries, report.waitedMs, report.error?.code ?? null, message,
    )
    if (report.stopReason === 'complete') {
      transaction.send(
        `update tidemark.registry set failures = 0, error_code = null, error_message = null, error_at = null, retry_at = null, last_success_at = $3
         where tenant_id = $1 and sync_id = $2`,
        tenant, entry.sync_id, report.endedAt,
      )
    } else if (report.error !== null) {
      transaction.send(
        `update tidemark.registry set failures = ${report.isHeldBack === true ? 'greatest(failures, 1)' : 'failures + 1'}, error_code = $3, error_message = $4, error_at = $5, retry_at = $6
         where tenant_id = $1 and sync_id = $2`,
        tenant, entry.sync_id, report.error.code, message, report.endedAt, report.retryAt,
      )
      if (isConflict) writeAudit(transaction, entry, conflictEntry(entry.version, report))
    }
  })
}

export function begin(session: Session, lease: Lease, request: BeginRequest): Promise<Begun | null> {
  const { tenant } = session
  return session.connection.write(tenant, async (transaction) => {
    const { sequence: position } = await lockTenant(transaction)
    // Two statements sent together: the second sees what the last holder of the row's lock committed.
    const [entry, bound] = await Promise.all([heldEntry(transaction, lease), readBound(transaction, lease.ref)])
    if (entry === null) return null
    checkBound(lease.ref, entry, bound)
    const known = await readTables(transaction, request.databases)
    const columns = Object.fromEntries(request.databases.map((name) => [name, known.get(name)?.kinds ?? []]))
    await ensureTables(transaction, known, Object.fromEntries(request.databases.map((name) => [name, []])))
    transaction.send('update tidemark.registry set triggered_at = null where tenant_id = $1 and sync_id = $2', tenant, entry.sync_id)
    const unfinished = toInflight(entry)
    if (unfinished !== null && !request.fresh && unfinished.mode === request.mode) {
      transaction.send(
        'update tidemark.cycles set ended_at = null, stop_reason = null, error_code = null, error_message = null where tenant_id = $1 and cycle_id = $2',
        tenant, unfinished.cycle,
      )
      return { inflight: unfinished, resumed: true, position, columns }
    }
    if (unfinished !== null) {
      forgetSeen(transaction, unfinished.cycle)
      closeCycle(transaction, unfinished.cycle)
    }
    // A replace cycle pages from the start; an incremental one goes on from what is committed.
    const state = request.mode === 'replace' ? null : entry.committed
    const { cycle } = (await transaction.get<{ cycle: number }>(
      `insert into tidemark.cycles (tenant_id, sync_id, mode, trigger, started_at, start_sequence, page, has_state) values ($1, $2, $3, $4, $5, $6, 0, $7)
       returning cycle_id as cycle`,
      tenant, entry.sync_id, request.mode, request.trigger, request.at, position, state !== null,
    ))!
    const inflight: Inflight = { cycle, mode: request.mode, page: 0, state, startedAt: request.at, scope: null, tidemark: null, guard: null, startSequence: position }
    writeInflight(transaction, entry.sync_id, inflight)
    return { inflight, resumed: false, position, columns }
  })
}

export function read(session: Session, ref: SyncRef, { forRepair = false }: { forRepair?: boolean } = {}): Promise<Checkpoint> {
  return session.connection.read(session.tenant, async (transaction) => {
    // One statement, so that the row and what it is compared with are of the same moment.
    const found = (await transaction.get<RegistryEntry & BoundRow>(
      `select g.*, b.* from (select) as one left join tidemark.registry g on g.tenant_id = $1 and g.connector_id = $2 and g.stream_id = $3 cross join lateral (${BOUND}) b`,
      transaction.tenant, ref.worker, ref.sync,
    ))!
    const entry = found.sync_id === null ? undefined : found
    if (!forRepair) checkBound(ref, entry, found)
    return toCheckpoint(forRepair ? repaired(entry ?? NEVER_RUN, found) : entry)
  })
}

// ── what the commit needs too ────────────────────────────────────────────────────────────────────────────────────────

interface TenantRow {
  readonly sequence: number
  readonly committed_at: number
  readonly erased: boolean
  readonly epoch: number
}

/** With the database's clock when the row was read. */
type TimedEntry = RegistryEntry & { readonly now: number }

/**
 * The entry if the lease is still the newest; null when it is not (invariant 3). Expiry alone takes nothing away. The
 * row stays locked, so that nobody takes the lease over between this look and the end of the transaction.
 */
export async function heldEntry(transaction: Transaction, lease: Lease): Promise<TimedEntry | null> {
  const entry = await findEntry(transaction, lease.ref, 'for update')
  return entry !== undefined && entry.epoch === lease.epoch && entry.holder === lease.holder ? entry : null
}

/**
 * Invariant 7 stands on this lock. Sequences are given out while it is held, and it is let go only when the transaction
 * ends, after its entries have become visible: whoever gets the next number finds all smaller ones committed or undone,
 * so no reader sees n + 1 before n. A sequence of PostgreSQL's own gives numbers before it is known who commits first.
 *
 * It is also the first lock of every transaction that takes it: rows of the registry, of webhooks and all others are locked
 * after it, never before. A transaction without it locks one row of the registry or one webhook, and what belongs to that.
 */
export async function lockTenant(transaction: Transaction): Promise<TenantRow> {
  const lock = () => transaction.get<TenantRow>(
    'select sequence, committed_at, erased, epoch from tidemark.tenants where tenant_id = $1 for update', transaction.tenant,
  )
  const tenant = await lock()
  if (tenant !== undefined) return tenant
  await transaction.run('insert into tidemark.tenants (tenant_id) values ($1) on conflict do nothing', transaction.tenant)
  return (await lock())!
}

export function writeInflight(transaction: Transaction, syncId: number, inflight: Inflight | null): void {
  transaction.send(
    `update tidemark.registry set inflight_cycle = $3, inflight_mode = $4, inflight_page = $5, inflight_state = $6, inflight_started_at = $7, inflight_start_sequence = $8, inflight_scope = $9, inflight_tidemark = $10, inflight_guard = $11
     where tenant_id = $1 and sync_id = $2`,
    transaction.tenant, syncId, inflight?.cycle ?? null, inflight?.mode ?? null, inflight?.page ?? null, inflight?.state ?? null,
    inflight?.startedAt ?? null, inflight?.startSequence ?? null, withoutNul(inflight?.scope ?? null), withoutNul(inflight?.tidemark ?? null), inflight?.guard ?? null,
  )
}

/**
 * Chained to the entry before it, in the transaction of what it tells of. Null for what concerns the tenant as a whole.
 * The database joins the links itself: its row of the tenant is locked by then, and nothing has to be asked first.
 */
export function writeAudit(transaction: Transaction, entry: RegistryEntry | null, audit: AuditEntry): void {
  const told = { ...audit, actor: withoutNul(audit.actor), reason: withoutNul(audit.reason), epoch: entry?.epoch ?? 0 }
  const text = linkText({ ...told, worker: entry?.connector_id ?? null, sync: entry?.stream_id ?? null })
  transaction.send(
    `with head as (
       insert into tidemark.tenants (tenant_id, audit_head, audit_count) values ($1, encode(sha256(convert_to($11, 'UTF8')), 'hex'), 1)
       on conflict (tenant_id) do update set audit_head = encode(sha256(convert_to(tenants.audit_head || $11, 'UTF8')), 'hex'), audit_count = tenants.audit_count + 1
       returning audit_head
     )
     insert into tidemark.audit (tenant_id, sync_id, version, at, actor, action, reason, cycle_id, state, epoch, hash, connector_id, stream_id)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, audit_head, $12, $13 from head`,
    transaction.tenant, entry?.sync_id ?? 0, told.version, told.at, told.actor, told.action, told.reason, told.cycle, told.state, told.epoch, text,
    entry?.connector_id ?? null, entry?.stream_id ?? null,
  )
}

export function forgetSeen(transaction: Transaction, cycle: number): void {
  transaction.send('delete from tidemark.seen where tenant_id = $1 and cycle_id = $2', transaction.tenant, cycle)
}

/** The cycle is no longer the unfinished one of its sync. */
export function closeCycle(transaction: Transaction, cycle: number): void {
  transaction.send('update tidemark.cycles set page = null, has_state = null where tenant_id = $1 and cycle_id = $2', transaction.tenant, cycle)
}

/** See kit/check-bound.ts; of tenant $1, worker $2 and sync $3. */
const BOUND = `select m.version as moved_version, m.state is not null as moved_has_state, o.cycle_id as open_cycle, o.page as open_page, o.has_state as open_has_state
  from (select) as one
  left join lateral (
    select version, state from tidemark.audit where tenant_id = $1 and connector_id = $2 and stream_id = $3 and action in ('complete', 'set')
    order by audit_id desc limit 1
  ) m on true
  left join lateral (
    select cycle_id, page, has_state from tidemark.cycles where tenant_id = $1 and page is not null
      and sync_id = (select sync_id from tidemark.registry where tenant_id = $1 and connector_id = $2 and stream_id = $3)
    order by cycle_id desc limit 1
  ) o on true`

async function readBound(transaction: Transaction, { worker, sync }: SyncRef): Promise<BoundRow> {
  return (await transaction.get<BoundRow>(BOUND, transaction.tenant, worker, sync))!
}

function writeRepaired(transaction: Transaction, entry: RegistryEntry, { open_cycle: open }: BoundRow): void {
  transaction.send(
    'update tidemark.registry set version = $3, committed = null, committed_by = null where tenant_id = $1 and sync_id = $2', transaction.tenant, entry.sync_id, entry.version,
  )
  writeInflight(transaction, entry.sync_id, null)
  if (open === null) return
  forgetSeen(transaction, open)
  closeCycle(transaction, open)
}

function findEntry(transaction: Transaction, ref: SyncRef, lock: 'for update' | '' = ''): Promise<TimedEntry | undefined> {
  return transaction.get<TimedEntry>(
    `select *, ${NOW_MS} as now from tidemark.registry where tenant_id = $1 and connector_id = $2 and stream_id = $3 ${lock}`,
    transaction.tenant, ref.worker, ref.sync,
  )
}

/**
 * For what is the first of its name, and begins with this epoch. An erased tenant comes back by it, unless nobody asked.
 * An erasure under way is waited for.
 */
export async function welcomeTenant(transaction: Transaction, byItself = false): Promise<number> {
  const { erased, epoch } = await lockTenant(transaction)
  if (!erased) return epoch
  if (byItself) throw tenantErased(transaction.tenant)
  await transaction.run('update tidemark.tenants set erased = false where tenant_id = $1', transaction.tenant)
  return epoch
}

export async function ensureEntry(transaction: Transaction, ref: SyncRef, byItself = false): Promise<TimedEntry> {
  const entry = await findEntry(transaction, ref, 'for update')
  if (entry !== undefined) return entry
  const epoch = await welcomeTenant(transaction, byItself)
  await transaction.run(
    'insert into tidemark.registry (tenant_id, connector_id, stream_id, epoch) values ($1, $2, $3, $4) on conflict do nothing', transaction.tenant, ref.worker, ref.sync, epoch,
  )
  return (await findEntry(transaction, ref, 'for update'))!
}
