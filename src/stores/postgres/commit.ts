import type { Column, Commit, CommitOutcome, LandingCounts, SyncRef } from '../../contract/index.ts'
import { planLanding } from '../kit/plan-landing.ts'
import { identityOf } from '../kit/quarantine-identity.ts'
import { toCheckpoint, toInflight, type RegistryEntry } from '../kit/registry-rows.ts'
import { bigintArray, textArray, withoutNul } from './arrays.ts'
import { rollback, type Rollback, type Session, type Transaction } from './connection.ts'
import { insertMany } from './insert-many.ts'
import { forgetSeen, heldEntry, lockTenant, writeAudit, writeInflight } from './registry.ts'
import { findRows, touchRows, writeLog, writeRows, type FoundRows } from './rows.ts'
import { rememberSeen, sweep, tellOtherSweeps, type Owner } from './sweep.ts'
import { ensureViews, readDatabases, type Database } from './views.ts'

/** The one door. Everything below runs inside one transaction; a refusal undoes it. */
export function commit(session: Session, commit: Commit): Promise<CommitOutcome> {
  return session.connection.write(session.tenant, async (transaction) => {
    // Sent together and answered in this order: all that follows the two locks sees what their last holders committed.
    const [entry, tenant, owners, known, rows, waiting] = await Promise.all([
      heldEntry(transaction, commit.lease), lockTenant(transaction), readOwners(transaction), readDatabases(transaction),
      findRows(transaction, commit), isWaiting(transaction, commit.lease.ref),
    ])
    if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })
    if (!isExpected(entry, commit)) return rollback<CommitOutcome>({ kind: 'conflict', checkpoint: toCheckpoint(entry) })
    return land(transaction, commit, { entry, tenant, owners, known, rows, waiting })
  })
}

/** Invariants 1 to 3 stand on this: the version is the one read, the cycle is the unfinished one, the page is the next. */
function isExpected(entry: RegistryEntry, { version, move }: Commit): boolean {
  if (entry.version !== version) return false
  return move.kind === 'set' || move.kind === 'replay' || (entry.inflight_cycle === move.cycle && entry.inflight_page === move.page - 1)
}

interface Standing {
  readonly entry: RegistryEntry
  readonly tenant: { readonly sequence: number; readonly committed_at: number }
  readonly owners: readonly Owner[]
  readonly known: ReadonlyMap<string, Database>
  readonly rows: FoundRows
  /** The sync has records in quarantine. */
  readonly waiting: boolean
}

async function land(transaction: Transaction, commit: Commit, { entry, tenant, owners, known, rows, waiting }: Standing): Promise<CommitOutcome | Rollback<CommitOutcome>> {
  // What is replayed belongs to no cycle: one that is unfinished has not seen it.
  const inflight = commit.move.kind === 'replay' ? null : toInflight(entry)
  const sweeps = inflight?.mode === 'replace'
  const owner = await ensureOwner(transaction, owners, commit.owner, sweeps)
  const others = await otherOwners(transaction, owners, commit)
  const plan = planLanding(commit, {
    writer: entry.sync_id, owner, position: tenant.sequence, sweeps, find: rows.find, textOf: await rows.textsOfChanged(transaction, commit),
  })
  if (plan.overlap.length > 0) return rollback({ kind: 'overlap', keys: plan.overlap })

  // Invariant 7: the feed's time never stands still or goes back, whatever the clock does.
  const committedAt = Math.max(commit.at, tenant.committed_at + 1)
  const page = 'page' in commit.move ? commit.move.page : 0
  const databases = await ensureViews(transaction, known, columnsOf(commit))

  // From here on statements are only sent; whatever one of them meets, COMMIT is not reached. The log, with the records
  // in it, comes last: while it is put together here, the server is already at work on the rows.
  writeRows(transaction, plan, databases, entry.sync_id, (database) => others.get(database) ?? owner)
  touchRows(transaction, plan, databases, rows.find)
  if (sweeps) rememberSeen(transaction, plan, databases, { owner, owners, find: rows.find, cycle: inflight!.cycle, page })
  tellOtherSweeps(transaction, plan, entry.sync_id)
  writeLog(transaction, plan, databases, committedAt)
  writeQuarantine(transaction, entry, commit, page, waiting)

  let position = plan.position
  const logs = position > tenant.sequence
  // What the sweep deletes comes after the page, at a time of its own: within one time the keys are in order (A9).
  const sweptAt = logs ? committedAt + 1 : committedAt
  const limits = sweeps && commit.move.kind === 'complete' ? commit.move.sweep : null
  if (limits !== null) {
    const swept = await sweep(transaction, limits, {
      writer: entry.sync_id, owner, cycle: inflight!.cycle, startSequence: inflight!.startSequence, position, committedAt: sweptAt,
    })
    if (swept.kind === 'braked') return rollback(swept)
    plan.counts.swept = swept.count
    position += swept.count
  }
  if (position > tenant.sequence) {
    const times = [...(logs ? [committedAt] : []), ...(plan.counts.swept > 0 ? [sweptAt] : [])]
    transaction.send('update tidemark.tenants set sequence = $2, committed_at = $3 where tenant_id = $1', transaction.tenant, position, times.at(-1)!)
    for (const at of times) {
      transaction.send(
        'insert into tidemark.commits (tenant_id, committed_at, sync_id, cycle_id, page) values ($1, $2, $3, $4, $5)',
        transaction.tenant, at, entry.sync_id, inflight?.cycle ?? 0, page,
      )
    }
  }
  if (inflight !== null) addToCycle(transaction, inflight.cycle, plan.counts)
  if (commit.drift !== undefined) writeAudit(transaction, entry, { version: entry.version, at: commit.at, actor: 'engine', action: 'drift', reason: commit.drift, cycle: inflight?.cycle ?? null, state: null })
  const version = moveCheckpoint(transaction, entry, commit)
  return { kind: 'landed', version, position, counts: plan.counts, paused: Boolean(entry.paused) }
}

