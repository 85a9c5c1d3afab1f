import { SyncError, type Commit, type CommitOutcome } from '../../contract/index.ts'
import { createAllowDeletesAuditEntry, createDriftAuditEntry } from '../kit/audit-entries.ts'
import * as checkpoint from '../kit/checkpoint.ts'
import { planLanding, type LandingFacts } from '../kit/plan-landing.ts'
import {
  databasesWithoutColumns,
  DriftCollector,
  refuseRecords,
  quarantineRefused,
} from '../kit/tables/schema-drift.ts'
import { writePartitions as writePartitionSteps } from '../kit/roles/partitions.ts'
import { findSealingKeyId } from '../kit/sealed-texts.ts'
import { toCheckpoint, toInflight, type RegistryEntry } from '../kit/registry-rows.ts'
import { rollback, type Rollback, type TenantSession } from './connection.ts'
import { listLoggedRanges, writeCommits } from './commits.ts'
import { RecordEncodingCache } from './record-encoding-cache.ts'
import { findRows, planUnchanged } from './find-rows.ts'
import { findLeasedEntry, writeAudit } from './registry.ts'
import { writeRows } from './rows.ts'
import { checkSealingKey } from './check-sealing-key.ts'
import { isShared, recordSeen, sweep, protectFromOtherSweeps } from './sweep.ts'
import { setHistoryDays } from './history-retention.ts'
import { applyDeleteModes } from './delete-mode.ts'
import { bindSteps } from './sql.ts'
import { ensureTable, tableOf, type Table } from './table.ts'
import { applyShapes, refuseKeys } from './table-shape.ts'

const addPageToCycle = bindSteps(checkpoint.addPageToCycle)
const lockBackfill = bindSteps(checkpoint.lockBackfill)
const updateCheckpoint = bindSteps(checkpoint.updateCheckpoint)
const writePartitions = bindSteps(writePartitionSteps)
const writeQuarantine = bindSteps(checkpoint.writeQuarantine)

/** The only write path for records. Everything below runs in one transaction; a refusal rolls it back. */
export function commit(session: TenantSession, commit: Commit): CommitOutcome {
  try {
    return tryCommit(session, commit)
  } catch (error) {
    if (!isKeyViolation(error) || !dropViolatedKeys(session, commit)) throw error
    return tryCommit(session, commit)
  }
}

/**
 * A record that violates a declared key lands like any other: the key is no longer enforced, and that is reported as
 * drift.
 */
function dropViolatedKeys(session: TenantSession, commit: Commit): boolean {
  return session.connection.write(() => {
    const entry = findLeasedEntry(session, commit.lease)
    if (entry === null) return false
    const drift = refuseKeys(session, [...new Set(commit.landings.map(({ database }) => database))])
    if (drift.length > 0) writeAudit(session, entry, createDriftAuditEntry(entry.version, commit.at, drift))
    return drift.length > 0
  })
}

/** SQLITE_CONSTRAINT_NOTNULL and SQLITE_CONSTRAINT_UNIQUE. */
const KEY_VIOLATION_CODES: readonly unknown[] = [1299, 2067]

function isKeyViolation(error: unknown): boolean {
  return (
    error instanceof SyncError &&
    KEY_VIOLATION_CODES.includes((error.cause as { errcode?: unknown } | undefined)?.errcode)
  )
}

function tryCommit(session: TenantSession, commit: Commit): CommitOutcome {
  return session.connection.write(() => {
    const entry = findLeasedEntry(session, commit.lease)
    if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })
    if (!checkpoint.matchesCheckpoint(entry, commit))
      return rollback<CommitOutcome>({ kind: 'conflict', checkpoint: toCheckpoint(entry) })
    checkSealingKey(session, null, findSealingKeyId(commit))
    return land(session, entry, commit)
  })
}

