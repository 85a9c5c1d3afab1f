import type { Inflight, LeaseStore } from '../../../contract/index.ts'
import { createConflictAuditEntry } from '../audit-entries.ts'
import { checkStateRollback, repairEntry, type StateEvidenceRow } from '../check-state-rollback.ts'
import {
  closeCycle,
  ensureEntry,
  findEntry,
  deleteSeen,
  findLeasedEntry,
  lockTenant,
  readStateEvidence,
  writeInflight,
} from '../registry.ts'
import { beginColumnRules } from './columns.ts'
import { NEVER_RUN_ENTRY, toCheckpoint, toInflight, type RegistryEntry } from '../registry-rows.ts'
import { defineRead, defineWrite, type PlansOf, type Sql, type Steps } from '../sql/port.ts'
import { replaceNul } from '../replace-nul.ts'

const WHERE_SYNC = 'where tenant_id = :tenant and sync_id = :sync'

/** Leases, checkpoints and the record of cycles. */
export const LEASE_PLANS = {
  acquire: defineWrite(function* (sql, ref, { holder, ttlMs, at, evictHolder, forRepair = false, automatic }) {
    const found = yield* ensureEntry(sql, ref, { at, automatic })
    const evidence = yield* readStateEvidence(sql, ref)
    if (!forRepair) checkStateRollback(ref, found, evidence)
    const entry = forRepair ? repairEntry(found, evidence) : found
    const { holder: heldBy, held_until: expiresAt } = entry
    if (heldBy !== null && expiresAt !== null && expiresAt > found.now && heldBy !== evictHolder) {
      return { kind: 'held' as const, holder: heldBy, expiresAt }
    }
    if (entry !== found) yield* writeRepairedEntry(sql, entry, evidence)
    const epoch = entry.epoch + 1
    yield* sql.send(
      `update {registry} set epoch = :epoch, holder = :holder, held_since = :since, held_until = :until ${WHERE_SYNC}`,
      { sync: entry.sync_id, epoch, holder, since: found.now, until: found.now + ttlMs },
    )
    return { kind: 'acquired' as const, lease: { ref, holder, epoch }, checkpoint: toCheckpoint(entry) }
  }),

  renew: defineWrite(function* (sql, lease, { ttlMs, at }) {
    const entry = yield* findLeasedEntry(sql, lease, at)
    if (entry === null) return false
    yield* sql.send(`update {registry} set held_until = {greatest}(held_until, :until) ${WHERE_SYNC}`, {
      sync: entry.sync_id,
      until: entry.now + ttlMs,
    })
    return true
  }),

  release: defineWrite(function* (sql, lease, report) {
    const isConflict = report?.error?.code === 'VERSION_CONFLICT'
    if (isConflict) yield* lockTenant(sql)
    const entry = yield* findLeasedEntry(sql, lease)
    if (entry === null) return
    const sync = entry.sync_id
    yield* sql.send(`update {registry} set holder = null, held_since = null, held_until = null ${WHERE_SYNC}`, { sync })
    yield* sql.kernel.notify()
    if (report === undefined) return
    const { cycle, stopReason, endedAt, retries, waitedMs, error, retryAt } = report
    const [code, message] = [error?.code ?? null, replaceNul(error?.message ?? null)]
    yield* sql.send(
      `update {cycles} set ended_at = :endedAt, stop_reason = :stopReason, retries = retries + :retries, waited_ms = waited_ms + :waitedMs,
         error_code = :code, error_message = :message where tenant_id = :tenant and cycle_id = :cycle`,
      { cycle, endedAt, stopReason, retries, waitedMs, code, message },
    )
    if (stopReason === 'complete') {
      yield* sql.send(
        `update {registry} set failures = 0, error_code = null, error_message = null, error_at = null, retry_at = null, last_success_at = :endedAt ${WHERE_SYNC}`,
        { sync, endedAt },
      )
    } else if (error !== null) {
      const failures = report.isBlockedByPause === true ? '{greatest}(failures, 1)' : 'failures + 1'
      yield* sql.send(
        `update {registry} set failures = ${failures}, error_code = :code, error_message = :message, error_at = :endedAt, retry_at = :retryAt ${WHERE_SYNC}`,
        { sync, code, message, endedAt, retryAt },
      )
      if (isConflict) yield* sql.kernel.writeAudit(entry, createConflictAuditEntry(entry.version, report))
    }
  }),

  beginCycle: defineWrite(function* (sql, lease, request) {
    const { sequence: headSequence } = yield* lockTenant(sql)
    const entry = yield* findLeasedEntry(sql, lease)
    if (entry === null) return null
    checkStateRollback(lease.ref, entry, yield* readStateEvidence(sql, lease.ref))
    const columns = yield* sql.kernel.ensureTables(request.databases)
    const sync = entry.sync_id
    yield* sql.send(`update {registry} set triggered_at = null ${WHERE_SYNC}`, { sync })
    const unfinished = toInflight(entry)
    if (unfinished !== null && !request.fresh && unfinished.mode === request.mode) {
      yield* sql.send(
        'update {cycles} set ended_at = null, stop_reason = null, error_code = null, error_message = null where tenant_id = :tenant and cycle_id = :cycle',
        { cycle: unfinished.cycle },
      )
      const changedRules = yield* beginColumnRules(sql, lease.ref, request, {
        entry,
        cycle: unfinished.cycle,
        startSequence: unfinished.startSequence,
        headSequence,
        readsAll: false,
        isFirst: false,
      })
      return { inflight: unfinished, resumed: true, headSequence, columns, changedRules }
    }
    if (unfinished !== null) {
      yield* deleteSeen(sql, unfinished.cycle)
      yield* closeCycle(sql, unfinished.cycle)
    }
    const { at, mode, trigger } = request
    // A replace cycle pages from the start; an incremental one continues from the committed state.
    const state = mode === 'replace' ? null : entry.committed
    const { cycle } = yield* sql.one<{ cycle: number }>(
      `insert into {cycles} (tenant_id, sync_id, mode, "trigger", started_at, start_sequence, page, has_state)
       values (:tenant, :sync, :mode, :trigger, :at, :headSequence, 0, :hasState) returning cycle_id as cycle`,
      { sync, mode, trigger, at, headSequence, hasState: state !== null },
    )
    const inflight: Inflight = {
      cycle,
      mode,
      page: 0,
      state,
      startedAt: at,
      scope: null,
      tidemark: null,
      guardState: null,
      startSequence: headSequence,
    }
    yield* writeInflight(sql, sync, inflight)
    const changedRules = yield* beginColumnRules(sql, lease.ref, request, {
      entry,
      cycle,
      startSequence: headSequence,
      headSequence,
      readsAll: state === null,
      isFirst: entry.version === 0 && unfinished === null,
    })
    return { inflight, resumed: false, headSequence, columns, changedRules }
  }),

  readCheckpoint: defineRead(function* (sql, ref, { forRepair = false } = {}) {
    const entry = yield* findEntry(sql, ref)
    const evidence = yield* readStateEvidence(sql, ref)
    if (!forRepair) checkStateRollback(ref, entry, evidence)
    return toCheckpoint(forRepair ? repairEntry(entry ?? NEVER_RUN_ENTRY, evidence) : entry)
  }),
} satisfies PlansOf<LeaseStore>

function* writeRepairedEntry(sql: Sql, entry: RegistryEntry, { open_cycle: openCycle }: StateEvidenceRow): Steps<void> {
  yield* sql.send(`update {registry} set version = :version, committed = null, committed_by = null ${WHERE_SYNC}`, {
    sync: entry.sync_id,
    version: entry.version,
  })
  yield* writeInflight(sql, entry.sync_id, null)
  if (openCycle === null) return
  yield* deleteSeen(sql, openCycle)
  yield* closeCycle(sql, openCycle)
}
