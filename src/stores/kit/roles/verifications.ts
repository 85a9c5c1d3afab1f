import type { Verification, VerificationReport, VerificationStore } from '../../../contract/index.ts'
import { createVerifyAuditEntry } from '../audit-entries.ts'
import { lockTenant, reviveTenant } from '../registry.ts'
import { replaceNul } from '../replace-nul.ts'
import { defineRead, defineWrite, type PlansOf } from '../sql/port.ts'

const COLUMNS = 'verification_id as id, database_name as "database", actor, holder, started_at as "startedAt", report'
const WHERE_CLAIMED =
  'where tenant_id = :tenant and verification_id = :id and holder = :holder and ended_at is null and held_until is not null'

/** The newest verifications of a database that are kept. */
const KEPT = 500

export const VERIFICATION_PLANS = {
  beginVerification: defineWrite(function* (sql, database, { holder, ttlMs, at, evictHolder, automatic, actor }) {
    yield* reviveTenant(sql, automatic)
    const running = yield* sql.get<{ holder: string }>(
      `select holder from {verifications} where tenant_id = :tenant and database_name = :database and ended_at is null and held_until > :now`,
      { database, at },
    )
    if (running !== undefined && running.holder !== evictHolder) return null
    // An earlier run whose process crashed can no longer record a result.
    yield* sql.run(
      'update {verifications} set held_until = null where tenant_id = :tenant and database_name = :database and ended_at is null',
      { database },
    )
    const { id, now } = yield* sql.one<{ id: number; now: number }>(
      'select coalesce(max(verification_id), 0) + 1 as id, :now as now from {verifications} where tenant_id = :tenant',
      { at },
    )
    yield* sql.run(
      `insert into {verifications} (tenant_id, verification_id, database_name, actor, holder, held_until, started_at)
       values (:tenant, :id, :database, :actor, :holder, :until, :startedAt)`,
      { id, database, actor: replaceNul(actor), holder, until: now + ttlMs, startedAt: at },
    )
    const kept = yield* sql.get<{ id: number }>(
      `select verification_id as id from {verifications} where tenant_id = :tenant and database_name = :database
       order by verification_id desc limit 1 offset ${KEPT}`,
      { database },
    )
    if (kept !== undefined)
      yield* sql.run(
        'delete from {verifications} where tenant_id = :tenant and database_name = :database and verification_id <= :id',
        { database, id: kept.id },
      )
    return { id, database, holder }
  }),

  renewVerification: defineWrite(function* (sql, { id, holder }, { ttlMs, at }) {
    const renewed = yield* sql.run(
      `update {verifications} set held_until = {greatest}(held_until, :now + :ttlMs) ${WHERE_CLAIMED}`,
      { id, holder, ttlMs, at },
    )
    return renewed > 0
  }),

  endVerification: defineWrite(function* (sql, { id, holder, database }, report) {
    yield* lockTenant(sql)
    const claimed = yield* sql.get<{ actor: string }>(
      `select actor from {verifications} ${WHERE_CLAIMED} {for_update}`,
      { id, holder },
    )
    if (claimed === undefined) return false
    yield* sql.run(
      `update {verifications} set held_until = null, ended_at = :endedAt, error_code = :code, report = :report
       where tenant_id = :tenant and verification_id = :id`,
      {
        id,
        endedAt: report.endedAt,
        code: report.error?.code ?? null,
        report: replaceNul(JSON.stringify(report)),
      },
    )
    yield* sql.kernel.writeAudit(null, createVerifyAuditEntry({ id, database, actor: claimed.actor }, report))
    return true
  }),

  verifications: defineRead(function* (sql, { database, ended = false, limit }) {
    const rows = yield* sql.all<VerificationRow>(
      `select ${COLUMNS} from {verifications} where tenant_id = :tenant ${database === undefined ? '' : 'and database_name = :database'}
       ${ended ? 'and ended_at is not null' : ''} order by verification_id desc limit :limit`,
      { limit, ...(database !== undefined && { database }) },
    )
    return rows.map(toVerification)
  }),

  lastVerifications: defineRead(function* (sql) {
    const rows = yield* sql.all<VerificationRow>(
      `select ${COLUMNS} from {verifications} where tenant_id = :tenant and verification_id in (
         select max(verification_id) from {verifications}
         where tenant_id = :tenant and ended_at is not null and error_code is null group by database_name)
       order by database_name`,
    )
    return rows.map(toVerification)
  }),
} satisfies PlansOf<VerificationStore>

interface VerificationRow {
  id: number
  database: string
  actor: string
  holder: string | null
  startedAt: number
  report: string | null
}

function toVerification({ id, database, actor, holder, startedAt, report }: VerificationRow): Verification {
  return {
    id,
    database,
    actor,
    startedAt,
    heldBy: report === null ? holder : null,
    report: report === null ? null : (JSON.parse(report) as VerificationReport),
  }
}
