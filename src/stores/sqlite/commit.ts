import { SyncError, type Commit, type CommitOutcome } from '../../contract/index.ts'
import { allowDeletesEntry, driftEntry } from '../kit/audit-entries.ts'
import * as checkpoint from '../kit/checkpoint.ts'
import { planLanding, type LandingFacts } from '../kit/plan-landing.ts'
import { databasesWithoutColumns, DriftNotes, refuseRecords, withRefused } from '../kit/tables/schema-drift.ts'
import { sealingKeyOf } from '../kit/sealed-texts.ts'
import { toCheckpoint, toInflight, type RegistryEntry } from '../kit/registry-rows.ts'
import { rollback, type Rollback, type Session } from './connection.ts'
import { logged, writeCommits } from './commits.ts'
import { Encodings } from './encodings.ts'
import { findRows, planUnchanged } from './lookup.ts'
import { heldEntry, writeAudit } from './registry.ts'
import { writeRows } from './rows.ts'
import { checkSealingKey } from './sealed-texts.ts'
import { isShared, rememberSeen, sweep, tellOtherSweeps } from './sweep.ts'
import { setHistoryDays } from './history.ts'
import { setDeletes } from './deletes.ts'
import { bindSteps } from './sql.ts'
import { ensureTable, type Table } from './table.ts'
import { applyShapes, refuseKeys } from './table-shape.ts'

const addToCycle = bindSteps(checkpoint.addToCycle)
const lockBackfill = bindSteps(checkpoint.lockBackfill)
const moveCheckpoint = bindSteps(checkpoint.moveCheckpoint)
const writeQuarantine = bindSteps(checkpoint.writeQuarantine)

/** The one door. Everything below runs inside one transaction; a refusal undoes it. */
export function commit(session: Session, commit: Commit): CommitOutcome {
  try {
    return tryCommit(session, commit)
  } catch (error) {
    if (!isKeyRefused(error) || !liftKeys(session, commit)) throw error
    return tryCommit(session, commit)
  }
}

/** A record that contradicts a declared key lands like any other: the key is no longer enforced, and that is reported. */
function liftKeys(session: Session, commit: Commit): boolean {
  return session.connection.write(() => {
    const entry = heldEntry(session, commit.lease)
    const drift = entry === null ? [] : refuseKeys(session, [...new Set(commit.landings.map(({ database }) => database))])
    if (drift.length > 0) writeAudit(session, entry, driftEntry(entry!.version, commit.at, drift))
    return drift.length > 0
  })
}

/** SQLITE_CONSTRAINT_NOTNULL and SQLITE_CONSTRAINT_UNIQUE. */
const KEY_REFUSALS: readonly unknown[] = [1299, 2067]

function isKeyRefused(error: unknown): boolean {
  return error instanceof SyncError && KEY_REFUSALS.includes((error.cause as { errcode?: unknown } | undefined)?.errcode)
}

function tryCommit(session: Session, commit: Commit): CommitOutcome {
  return session.connection.write(() => {
    const entry = heldEntry(session, commit.lease)
    if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })
    if (!checkpoint.isExpected(entry, commit)) return rollback<CommitOutcome>({ kind: 'conflict', checkpoint: toCheckpoint(entry) })
    checkSealingKey(session, null, sealingKeyOf(commit.move))
    return land(session, entry, commit)
  })
}

