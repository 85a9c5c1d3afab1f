import type { TenantSession } from './connection.ts'
import { requireTable } from './table.ts'

export function setHistoryDays({ connection, tenantId }: TenantSession, database: string, days: number | null): void {
  connection.run(
    'update tidemark_databases set history_days = ?1 where tenant_id = ?2 and name = ?3 and history_days is not ?1',
    days,
    tenantId,
    database,
  )
}

/** Deletes replaced versions and deletions up to a sequence. Current rows are never touched. */
export function pruneVersions(session: TenantSession, id: number, next: number): number {
  const { live, history } = requireTable(session, id)
  const { connection, tenantId } = session
  // A version is deleted with the entry that replaced it, whenever it was written itself.
  const gone = connection.all<{ sequence: number }>(
    `delete from ${history} where _until_sequence <= ? returning _sequence as sequence`,
    next,
  )
  const deleted = connection.all<{ sequence: number }>(
    'delete from tidemark_deletions where tenant_id = ? and sequence <= ? and database_id = ? returning sequence',
    tenantId,
    next,
    id,
  )
  pruneCommits(
    session,
    [...gone, ...deleted].map(({ sequence }) => sequence),
    live,
    history,
  )
  return gone.length + deleted.length
}

/** Deletes the commits whose last entry was deleted. */
function pruneCommits(
  { connection, tenantId }: TenantSession,
  gone: readonly number[],
  live: string,
  history: string,
): void {
  const commits = new Set<number>()
  for (const sequence of gone) {
    const found = connection.get<{ first: number; last: number }>(
      'select first_sequence as first, last_sequence as last from tidemark_commits where tenant_id = ? and first_sequence <= ? order by first_sequence desc limit 1',
      tenantId,
      sequence,
    )
    if (found !== undefined && found.last >= sequence) commits.add(found.first)
  }
  for (const first of commits) {
    connection.run(
      `delete from tidemark_commits where tenant_id = ?1 and first_sequence = ?2
         and not exists (select 1 from ${live} where _sequence between ?2 and last_sequence)
         and not exists (select 1 from ${history} where _sequence between ?2 and last_sequence)
         and not exists (select 1 from tidemark_deletions where tenant_id = ?1 and sequence between ?2 and last_sequence)`,
      tenantId,
      first,
    )
  }
}
