import type { Session } from './connection.ts'
import { requireTable, type Table } from './table.ts'

/** A database whose history is kept longer than the log, or was until now. */
export interface KeptHistory {
  readonly id: number
  /** Null once it follows the log again. */
  readonly days: number | null
  /** What ended up to here is gone. */
  readonly floor: number
}

export function setHistoryDays({ connection, tenantId }: Session, database: string, days: number | null): void {
  connection.run('update tidemark_databases set history_days = ?1 where tenant_id = ?2 and name = ?3 and history_days is not ?1', days, tenantId, database)
}

/** Up to now its history reached as far as the log. */
export function readKept({ connection, tenantId }: Session): KeptHistory[] {
  connection.run(
    `update tidemark_databases set (history_floor, history_floor_at) = (select floor, floor_committed_at from tidemark_tenants where tenant_id = ?1)
     where tenant_id = ?1 and history_days is not null and history_floor is null`, tenantId,
  )
  return connection.all<KeptHistory>(
    'select database_id as id, history_days as days, history_floor as floor from tidemark_databases where tenant_id = ? and history_floor is not null', tenantId,
  )
}

/** One step for each of them, up to the last sequence that is as old as it says (`before`): never beyond the log's floor, since the feed above it has to be whole. */
export function forgetHistory(
  session: Session, kept: readonly KeptHistory[], { floor, scanMax, before }: { floor: number; scanMax: number; before: (days: number) => number | null },
): { removed: number; more: boolean } {
  const { connection, tenantId } = session
  let [removed, more] = [0, false]
  for (const { id, days, floor: from } of kept) {
    const until = days === null ? floor : Math.min(floor, before(days) ?? from)
    const next = Math.min(until, from + scanMax)
    if (next > from) removed += forgetVersions(session, requireTable(session, id), next)
    more ||= next < until
    const isLog = days === null && next >= floor
    connection.run(
      `update tidemark_databases set history_floor = ?3, history_floor_at = case when ?3 is null then null else max(history_floor_at, coalesce(
         (select committed_at from tidemark_commits where tenant_id = ?1 and first_sequence <= ?3 order by first_sequence desc limit 1), 0)) end
       where tenant_id = ?1 and database_id = ?2 and history_floor is not ?3`, tenantId, id, isLog ? null : Math.max(from, next),
    )
  }
  return { removed, more }
}

/** Versions that were replaced, and deletions, up to a sequence. Current rows are never touched. */
export function forgetVersions(session: Session, { id, live, history }: Table, next: number): number {
  const { connection, tenantId } = session
  // A version goes with the entry that replaced it, whenever it was written itself.
  const gone = connection.all<{ sequence: number }>(`delete from ${history} where _until_sequence <= ? returning _sequence as sequence`, next)
  const deleted = connection.all<{ sequence: number }>(
    'delete from tidemark_deletions where tenant_id = ? and sequence <= ? and database_id = ? returning sequence', tenantId, next, id,
  )
  forgetCommits(session, [...gone, ...deleted].map(({ sequence }) => sequence), live, history)
  return gone.length + deleted.length
}

/** A commit leaves the directory with the last of its entries. */
function forgetCommits({ connection, tenantId }: Session, gone: readonly number[], live: string, history: string): void {
  const commits = new Set<number>()
  for (const sequence of gone) {
    const found = connection.get<{ first: number; last: number }>(
      'select first_sequence as first, last_sequence as last from tidemark_commits where tenant_id = ? and first_sequence <= ? order by first_sequence desc limit 1',
      tenantId, sequence,
    )
    if (found !== undefined && found.last >= sequence) commits.add(found.first)
  }
  for (const first of commits) {
    connection.run(
      `delete from tidemark_commits where tenant_id = ?1 and first_sequence = ?2
         and not exists (select 1 from ${live} where _sequence between ?2 and last_sequence)
         and not exists (select 1 from ${history} where _sequence between ?2 and last_sequence)
         and not exists (select 1 from tidemark_deletions where tenant_id = ?1 and sequence between ?2 and last_sequence)`, tenantId, first,
    )
  }
}