function land(session: Session, entry: RegistryEntry, commit: Commit): CommitOutcome | Rollback<CommitOutcome> {
  const { connection, tenantId } = session
  const tenant = connection.get<{ sequence: number; committed_at: number }>(
    'select sequence, committed_at from tidemark_tenants where tenant_id = ?', tenantId,
  )!
  // What is replayed belongs to no cycle: one that is unfinished has not seen it.
  const inflight = commit.move.kind === 'replay' ? null : toInflight(entry)
  const sweeps = inflight?.mode === 'replace'
  const owner = ensureOwner(session, commit.owner, sweeps)
  const tables = tablesOf(session, commit)
  const first = databasesWithoutColumns(commit, (database) => tables.get(database))
  const shapeDrift = applyShapes(session, tables, commit, tenant.sequence + 1)
  const facts = { writer: entry.sync_id, owner, position: tenant.sequence, sweeps, cycle: inflight?.cycle ?? null }
  const encodings = new Encodings()
  const unchanged = commit.restateSince === undefined ? planUnchanged(session, tables, commit, facts) : null
  const landing = {
    ...facts,
    find: findRows(session, tables, commit),
    isSame: (landing, row) => encodings.isSame(session, tables.get(landing.database)!, landing, row),
    isShared: ({ database, key }, row) => isShared(session, tables.get(database)!.id, key, row.owner, owner),
    isComplete: (cycle) => connection.get("select 1 from tidemark_cycles where tenant_id = ? and cycle_id = ? and stop_reason = 'complete'", tenantId, cycle) !== undefined,
  } satisfies LandingFacts
  let plan = unchanged ?? planLanding(commit, landing)
  const refused = refuseRecords(commit, plan, {
    first, tableOf: (database) => tables.get(database),
    encode: (upsert) => ({ encoded: encodings.of(upsert, tables.get(upsert.database)!), record: encodings.recordOf(upsert) }),
  })
  if (refused.length > 0) plan = planLanding((commit = withRefused(commit, refused)), landing)
  if (plan.overlap.length > 0) return rollback({ kind: 'overlap', keys: plan.overlap })
  if (plan.asked.length > 0) return rollback({ kind: 'contested', keys: plan.asked })

  // Invariant 7: the feed's time never stands still or goes back, whatever the clock does.
  const committedAt = Math.max(commit.at, tenant.committed_at + 1)
  const page = 'page' in commit.move ? commit.move.page : 0
  const limits = sweeps && commit.move.kind === 'complete' ? commit.move.sweep : null
  const commitFacts = { sync: entry.sync_id, cycle: inflight?.cycle ?? 0, page }

  const notes = new DriftNotes(commit.schemas, commit.at, first)
  writeRows(session, plan, tables, { encodings, notes, writer: entry.sync_id, owner, owners: otherOwners(session, commit), committedAt })
  writeCommits(session, logged(plan, tables), { ...commitFacts, committedAt })
  if (sweeps) rememberSeen(session, plan, tables, owner, inflight!.cycle, page)
  tellOtherSweeps(session, plan, entry.sync_id)
  writeQuarantine(session, entry, commit)

  let position = plan.position
  // What the sweep deletes comes after the page, at a time of its own: within one time the keys are in order (A9).
  const sweptAt = position > tenant.sequence ? committedAt + 1 : committedAt
  if (limits !== null) {
    const swept = sweep(session, limits, { ...commitFacts, owner, startSequence: inflight!.startSequence, position, committedAt: sweptAt })
    if (swept.kind !== 'swept') return rollback(swept)
    plan.counts.swept = swept.count
    if (limits.allowedBy !== undefined) writeAudit(session, entry, allowDeletesEntry(entry.version, inflight!.cycle, swept.count, { actor: limits.allowedBy, at: commit.at }))
    position += swept.count
  }
  if (position > tenant.sequence) {
    connection.run('update tidemark_tenants set sequence = ?, committed_at = ? where tenant_id = ?', position, plan.counts.swept > 0 ? sweptAt : committedAt, tenantId)
  }
  if (inflight !== null) addToCycle(session, inflight.cycle, plan.counts, commit)
  for (const { database, drift } of notes.stored()) {
    connection.run('update tidemark_databases set drift = ? where tenant_id = ? and database_id = ?', drift, tenantId, tables.get(database)!.id)
  }
  const drift = [...(commit.drift === undefined ? [] : [commit.drift]), ...shapeDrift, ...notes.words].join('; ')
  if (drift !== '') writeAudit(session, entry, { version: entry.version, at: commit.at, actor: 'engine', action: 'drift', reason: drift, cycle: inflight?.cycle ?? null, state: null })
  const version = moveCheckpoint(session, { entry, backfill: lockBackfill(session, commit) }, commit)
  return {
    kind: 'landed', version, position, counts: plan.counts, paused: Boolean(entry.paused), ...(notes.words.length > 0 && { drift: notes.words }),
    ...(refused.length > 0 && { refused }),
  }
}

function tablesOf(session: Session, commit: Commit): Map<string, Table> {
  const tables = new Map<string, Table>()
  for (const [name, columns] of Object.entries(commit.columns)) tables.set(name, ensureTable(session, name, columns))
  for (const { database } of [...commit.landings, ...commit.quarantined]) {
    if (!tables.has(database)) tables.set(database, ensureTable(session, database, []))
  }
  for (const [database, days] of Object.entries(commit.historyDays ?? {})) setHistoryDays(session, database, days)
  for (const table of setDeletes(session, commit.deletes ?? {})) if (tables.has(table.database)) tables.set(table.database, table)
  return tables
}

/** By database, for those that are told. They sweep, if at all, by cycles of their own. */
function otherOwners(session: Session, { owners = {} }: Commit): Map<string, number> {
  return new Map(Object.entries(owners).map(([database, name]) => [database, ensureOwner(session, name, false)]))
}

function ensureOwner(session: Session, name: string, sweeps: boolean): number {
  const { connection, tenantId } = session
  connection.run('insert into tidemark_owners (tenant_id, name) values (?, ?) on conflict do nothing', tenantId, name)
  if (sweeps) connection.run('update tidemark_owners set sweeps = 1 where tenant_id = ? and name = ? and sweeps = 0', tenantId, name)
  return connection.get<{ owner_id: number }>('select owner_id from tidemark_owners where tenant_id = ? and name = ?', tenantId, name)!.owner_id
}
