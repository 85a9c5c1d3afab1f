import type { DestinationStatus, DestinationStore, ErrorCode } from '../../../contract/index.ts'
import { required } from '../../../values/required.ts'
import { createDestinationAuditEntry } from '../audit-entries.ts'
import { lockTenant, reviveTenant } from '../registry.ts'
import { replaceNul } from '../replace-nul.ts'
import { defineRead, defineWrite, type PlansOf, type Sql, type Steps } from '../sql/port.ts'
import { addMessages } from './webhooks.ts'

const WHERE = 'where tenant_id = :tenant and name = :name'
const WHERE_CLAIMED = `${WHERE} and epoch = :epoch and holder is not null`

export const DESTINATION_PLANS = {
  storeId: defineWrite(function* (sql, candidate) {
    yield* lockTenant(sql)
    yield* sql.run('update {tenants} set store_id = coalesce(store_id, :candidate) where tenant_id = :tenant', {
      candidate,
    })
    const { id } = yield* sql.one<{ id: string }>('select store_id as id from {tenants} where tenant_id = :tenant')
    return id
  }),

  destinations: defineRead(function* (sql) {
    const found = yield* sql.all<DestinationRow>('select * from {destinations} where tenant_id = :tenant order by name')
    return found.map(toDestinationStatus)
  }),

  claimDestination: defineWrite(function* (sql, name, { holder, ttlMs, at, evictHolder, automatic, epochMin = 0 }) {
    const found = yield* ensureDestination(sql, name, at, automatic)
    const { holder: heldBy, held_until: heldUntil, now } = found
    if (found.paused) return null
    if (heldBy !== null && heldUntil !== null && heldUntil > now && heldBy !== evictHolder) return null
    const epoch = Math.max(found.epoch, epochMin) + 1
    yield* sql.run(
      `update {destinations} set epoch = :epoch, holder = :holder, held_until = :until, triggered_at = null ${WHERE}`,
      { name, epoch, holder, until: now + ttlMs },
    )
    return { name, epoch, status: toDestinationStatus({ ...found, holder }) }
  }),

  renewDestination: defineWrite(function* (sql, { name, epoch }, { ttlMs, at }) {
    const renewed = yield* sql.run(
      `update {destinations} set held_until = {greatest}(held_until, :now + :ttlMs) ${WHERE_CLAIMED} and not paused`,
      { name, epoch, ttlMs, at },
    )
    return renewed > 0
  }),

  releaseDestination: defineWrite(function* (sql, { name, epoch }) {
    yield* sql.run(`update {destinations} set holder = null, held_until = null ${WHERE} and epoch = :epoch`, {
      name,
      epoch,
    })
  }),

  recordDestination: defineWrite(function* (sql, { name, epoch }, report) {
    const claimed = yield* sql.get<{ resync: string }>(
      `select resync from {destinations} ${WHERE_CLAIMED} {for_update}`,
      { name, epoch },
    )
    if (claimed === undefined) return false
    const { kind, location, mode, startedAt, endedAt, failures, retryAt, error, databases, resynced, messages } = report
    const open = (JSON.parse(claimed.resync) as string[]).filter((database) => !resynced.includes(database))
    yield* sql.run(
      `update {destinations} set kind = :kind, location = :location, mode = :mode, started_at = :startedAt, ended_at = :endedAt, failures = :failures,
         retry_at = :retryAt, error_code = :code, error_message = :message, "databases" = :databases, resync = :resync ${WHERE}`,
      {
        name,
        kind,
        location: replaceNul(location),
        mode,
        startedAt,
        endedAt,
        failures,
        retryAt,
        code: error?.code ?? null,
        message: replaceNul(error?.message ?? null),
        databases: JSON.stringify(databases),
        resync: JSON.stringify(open),
      },
    )
    yield* addMessages(sql, messages ?? [])
    return true
  }),

  signalDestination: defineWrite(function* (sql, name, signal, by) {
    yield* lockTenant(sql)
    const found = yield* ensureDestination(sql, name, by.at)
    yield* sql.kernel.notify()
    switch (signal.kind) {
      case 'run':
        yield* sql.run(`update {destinations} set triggered_at = :at, retry_at = null ${WHERE}`, { name, at: by.at })
        return
      case 'pause':
        yield* sql.run(`update {destinations} set paused = true ${WHERE}`, { name })
        break
      case 'resume':
        yield* sql.run(`update {destinations} set paused = false, failures = 0, retry_at = null ${WHERE}`, { name })
        break
      case 'resync': {
        const all = new Set([...(JSON.parse(found.resync) as string[]), ...signal.databases])
        yield* sql.run(`update {destinations} set resync = :resync, triggered_at = :at, retry_at = null ${WHERE}`, {
          name,
          resync: JSON.stringify([...all].toSorted()),
          at: by.at,
        })
        break
      }
      default:
        signal satisfies never
    }
    const detail = signal.kind === 'resync' ? signal.databases.join(', ') : ''
    yield* sql.kernel.writeAudit(null, createDestinationAuditEntry(name, signal.kind, detail, by))
  }),

  removeDestination: defineWrite(function* (sql, name, by) {
    yield* lockTenant(sql)
    const found = yield* sql.get<{ epoch: number }>(`select epoch from {destinations} ${WHERE} {for_update}`, { name })
    if (found === undefined) return false
    // Invariant 3: a destination of the same name that is added later continues with higher epochs.
    yield* sql.run('update {tenants} set epoch = {greatest}(epoch, :epoch) where tenant_id = :tenant', {
      epoch: found.epoch,
    })
    yield* sql.run(`delete from {destinations} ${WHERE}`, { name })
    yield* sql.kernel.writeAudit(null, createDestinationAuditEntry(name, 'remove', '', by))
    return true
  }),
} satisfies PlansOf<DestinationStore>

/** Returns the row of a destination, locked, and creates it if there is none. */
function* ensureDestination(
  sql: Sql,
  name: string,
  at: number,
  automatic = false,
): Steps<DestinationRow & { readonly now: number }> {
  const find = () =>
    sql.get<DestinationRow & { readonly now: number }>(
      `select d.*, :now as now from {destinations} d where d.tenant_id = :tenant and d.name = :name {for_update}`,
      { name, at },
    )
  const found = yield* find()
  if (found !== undefined) return found
  const epoch = yield* reviveTenant(sql, automatic)
  yield* sql.run(
    '{insert_new} into {destinations} (tenant_id, name, epoch) values (:tenant, :name, :epoch) {or_nothing}',
    { name, epoch },
  )
  return required(yield* find(), 'The row of the destination')
}

interface DestinationRow {
  name: string
  kind: string | null
  location: string | null
  mode: string | null
  epoch: number
  holder: string | null
  held_until: number | null
  paused: boolean | number
  triggered_at: number | null
  resync: string
  started_at: number | null
  ended_at: number | null
  failures: number
  retry_at: number | null
  error_code: string | null
  error_message: string | null
  databases: string
}

function toDestinationStatus(row: DestinationRow): DestinationStatus {
  return {
    name: row.name,
    kind: row.kind ?? '',
    location: row.location ?? '',
    mode: row.mode ?? '',
    isPaused: Boolean(row.paused),
    heldBy: row.holder,
    triggeredAt: row.triggered_at,
    resync: JSON.parse(row.resync) as string[],
    startedAt: row.started_at,
    endedAt: row.ended_at,
    failures: row.failures,
    retryAt: row.retry_at,
    error: row.error_code === null ? null : { code: row.error_code as ErrorCode, message: row.error_message ?? '' },
    databases: JSON.parse(row.databases) as DestinationStatus['databases'],
  }
}
