import type { Column, Commit, CommitOutcome, LandingCounts } from '../../contract/index.ts'
import { planLanding } from '../kit/plan-landing.ts'
import { identityOf } from '../kit/quarantine-identity.ts'
import { textArray, withoutNul } from './arrays.ts'
import { rollback, type Rollback, type Session, type Transaction } from './connection.ts'
import { forgetSeen, heldEntry, lockTenant, toCheckpoint, toInflight, writeAudit, writeInflight, type RegistryEntry } from './registry.ts'
import { findRows, touchRows, writeLog, writeRows } from './rows.ts'
import { rememberSeen, sweep } from './sweep.ts'
import { ensureViews, readDatabases } from './views.ts'

/** The one door. Everything below runs inside one transaction; a refusal undoes it. */
export function commit(session: Session, commit: Commit): Promise<CommitOutcome> {
  return session.connection.write(session.tenant, async (transaction) => {
    const entry = await heldEntry(transaction, commit.lease)
    if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })
    if (!isExpected(entry, commit)) return rollback<CommitOutcome>({ kind: 'conflict', checkpoint: toCheckpoint(entry) })
    return land(transaction, entry, commit)
  })
}

/** Invariants 1 to 3 stand on this: the version is the one read, the cycle is the unfinished one, the page is the next. */
function isExpected(entry: RegistryEntry, { version, move }: Commit): boolean {
  if (entry.version !== version) return false
  return move.kind === 'set' || (entry.inflight_cycle === move.cycle && entry.inflight_page === move.page - 1)
}

async function land(transaction: Transaction, entry: RegistryEntry, commit: Commit): Promise<CommitOutcome | Rollback<CommitOutcome>> {
  const inflight = toInflight(entry)
  const sweeps = inflight?.mode === 'replace'
  // Sent together and answered in this order: all that follows the lock sees what its last holder committed.
  const [tenant, owner, known, rows, waiting] = await Promise.all([
    lockTenant(transaction), findOwner(transaction, commit.owner), readDatabases(transaction), findRows(transaction, commit), isWaiting(transaction, entry),
  ])
  const ownerId = await ensureOwner(transaction, owner, commit.owner, sweeps)
  const plan = planLanding(commit, {
    writer: entry.sync_id, owner: ownerId, position: tenant.sequence, sweeps, find: rows.find,
    textOf: await rows.textsOfChanged(transaction, commit),
  })
  if (plan.overlap.length > 0) return rollback({ kind: 'overlap', keys: plan.overlap })

  // Invariant 7: the feed's time never stands still or goes back, whatever the clock does.
  const committedAt = Math.max(commit.at, tenant.committed_at + 1)
  const page = commit.move.kind === 'set' ? 0 : commit.move.page
  const databases = await ensureViews(transaction, known, columnsOf(commit))

  // From here on statements are only sent; whatever one of them meets, COMMIT is not reached.
  writeLog(transaction, plan, databases, committedAt)
  writeRows(transaction, plan, databases, entry.sync_id, ownerId)
  touchRows(transaction, plan, databases)
  if (sweeps) rememberSeen(transaction, plan, databases, ownerId, inflight!.cycle, page)
  writeQuarantine(transaction, entry, commit, page, waiting)

  let position = plan.position
  const limits = sweeps && commit.move.kind === 'complete' ? commit.move.sweep : null
  if (limits !== null) {
    const swept = await sweep(transaction, limits, {
      writer: entry.sync_id, owner: ownerId, cycle: inflight!.cycle, startSequence: inflight!.startSequence, position, committedAt,
    })
    if (swept.kind === 'braked') return rollback(swept)
    plan.counts.swept = swept.count
    position += swept.count
  }
  if (position > tenant.sequence) {
    transaction.send('update tidemark.tenants set sequence = $2, committed_at = $3 where tenant_id = $1', transaction.tenant, position, committedAt)
    transaction.send(
      'insert into tidemark.commits (tenant_id, committed_at, sync_id, cycle_id, page) values ($1, $2, $3, $4, $5)',
      transaction.tenant, committedAt, entry.sync_id, inflight?.cycle ?? 0, page,
    )
  }
  for (const [pacer, slotAt] of Object.entries(commit.pacers)) {
    transaction.send(
      `insert into tidemark.pacers (tenant_id, sync_id, pacer, slot_at) values ($1, $2, $3, $4)
       on conflict (tenant_id, sync_id, pacer) do update set slot_at = excluded.slot_at`,
      transaction.tenant, entry.sync_id, pacer, slotAt,
    )
  }
  if (inflight !== null) addToCycle(transaction, inflight.cycle, plan.counts)
  const version = moveCheckpoint(transaction, entry, commit)
  return { kind: 'landed', version, position, counts: plan.counts, paused: entry.paused }
}

/** Of every database the commit speaks of, also where no column was seen. */
function columnsOf(commit: Commit): Record<string, readonly Column[]> {
  const columns: Record<string, readonly Column[]> = { ...commit.columns }
  for (const { database } of commit.landings) columns[database] ??= []
  for (const { database } of commit.quarantined) columns[database] ??= []
  return columns
}

interface Owner {
  owner_id: number
  sweeps: boolean
}

function findOwner(transaction: Transaction, name: string): Promise<Owner | undefined> {
  return transaction.get<Owner>('select owner_id, sweeps from tidemark.owners where tenant_id = $1 and name = $2', transaction.tenant, name)
}