/** Of every database the commit speaks of, also where no column was seen. */
function columnsOf(commit: Commit): Record<string, readonly Column[]> {
  const columns: Record<string, readonly Column[]> = { ...commit.columns }
  for (const { database } of commit.landings) columns[database] ??= []
  for (const { database } of commit.quarantined) columns[database] ??= []
  return columns
}

function readOwners(transaction: Transaction): Promise<Owner[]> {
  return transaction.all<Owner>('select owner_id as id, name, sweeps from tidemark.owners where tenant_id = $1', transaction.tenant)
}

/** By database, for those that are told. They sweep, if at all, by cycles of their own. */
async function otherOwners(transaction: Transaction, known: readonly Owner[], { owners = {} }: Commit): Promise<Map<string, number>> {
  const ids = new Map<string, number>()
  for (const [database, name] of Object.entries(owners)) ids.set(database, await ensureOwner(transaction, known, name, false))
  return ids
}

async function ensureOwner(transaction: Transaction, owners: readonly Owner[], name: string, sweeps: boolean): Promise<number> {
  const found = owners.find((owner) => owner.name === name)
  if (found !== undefined && (found.sweeps || !sweeps)) return found.id
  const { id } = (await transaction.get<{ id: number }>(
    `insert into tidemark.owners (tenant_id, name, sweeps) values ($1, $2, $3)
     on conflict (tenant_id, name) do update set sweeps = owners.sweeps or excluded.sweeps returning owner_id as id`,
    transaction.tenant, name, sweeps,
  ))!
  return id
}

// ── checkpoint, quarantine, cycle ────────────────────────────────────────────────────────────────────────────────────

function moveCheckpoint(transaction: Transaction, entry: RegistryEntry, { move, at }: Commit): number {
  const { tenant } = transaction
  switch (move.kind) {
    case 'continue':
      writeInflight(transaction, entry.sync_id, { ...toInflight(entry)!, page: move.page, state: move.state, scope: move.scope, tidemark: move.tidemark, guard: move.guard })
      return entry.version
    case 'abandon':
      writeInflight(transaction, entry.sync_id, null)
      forgetSeen(transaction, move.cycle)
      writeAudit(transaction, entry, { version: entry.version, at, actor: 'engine', action: 'abandon', reason: move.reason, cycle: move.cycle, state: null })
      return entry.version
    case 'replay':
      writeAudit(transaction, entry, { version: entry.version, at, actor: move.actor, action: 'replay', reason: move.reason, cycle: null, state: null })
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
        "update tidemark.cycles set ended_at = $3, stop_reason = 'complete', stop_word = $4, error_code = null, error_message = null where tenant_id = $1 and cycle_id = $2",
        tenant, move.cycle, at, move.stopWord ?? null,
      )
      writeAudit(transaction, entry, { version: entry.version + 1, at, actor: 'engine', action: 'complete', reason: '', cycle: move.cycle, state: move.state })
      return entry.version + 1
    case 'set':
      if (entry.inflight_cycle !== null) forgetSeen(transaction, entry.inflight_cycle)
      writeInflight(transaction, entry.sync_id, null)
      transaction.send(
        `update tidemark.registry set version = $3, committed = $4, committed_by = null, tidemark = null,
         failures = 0, error_code = null, error_message = null, error_at = null, retry_at = null where tenant_id = $1 and sync_id = $2`,
        tenant, entry.sync_id, entry.version + 1, move.state,
      )
      writeAudit(transaction, entry, { version: entry.version + 1, at, actor: move.actor, action: 'set', reason: move.reason, cycle: null, state: move.state })
      return entry.version + 1
  }
}

