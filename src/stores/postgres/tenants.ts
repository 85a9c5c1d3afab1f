import type { Erased, Occupied } from '../../contract/index.ts'
import { ERASE_TENANT } from '../kit/erase-tenant.ts'
import type { Session } from './connection.ts'
import { runPlan } from './sql.ts'

const REMAINS = 'the free space of its tables until VACUUM and new rows take it, the write-ahead log, replicas and backups'

export async function erase(session: Session, by: { actor: string; at: number }): Promise<Erased | Occupied> {
  const erased = await runPlan(session, ERASE_TENANT, [by])
  return erased.kind === 'held' ? erased : { ...erased, remains: REMAINS }
}
