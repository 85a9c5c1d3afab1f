import type { Erased, Occupied } from '../../contract/index.ts'
import { eraseEntry } from '../kit/audit-entries.ts'
import type { Connection, Session } from './connection.ts'
import { writeAudit } from './registry.ts'
import { readTables } from './table.ts'

export function erase(session: Session, by: { actor: string; at: number }): Erased | Occupied {
  const { connection } = session
  const erased = connection.write((): Erased | Occupied => {
    const holder = connection.get<{ worker: string; sync: string; by: string; until: number }>(
      'select connector_id as worker, stream_id as sync, holder as "by", held_until as until from tidemark_registry where tenant_id = ? and held_until > ?',
      session.tenantId, by.at,
    )
    if (holder !== undefined) return { kind: 'held', ref: { worker: holder.worker, sync: holder.sync }, by: holder.by, until: holder.until }
    keepEpochs(session)
    const counts = eraseRows(session)
    // Whoever asks again finds the record of the first time.
    if (counts.entries > 0) eraseTrail(session, counts, by)
    return { kind: 'erased', ...counts, remains: null }
  })
  if (erased.kind === 'held') return erased
  return { ...erased, remains: scrub(connection) ? null : 'the SQLite file, because other processes use it. Stop them and erase the tenant once more' }
}

/** Invariant 3: whoever holds a lease from before, ended or not, must never hold a newest one. */
function keepEpochs({ connection, tenantId }: Session): void {
  connection.run(
    `update tidemark_tenants set epoch = max(epoch, (select coalesce(max(epoch), 0) from tidemark_registry where tenant_id = ?1), (select coalesce(max(epoch), 0) from tidemark_webhooks where tenant_id = ?1))
     where tenant_id = ?1`, tenantId,
  )
}

function eraseRows(session: Session): { syncs: number; entries: number } {
  const { connection, tenantId } = session
  let entries = 0
  for (const open of readTables(session).values()) {
    const { name, history } = open()
    for (const table of [name, history]) {
      entries += connection.get<{ count: number }>(`select count(*) as count from ${table}`)!.count
      connection.exec(`drop table ${table}`)
    }
  }
  const { syncs } = connection.get<{ syncs: number }>('select count(*) as syncs from tidemark_registry where tenant_id = ?', tenantId)!
  // From the schema itself, so that a table that is added later is not forgotten.
  const tables = connection.all<{ name: string }>(
    `select m.name from sqlite_schema m, pragma_table_info(m.name) c where m.type = 'table' and c.name = 'tenant_id'
     and m.name like 'tidemark\\_%' escape '\\' and m.name not in ('tidemark_tenants', 'tidemark_audit')`,
  )
  for (const { name } of tables) entries += connection.run(`delete from ${name} where tenant_id = ?`, tenantId).changes
  return { syncs, entries }
}

/** Last of all: the audit lets itself be deleted only once nothing is left that it tells of. */
function eraseTrail(session: Session, counts: { syncs: number; entries: number }, by: { actor: string; at: number }): void {
  const { connection, tenantId } = session
  connection.run('delete from tidemark_audit where tenant_id = ?', tenantId)
  connection.run("update tidemark_tenants set erased = 1, audit_head = '', audit_count = 0, floor = sequence, floor_committed_at = committed_at where tenant_id = ?", tenantId)
  writeAudit(session, null, eraseEntry(counts, by))
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
