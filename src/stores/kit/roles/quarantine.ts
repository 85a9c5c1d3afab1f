import type { QuarantineStore, QuarantineEntry } from '../../../contract/index.ts'
import { SYNC_ID_SQL } from '../registry.ts'
import { defineRead, type PlansOf } from '../sql/port.ts'

export const QUARANTINE_PLANS = {
  quarantineEntries: defineRead(function* (sql, { ref, limit = 1_000 } = {}) {
    return yield* sql.all<QuarantineEntry>(
      `select q.quarantine_id as id, g.connector_id as worker, g.stream_id as sync, q.database_name as "database", q.key, q.code, q.message, q.text,
         q.cycle_id as cycle, q.page, q.at
       from {quarantine} q join {registry} g on g.tenant_id = q.tenant_id and g.sync_id = q.sync_id
       where q.tenant_id = :tenant ${ref === undefined ? '' : `and q.sync_id = ${SYNC_ID_SQL}`} order by q.quarantine_id desc limit :limit`,
      { ...ref, limit },
    )
  }),
} satisfies PlansOf<QuarantineStore>