async function isWaiting(transaction: Transaction, { worker, sync }: SyncRef): Promise<boolean> {
  const { waiting } = (await transaction.get<{ waiting: boolean }>(
    `select exists (
       select from tidemark.quarantine where tenant_id = $1
         and sync_id = (select sync_id from tidemark.registry where tenant_id = $1 and connector_id = $2 and stream_id = $3)
     ) as waiting`, transaction.tenant, worker, sync,
  ))!
  return waiting
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
  if (commit.move.kind === 'replay') {
    transaction.send('delete from tidemark.quarantine where tenant_id = $1 and sync_id = $2 and quarantine_id = any($3::bigint[])', tenant, entry.sync_id, bigintArray(commit.move.superseded))
    transaction.send(
      `update tidemark.quarantine q set code = refused.code, message = refused.message
       from unnest($3::text[], $4::text[], $5::text[], $6::text[]) as refused (database_name, identity, code, message)
       where q.tenant_id = $1 and q.sync_id = $2 and q.database_name = refused.database_name and q.identity = refused.identity`,
      tenant, entry.sync_id, textArray(commit.quarantined.map(({ database }) => database)), textArray(commit.quarantined.map((item) => identityOf(item))),
      textArray(commit.quarantined.map(({ code }) => code)), textArray(commit.quarantined.map(({ message }) => withoutNul(message))),
    )
    return
  }
  // The last word of a page on a record counts; one statement may not touch an entry twice.
  const items = [...new Map(commit.quarantined.map((item) => [JSON.stringify([item.database, identityOf(item)]), item])).values()]
  insertMany(transaction, 'tidemark.quarantine', [
    { name: 'identity', type: 'text', values: items.map((item) => identityOf(item)) },
    { name: 'database_name', type: 'text', values: items.map(({ database }) => database) },
    { name: 'key', type: 'text', values: items.map(({ key }) => key) },
    { name: 'code', type: 'text', values: items.map(({ code }) => code) },
    { name: 'message', type: 'text', values: items.map(({ message }) => withoutNul(message)) },
    { name: 'text', type: 'text', values: items.map(({ text }) => withoutNul(text)) },
    { name: 'sync_id', type: 'integer', values: items.map(() => entry.sync_id) },
    { name: 'cycle_id', type: 'bigint', values: items.map(() => entry.inflight_cycle ?? 0) },
    { name: 'page', type: 'bigint', values: items.map(() => page) },
    { name: 'at', type: 'bigint', values: items.map(() => commit.at) },
  ], `on conflict (tenant_id, sync_id, database_name, identity) do update
    set code = excluded.code, message = excluded.message, text = excluded.text, cycle_id = excluded.cycle_id, page = excluded.page, at = excluded.at`)
}

function addToCycle(transaction: Transaction, cycle: number, counts: LandingCounts): void {
  transaction.send(
    `update tidemark.cycles set pages = pages + 1, created = created + $3, updated = updated + $4, deleted = deleted + $5, swept = swept + $6,
     unchanged = unchanged + $7, stale = stale + $8, missing = missing + $9, quarantined = quarantined + $10 where tenant_id = $1 and cycle_id = $2`,
    transaction.tenant, cycle, counts.created, counts.updated, counts.deleted, counts.swept, counts.unchanged, counts.stale, counts.missing, counts.quarantined,
  )
}
