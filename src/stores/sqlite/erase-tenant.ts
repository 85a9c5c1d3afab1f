import type { EraseResult, TenantBusy } from '../../contract/index.ts'
import { ERASE_TENANT_PLAN } from '../kit/erase-tenant.ts'
import type { Connection, TenantSession } from './connection.ts'
import { runPlan } from './sql.ts'

export function eraseTenant(session: TenantSession, by: { actor: string; at: number }): EraseResult | TenantBusy {
  const erased = runPlan(session, ERASE_TENANT_PLAN, [by])
  if (erased.kind === 'held') return erased
  return {
    ...erased,
    remains: overwriteFreePages(session.connection)
      ? null
      : 'deleted rows in the SQLite file, because other processes use it. Stop them and erase the tenant again',
  }
}

/** Deleted rows stay in free pages, and in the log beside the file, until both are rewritten. */
function overwriteFreePages(connection: Connection): boolean {
  try {
    connection.exec('vacuum')
    return connection.all<{ busy: number }>('pragma wal_checkpoint(truncate)').every(({ busy }) => busy === 0)
  } catch {
    return false
  }
}
