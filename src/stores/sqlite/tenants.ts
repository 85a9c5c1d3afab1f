import type { Erased, Occupied } from '../../contract/index.ts'
import { ERASE_TENANT } from '../kit/erase-tenant.ts'
import type { Connection, Session } from './connection.ts'
import { runPlan } from './sql.ts'

export function erase(session: Session, by: { actor: string; at: number }): Erased | Occupied {
  const erased = runPlan(session, ERASE_TENANT, [by])
  if (erased.kind === 'held') return erased
  return { ...erased, remains: scrub(session.connection) ? null : 'the SQLite file, because other processes use it. Stop them and erase the tenant once more' }
}

/** Deleted rows stay in free pages, and in the log beside the file, until both are written anew. */
function scrub(connection: Connection): boolean {
  try {
    connection.exec('vacuum')
    return connection.all<{ busy: number }>('pragma wal_checkpoint(truncate)').every(({ busy }) => busy === 0)
  } catch {
    return false
  }
}
