import type { BackfillRequest, Commit, LandingCounts, StateTransition } from '../../contract/index.ts'
import { quarantineIdentityOf } from './quarantine-identity.ts'
import { ensureEntry, deleteSeen, findLeasedEntry, lockTenant, writeInflight } from './registry.ts'
import { toInflight, type RegistryEntry } from './registry-rows.ts'
import type { Sql, Steps } from './sql/port.ts'
import { replaceNul } from './replace-nul.ts'
import { required } from '../../values/required.ts'

/** The effects of a commit on the checkpoint, the quarantine and the cycle record. */

const WHERE_SYNC = 'where tenant_id = :tenant and sync_id = :sync'

/**
 * Invariants 1 to 3 depend on this compare-and-swap: the version is the one read, the cycle is the unfinished one, the
 * page is the next.
 */
export function matchesCheckpoint(entry: RegistryEntry, { version, transition }: Commit): boolean {
  if (entry.version !== version) return false
  return (
    transition.kind === 'set' ||
    isOutsideCycle(transition) ||
    (entry.inflight_cycle === transition.cycle && entry.inflight_page === transition.page - 1)
  )
}

/** A replay, a repair or a change of columns belongs to no cycle: an unfinished one has not seen its records. */
export function isOutsideCycle(
  transition: StateTransition,
): transition is Extract<StateTransition, { kind: 'replay' | 'repair' | 'columns' }> {
  return transition.kind === 'replay' || transition.kind === 'repair' || transition.kind === 'columns'
}

/** The page of the commit in the log; see LogEntry. */
export function toLogPage(transition: StateTransition): number {
  if (transition.kind === 'repair') return transition.verification
  if (transition.kind === 'columns') return -1
  return 'page' in transition ? transition.page : 0
}

/**
 * Locks the registry row of the backfill that a commit requests. Two registry rows are locked then, so the tenant is
 * locked first.
 */
export function* lockBackfill(sql: Sql, { lease, transition }: Commit): Steps<RegistryEntry | null> {
  if (transition.kind !== 'set' || transition.backfillRequest === undefined) return null
  yield* lockTenant(sql)
  if ((yield* findLeasedEntry(sql, lease)) === null) return null
  return yield* ensureEntry(sql, { worker: lease.ref.worker, sync: transition.backfillRequest.sync })
}

/** Returns the checkpoint's new version. `backfill` is the result of `lockBackfill`. */
export function* updateCheckpoint(
  sql: Sql,
  { entry, backfill }: { entry: RegistryEntry; backfill: RegistryEntry | null },
  { transition, at }: Commit,
): Steps<number> {
  const sync = entry.sync_id
  const next = entry.version + 1
  switch (transition.kind) {
    case 'continue':
      yield* writeInflight(sql, sync, {
        ...required(toInflight(entry), 'The unfinished cycle'),
        page: transition.page,
        state: transition.state,
        scope: transition.scope,
        tidemark: transition.tidemark,
        guardState: transition.guardState,
      })
      return entry.version
    case 'abandon':
      yield* writeInflight(sql, sync, null)
      yield* deleteSeen(sql, transition.cycle)
      yield* sql.kernel.writeAudit(entry, {
        version: entry.version,
        at,
        actor: 'engine',
        action: 'abandon',
        reason: transition.reason,
        cycle: transition.cycle,
        state: null,
      })
      return entry.version
    case 'replay':
    case 'repair':
    case 'columns':
      yield* sql.kernel.writeAudit(entry, {
        version: entry.version,
        at,
        actor: transition.actor,
        action: transition.kind,
        reason: transition.reason,
        cycle: null,
        state: null,
      })
      return entry.version
    case 'complete':
      yield* writeInflight(sql, sync, null)
      yield* deleteSeen(sql, transition.cycle)
      yield* sql.send(
        `update {registry} set version = :next, committed = :state, committed_by = :cycle, tidemark = coalesce(:tidemark, tidemark), scope = coalesce(:scope, scope),
           failures = 0, error_code = null, error_message = null, error_at = null, retry_at = null, last_success_at = :at, complete_since = :since ${WHERE_SYNC}`,
        {
          sync,
          next,
          state: transition.state,
          cycle: transition.cycle,
          tidemark: replaceNul(transition.tidemark),
          scope: replaceNul(transition.scope),
          at,
          since: entry.inflight_started_at,
        },
      )
      if (entry.needed_at !== null && entry.needed_cycle !== transition.cycle) yield* setBackfillNeed(sql, sync, null)
      // Also written here, because a runner that crashes never reaches the release.
      yield* sql.send(
        `update {cycles} set ended_at = :at, stop_reason = 'complete', end_reason = :endReason, error_code = null, error_message = null
         where tenant_id = :tenant and cycle_id = :cycle`,
        { cycle: transition.cycle, at, endReason: transition.endReason ?? null },
      )
      yield* sql.kernel.writeAudit(entry, {
        version: next,
        at,
        actor: 'engine',
        action: 'complete',
        reason: '',
        cycle: transition.cycle,
        state: transition.state,
      })
      return next
    case 'set':
      if (entry.inflight_cycle !== null) yield* deleteSeen(sql, entry.inflight_cycle)
      yield* writeInflight(sql, sync, null)
      yield* sql.send(
        `update {registry} set version = :next, committed = :state, committed_by = null, tidemark = null,
           failures = 0, error_code = null, error_message = null, error_at = null, retry_at = null, complete_since = coalesce(:since, complete_since) ${WHERE_SYNC}`,
        { sync, next, state: transition.state, since: transition.completeSince ?? null },
      )
      // Same transaction as the loss of the delta's state, so a crash cannot lose the request.
      if (transition.backfillRequest !== undefined) {
        const { sync_id, needed_at, inflight_cycle } = required(backfill, 'The entry of the requested backfill')
        yield* setBackfillNeed(sql, sync_id, {
          since: needed_at ?? at,
          reason: transition.backfillRequest.reason,
          cycle: inflight_cycle,
        })
        yield* sql.kernel.notify()
      }
      yield* sql.kernel.writeAudit(entry, {
        version: next,
        at,
        actor: transition.actor,
        action: 'set',
        reason: transition.reason,
        cycle: null,
        state: transition.state,
      })
      return next
  }
}