function land(session: TenantSession, entry: RegistryEntry, commit: Commit): CommitOutcome | Rollback<CommitOutcome> {
  const { connection, tenantId } = session
  const tenant = connection.one<{ sequence: number; committed_at: number }>(
    'select sequence, committed_at from tidemark_tenants where tenant_id = ?',
    tenantId,
  )
  const inflight = checkpoint.isOutsideCycle(commit.transition) ? null : toInflight(entry)
  const sweeps = inflight !== null && inflight.mode === 'replace'
  const owner = ensureOwner(session, commit.owner, sweeps)
  const tables = ensureCommitTables(session, commit)
  const withoutColumns = databasesWithoutColumns(commit, (database) => tables.get(database))
  const shapeDrift = applyShapes(session, tables, commit, tenant.sequence + 1)
  const facts = { writer: entry.sync_id, owner, headSequence: tenant.sequence, sweeps, cycle: inflight?.cycle ?? null }
  const encodings = new RecordEncodingCache(commit.landings)
  const unchanged = commit.forceLogSince === undefined ? planUnchanged(session, tables, commit, facts) : null
  // An unchanged page needs no rows.
  let rows: LandingFacts['find'] | undefined
  const find: LandingFacts['find'] = (landing) => (rows ??= findRows(session, tables, commit))(landing)
  const landing = {
    ...facts,
    find,
    isSame: (landing, row) => encodings.isSameRecord(session, tableOf(tables, landing.database), landing, row, find),
    isShared: ({ database, key }, row) => isShared(session, tableOf(tables, database).id, key, row.owner, owner),
    isComplete: (cycle) =>
      connection.get(
        "select 1 from tidemark_cycles where tenant_id = ? and cycle_id = ? and stop_reason = 'complete'",
        tenantId,
        cycle,
      ) !== undefined,
  } satisfies LandingFacts
  let plan = unchanged ?? planLanding(commit, landing)
  const refused = refuseRecords(commit, plan, {
    withoutColumns,
    tableOf: (database) => tables.get(database),
    encode: (upsert) => ({
      encoded: encodings.encode(upsert, tableOf(tables, upsert.database)),
      record: encodings.recordOf(upsert),
    }),
  })
  if (refused.length > 0) plan = planLanding((commit = quarantineRefused(commit, refused)), landing)
  if (plan.overlapKeys.length > 0) return rollback({ kind: 'overlap', keys: plan.overlapKeys })
  if (plan.keysToLookUp.length > 0) return rollback({ kind: 'contested', keys: plan.keysToLookUp })

  // Invariant 7: the feed's time is strictly increasing, whatever the clock does.
  const committedAt = Math.max(commit.at, tenant.committed_at + 1)
  const page = checkpoint.toLogPage(commit.transition)
  const limits = sweeps && commit.transition.kind === 'complete' ? commit.transition.sweep : null
  const commitFacts = { sync: entry.sync_id, cycle: inflight?.cycle ?? 0, page }

  const driftCollector = new DriftCollector(commit.schemaModes, commit.at, withoutColumns)
  writeRows(session, plan, tables, {
    encodings,
    driftCollector,
    writer: entry.sync_id,
    owner,
    owners: ensureOtherOwners(session, commit),
    committedAt,
  })
  writeCommits(session, listLoggedRanges(plan, tables), { ...commitFacts, committedAt })
  if (sweeps) recordSeen(session, plan, tables, owner, inflight.cycle, page)
  protectFromOtherSweeps(session, plan, entry.sync_id)
  writeQuarantine(session, entry, commit)
  writePartitions(session, entry, commit)

  let { headSequence } = plan
  // Swept rows come after the page with a commit time of their own: within one commit time the keys are ordered (A9).
  const sweptAt = headSequence > tenant.sequence ? committedAt + 1 : committedAt
  if (inflight !== null && limits !== null) {
    const swept = sweep(session, limits, {
      ...commitFacts,
      owner,
      startSequence: inflight.startSequence,
      headSequence,
      committedAt: sweptAt,
    })
    if (swept.kind !== 'swept') return rollback(swept)
    plan.counts.swept = swept.count
    if (limits.allowedBy !== undefined)
      writeAudit(
        session,
        entry,
        createAllowDeletesAuditEntry(entry.version, inflight.cycle, swept.count, {
          actor: limits.allowedBy,
          at: commit.at,
        }),
      )
    headSequence += swept.count
  }
  if (headSequence > tenant.sequence) {
    connection.run(
      'update tidemark_tenants set sequence = ?, committed_at = ? where tenant_id = ?',
      headSequence,
      plan.counts.swept > 0 ? sweptAt : committedAt,
      tenantId,
    )
  }
  if (inflight !== null) addPageToCycle(session, inflight.cycle, plan.counts, commit)
  for (const { database, drift } of driftCollector.listChanged()) {
    connection.run(
      'update tidemark_databases set drift = ? where tenant_id = ? and database_id = ?',
      drift,
      tenantId,
      tableOf(tables, database).id,
    )
  }
  const drift = [
    ...(commit.drift === undefined ? [] : [commit.drift]),
    ...shapeDrift,
    ...driftCollector.descriptions,
  ].join('; ')
  if (drift !== '')
    writeAudit(session, entry, {
      version: entry.version,
      at: commit.at,
      actor: 'engine',
      action: 'drift',
      reason: drift,
      cycle: inflight?.cycle ?? null,
      state: null,
    })
  const version = updateCheckpoint(session, { entry, backfill: lockBackfill(session, commit) }, commit)
  return {
    kind: 'landed',
    version,
    headSequence,
    counts: plan.counts,
    paused: Boolean(entry.paused),
    ...(driftCollector.descriptions.length > 0 && { drift: driftCollector.descriptions }),
    ...(refused.length > 0 && { refused }),
  }
}

function ensureCommitTables(session: TenantSession, commit: Commit): Map<string, Table> {
  const tables = new Map<string, Table>()
  for (const [name, columns] of Object.entries(commit.columns)) tables.set(name, ensureTable(session, name, columns))
  for (const records of [commit.landings, commit.quarantined])
    for (const { database } of records)
      if (!tables.has(database)) tables.set(database, ensureTable(session, database, []))
  for (const [database, days] of Object.entries(commit.historyDays ?? {})) setHistoryDays(session, database, days)
  for (const table of applyDeleteModes(session, commit.deletes ?? {}))
    if (tables.has(table.database)) tables.set(table.database, table)
  return tables
}

/** Returns the explicitly named owners by database. They sweep, if at all, in cycles of their own. */
function ensureOtherOwners(session: TenantSession, { owners = {} }: Commit): Map<string, number> {
  return new Map(Object.entries(owners).map(([database, name]) => [database, ensureOwner(session, name, false)]))
}

function ensureOwner(session: TenantSession, name: string, sweeps: boolean): number {
  const { connection, tenantId } = session
  connection.run('insert into tidemark_owners (tenant_id, name) values (?, ?) on conflict do nothing', tenantId, name)
  if (sweeps)
    connection.run(
      'update tidemark_owners set sweeps = 1 where tenant_id = ? and name = ? and sweeps = 0',
      tenantId,
      name,
    )
  return connection.one<{ owner_id: number }>(
    'select owner_id from tidemark_owners where tenant_id = ? and name = ?',
    tenantId,
    name,
  ).owner_id
}
