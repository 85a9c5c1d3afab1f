import type { EraseResult, TenantBusy } from '../../contract/index.ts'
import { ERASE_TENANT_PLAN } from '../kit/erase-tenant.ts'
import type { TenantSession } from './connection.ts'
import { runPlan } from './sql.ts'

const REMAINING_TRACES =
  'the free space of its tables until VACUUM and new rows take it, the write-ahead log, replicas and backups'

export async function eraseTenant(
  session: TenantSession,
  by: { actor: string; at: number },
): Promise<EraseResult | TenantBusy> {
  const erased = await runPlan(session, ERASE_TENANT_PLAN, [by])
  return erased.kind === 'held' ? erased : { ...erased, remains: REMAINING_TRACES }
}