function setBackfillNeed(sql: Sql, sync: number, need: BackfillRequest | null): Steps<void> {
  return sql.send(
    `update {registry} set needed_at = :since, needed_reason = :reason, needed_cycle = :cycle ${WHERE_SYNC}`,
    { sync, since: need?.since ?? null, reason: replaceNul(need?.reason ?? null), cycle: need?.cycle ?? null },
  )
}

/**
 * Adds a page to its cycle's counts. `page` is also stored here, because a restored registry row alone would go
 * unnoticed.
 */
export function addPageToCycle(sql: Sql, cycle: number, counts: LandingCounts, { transition }: Commit): Steps<void> {
  const [page, hasState] = transition.kind === 'continue' ? [transition.page, transition.state !== null] : [null, null]
  return sql.send(
    `update {cycles} set pages = pages + 1, created = created + :created, updated = updated + :updated, deleted = deleted + :deleted, swept = swept + :swept,
       unchanged = unchanged + :unchanged, stale = stale + :stale, missing = missing + :missing, quarantined = quarantined + :quarantined,
       page = :page, has_state = :hasState where tenant_id = :tenant and cycle_id = :cycle`,
    { cycle, ...counts, page, hasState },
  )
}

const QUARANTINE_CONDITION =
  'tenant_id = :tenant and sync_id = :sync and database_name = :database and identity = :identity'

/** Quarantines the rejected records of the commit, and releases the keys that land. */
export function* writeQuarantine(
  sql: Sql,
  entry: RegistryEntry,
  { landings, quarantined, transition, at }: Commit,
): Steps<void> {
  const sync = entry.sync_id
  const waiting = yield* sql.get(
    'select 1 as waiting from {quarantine} where tenant_id = :tenant and sync_id = :sync limit 1',
    { sync },
  )
  // A quarantined record is newer than the row that changed rules rewrite.
  if (waiting !== undefined && transition.kind !== 'columns') {
    for (const landing of landings)
      yield* sql.send(`delete from {quarantine} where ${QUARANTINE_CONDITION}`, {
        sync,
        database: landing.database,
        identity: quarantineIdentityOf(landing),
      })
  }
  if (transition.kind === 'replay') {
    for (const id of transition.superseded)
      yield* sql.send(
        'delete from {quarantine} where tenant_id = :tenant and sync_id = :sync and quarantine_id = :id',
        { sync, id },
      )
    for (const item of quarantined) {
      const { database, code, message } = item
      yield* sql.send(`update {quarantine} set code = :code, message = :message where ${QUARANTINE_CONDITION}`, {
        sync,
        database,
        identity: quarantineIdentityOf(item),
        code,
        message: replaceNul(message),
      })
    }
    return
  }
  if (quarantined.length === 0) return
  const update = ['code', 'message', 'text', 'cycle_id', 'page', 'at']
  const upsert = sql.dialect.upsert({
    table: 'quarantine',
    key: ['tenant_id', 'sync_id', 'database_name', 'identity'],
    insert: ['key', ...update],
    update,
  })
  for (const item of quarantined) {
    const { database, key, code, message, text } = item
    yield* sql.send(upsert, {
      sync_id: sync,
      database_name: database,
      identity: quarantineIdentityOf(item),
      key,
      code,
      message: replaceNul(message),
      text: replaceNul(text),
      cycle_id: entry.inflight_cycle ?? 0,
      page: toLogPage(transition),
      at,
    })
  }
}