async function ensureOwner(transaction: Transaction, found: Owner | undefined, name: string, sweeps: boolean): Promise<number> {
  if (found !== undefined && (found.sweeps || !sweeps)) return found.owner_id
  const made = await transaction.get<Owner>(
    `insert into tidemark.owners (tenant_id, name, sweeps) values ($1, $2, $3)
     on conflict (tenant_id, name) do update set sweeps = owners.sweeps or excluded.sweeps returning owner_id, sweeps`,
    transaction.tenant, name, sweeps,
  )
  return made!.owner_id
}

// ── checkpoint, quarantine, cycle ────────────────────────────────────────────────────────────────────────────────────

function moveCheckpoint(transaction: Transaction, entry: RegistryEntry, { move, at }: Commit): number {
  const { tenant } = transaction
  switch (move.kind) {
    case 'continue':
      writeInflight(transaction, entry.sync_id, { ...toInflight(entry)!, page: move.page, state: move.state })
      return entry.version
    case 'abandon':
      writeInflight(transaction, entry.sync_id, null)
      forgetSeen(transaction, move.cycle)
      writeAudit(transaction, entry, { version: entry.version, at, actor: 'engine', action: 'abandon', reason: move.reason, cycle: move.cycle, state: null })
      return entry.version
    case 'complete':
      writeInflight(transaction, entry.sync_id, null)
      forgetSeen(transaction, move.cycle)
      transaction.send(
        `update tidemark.registry set version = $3, committed = $4, committed_by = $5, tidemark = coalesce($6, tidemark), scope = coalesce($7, scope),
         failures = 0, error_code = null, error_message = null, error_at = null, retry_at = null, last_success_at = $8 where tenant_id = $1 and sync_id = $2`,
        tenant, entry.sync_id, entry.version + 1, move.state, move.cycle, withoutNul(move.tidemark), withoutNul(move.scope), at,
      )
      // Here and not only at the release, which a runner may not live to see.
      transaction.send(
        "update tidemark.cycles set ended_at = $3, stop_reason = 'complete', error_code = null, error_message = null where tenant_id = $1 and cycle_id = $2",
        tenant, move.cycle, at,
      )
      writeAudit(transaction, entry, { version: entry.version + 1, at, actor: 'engine', action: 'complete', reason: '', cycle: move.cycle, state: move.state })
      return entry.version + 1
    case 'set':
      if (entry.inflight_cycle !== null) forgetSeen(transaction, entry.inflight_cycle)
      writeInflight(transaction, entry.sync_id, null)
      transaction.send(
        'update tidemark.registry set version = $3, committed = $4, committed_by = null where tenant_id = $1 and sync_id = $2',
        tenant, entry.sync_id, entry.version + 1, move.state,
      )
      writeAudit(transaction, entry, { version: entry.version + 1, at, actor: move.actor, action: 'set', reason: move.reason, cycle: null, state: move.state })
      return entry.version + 1
  }
}

async function isWaiting(transaction: Transaction, entry: RegistryEntry): Promise<boolean> {
  return (await transaction.get('select from tidemark.quarantine where tenant_id = $1 and sync_id = $2 limit 1', transaction.tenant, entry.sync_id)) !== undefined
}

function writeQuarantine(transaction: Transaction, entry: RegistryEntry, commit: Commit, page: number, waiting: boolean): void {
  const { tenant } = transaction
  // A key that lands has left quarantine.
  if (waiting && commit.landings.length > 0) {
    transaction.send(
      `delete from tidemark.quarantine q using unnest($3::text[], $4::text[]) as landed (database_name, identity)
       where q.tenant_id = $1 and q.sync_id = $2 and q.database_name = landed.database_name and q.identity = landed.identity`,
      tenant, entry.sync_id, textArray(commit.landings.map(({ database }) => database)), textArray(commit.landings.map((landing) => identityOf(landing))),
    )
  }
  if (commit.quarantined.length === 0) return
  // The last word of a page on a record counts; one statement may not touch an entry twice.
  const items = [...new Map(commit.quarantined.map((item) => [JSON.stringify([item.database, identityOf(item)]), item])).values()]
  transaction.send(
    `insert into tidemark.quarantine (tenant_id, sync_id, cycle_id, page, at, database_name, identity, key, code, message, text)
     select $1, $2, $3, $4, $5, * from unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
     on conflict (tenant_id, sync_id, database_name, identity) do update
     set code = excluded.code, message = excluded.message, text = excluded.text, cycle_id = excluded.cycle_id, page = excluded.page, at = excluded.at`,
    tenant, entry.sync_id, entry.inflight_cycle ?? 0, page, commit.at,
    textArray(items.map(({ database }) => database)), textArray(items.map((item) => identityOf(item))), textArray(items.map(({ key }) => key)),
    textArray(items.map(({ code }) => code)), textArray(items.map(({ message }) => withoutNul(message))), textArray(items.map(({ text }) => withoutNul(text))),
  )
}

function addToCycle(transaction: Transaction, cycle: number, counts: LandingCounts): void {
  transaction.send(
    `update tidemark.cycles set pages = pages + 1, created = created + $3, updated = updated + $4, deleted = deleted + $5, swept = swept + $6,
     unchanged = unchanged + $7, stale = stale + $8, missing = missing + $9, quarantined = quarantined + $10 where tenant_id = $1 and cycle_id = $2`,
    transaction.tenant, cycle, counts.created, counts.updated, counts.deleted, counts.swept, counts.unchanged, counts.stale, counts.missing, counts.quarantined,
  )
}
