import type { CompactResult, CompactRequest } from '../../contract/index.ts'
import { CYCLES_RETAINED } from './cycles-retained.ts'
import { lockTenant } from './registry.ts'
import { findSequenceBefore } from './roles/sequences.ts'
import { defineWrite, type Sql, type Steps } from './sql/port.ts'

const DAY_MS = 86_400_000

/** A database whose history is kept longer than the log, or was until now. */
interface RetainedHistory {
  readonly id: number
  /** Null once the database follows the log's retention again. */
  readonly days: number | null
  /** Versions that ended up to this sequence have been deleted. */
  readonly floor: number
}

/** `Kernel.compact` in two plans: cycles are compacted once the log has nothing left to delete. */
export const COMPACTION_PLANS = {
  /** Deletes replaced versions and deletions up to a sequence. Live rows are not touched. */
  log: defineWrite(function* (
    sql,
    { before, scanMax, at }: CompactRequest,
  ): Steps<Omit<CompactResult, 'removedCycles'>> {
    // Read before the tenant is locked: commits made meanwhile only have later sequences.
    const older = yield* findSequenceBefore(sql, before)
    yield* lockTenant(sql)
    const { floor } = yield* sql.one<{ floor: number }>('select floor from {tenants} where tenant_id = :tenant')
    const { least } = yield* sql.one<{ least: number | null }>(
      'select min(inflight_start_sequence) as least from {registry} where tenant_id = :tenant and inflight_cycle is not null',
    )
    const until = Math.min(older, least ?? Infinity)
    const next = Math.min(until, floor + scanMax)
    const retained = yield* readRetainedHistories(sql)
    const pruned = next > floor ? yield* advanceFloor(sql, { floor, next, retained }) : 0
    const history = yield* pruneHistory(sql, retained, { floor: Math.max(floor, next), scanMax, at })
    const purged =
      sql.kernel.purgeTables === undefined ? { removed: 0, more: false } : yield* sql.kernel.purgeTables(scanMax)
    return {
      floor: Math.max(floor, next),
      removedEntries: pruned + history.removed + purged.removed,
      hasMore: next < until || history.more || purged.more,
    }
  }),

  /** Runs without the tenant's lock: a cycle that is deletable now is never needed again. */
  cycles: defineWrite(function* (sql, { before, scanMax }: CompactRequest) {
    return yield* sql.run(
      sql.dialect.deleteSkipLocked(
        'cycles',
        `cycle_id in (select cycle_id from (
      select c.cycle_id from (
        select cycle_id, sync_id, coalesce(ended_at, started_at) as at, row_number() over (partition by sync_id order by cycle_id desc) as recency,
          max(case when stop_reason = 'complete' then cycle_id end) over (partition by sync_id) as complete
        from {cycles} where tenant_id = :tenant
      ) c join {registry} g on g.tenant_id = :tenant and g.sync_id = c.sync_id
      where c.recency > :kept and c.at < :before and c.cycle_id not in (coalesce(c.complete, 0), coalesce(g.inflight_cycle, 0), coalesce(g.committed_by, 0))
        and c.cycle_id not in (select cycle_id from {commits} where tenant_id = :tenant)
      order by c.cycle_id limit :scanMax
    ) old)`,
      ),
      { kept: CYCLES_RETAINED, before, scanMax },
    )
  }),
}

/** Deletes everything up to the next floor, except in databases with a longer retention. */
function* advanceFloor(
  sql: Sql,
  { floor, next, retained }: { floor: number; next: number; retained: readonly RetainedHistory[] },
): Steps<number> {
  // The entry that replaced or deleted a version belongs to the same database.
  const touched = yield* sql.all<{ id: number }>(
    'select distinct database_id as id from {commits} where tenant_id = :tenant and first_sequence <= :next and last_sequence > :floor',
    { floor, next },
  )
  const committedAt = yield* findCommittedAt(sql, next)
  let removed = 0
  for (const { id } of touched)
    if (!retained.some((history) => history.id === id)) removed += yield* sql.kernel.pruneVersions(id, floor, next)
  yield* sql.run(
    'update {tenants} set floor = :next, floor_committed_at = {greatest}(floor_committed_at, :committedAt) where tenant_id = :tenant',
    { next, committedAt },
  )
  return removed
}

/** Time of the last commit up to a sequence; 0 when none is left. */
function* findCommittedAt(sql: Sql, sequence: number): Steps<number> {
  const last = yield* sql.get<{ at: number }>(
    'select committed_at as at from {commits} where tenant_id = :tenant and first_sequence <= :sequence order by first_sequence desc limit 1',
    { sequence },
  )
  return last?.at ?? 0
}

/** Until now the history of a new entry reached as far back as the log. */
function* readRetainedHistories(sql: Sql): Steps<RetainedHistory[]> {
  const ofTenant = (column: string): string => `(select ${column} from {tenants} where tenant_id = :tenant)`
  yield* sql.run(
    `update {databases} set history_floor = ${ofTenant('floor')}, history_floor_at = ${ofTenant('floor_committed_at')}
     where tenant_id = :tenant and history_days is not null and history_floor is null`,
  )
  return yield* sql.all<RetainedHistory>(
    'select database_id as id, history_days as days, history_floor as floor from {databases} where tenant_id = :tenant and history_floor is not null',
  )
}

interface CompactionBounds {
  readonly floor: number
  readonly scanMax: number
  readonly at: number | undefined
}

/** Advances each history by one step, never beyond the log's floor: the feed above it must be complete. */
function* pruneHistory(
  sql: Sql,
  retained: readonly RetainedHistory[],
  { floor, scanMax, at }: CompactionBounds,
): Steps<{ removed: number; more: boolean }> {
  let [removed, more] = [0, false]
  for (const { id, days, floor: from } of retained) {
    const before = days === null ? null : at === undefined ? from : yield* findSequenceBefore(sql, at - days * DAY_MS)
    const until = before === null ? floor : Math.min(floor, before)
    const next = Math.min(until, from + scanMax)
    if (next > from) removed += yield* sql.kernel.pruneVersions(id, from, next)
    more ||= next < until
    const database = 'where tenant_id = :tenant and database_id = :id'
    if (days === null && next >= floor)
      yield* sql.run(`update {databases} set history_floor = null, history_floor_at = null ${database}`, { id })
    else if (next > from) {
      const floorAt = yield* findCommittedAt(sql, next)
      yield* sql.run(
        `update {databases} set history_floor = :next, history_floor_at = {greatest}(coalesce(history_floor_at, 0), :floorAt) ${database}`,
        { id, next, floorAt },
      )
    }
  }
  return { removed, more }
}
