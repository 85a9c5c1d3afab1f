import type { SyncDirectory, SyncRef } from '../../../contract/index.ts'
import { toCycleRecord, type CycleRow } from '../registry-rows.ts'
import { ensureEntry, lockTenant, SYNC_ID_SQL } from '../registry.ts'
import { readCycleTotals } from '../cycle-totals.ts'
import { defineRead, defineWrite, type PlansOf } from '../sql/port.ts'

export const SYNC_PLANS = {
  syncs: defineRead(function* (sql) {
    return yield* sql.all<SyncRef>(
      'select connector_id as worker, stream_id as sync from {registry} where tenant_id = :tenant order by 1, 2',
    )
  }),

  signalSync: defineWrite(function* (sql, ref, { kind, actor, at }) {
    if (kind !== 'trigger') yield* lockTenant(sql)
    const entry = yield* ensureEntry(sql, ref)
    const where = 'where tenant_id = :tenant and sync_id = :sync'
    yield* sql.kernel.notify()
    if (kind === 'trigger') {
      yield* sql.send(`update {registry} set triggered_at = :at ${where}`, { sync: entry.sync_id, at })
      return
    }
    // Resuming clears the retry backoff of earlier failures.
    const sets = kind === 'pause' ? 'paused = true' : 'paused = false, failures = 0, retry_at = null'
    yield* sql.send(`update {registry} set ${sets} ${where}`, { sync: entry.sync_id })
    yield* sql.kernel.writeAudit(entry, {
      version: entry.version,
      at,
      actor,
      action: kind,
      reason: '',
      cycle: null,
      state: null,
    })
  }),

  cycles: defineRead(function* (sql, ref, { limit = 100 } = {}) {
    const found = yield* sql.all<CycleRow>(
      `select c.*, g.connector_id as worker, g.stream_id as sync from {cycles} c join {registry} g on g.tenant_id = c.tenant_id and g.sync_id = c.sync_id
       where c.tenant_id = :tenant ${ref === null ? '' : `and c.sync_id = ${SYNC_ID_SQL}`} order by c.cycle_id desc limit :limit`,
      { ...ref, limit },
    )
    return found.map(toCycleRecord)
  }),

  cycleTotals: defineRead(function* (sql, query) {
    return yield* readCycleTotals(sql, query)
  }),
} satisfies PlansOf<SyncDirectory>
