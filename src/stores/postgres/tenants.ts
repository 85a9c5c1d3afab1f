import { SyncError, type Erased, type Occupied } from '../../contract/index.ts'
import { eraseEntry } from '../kit/audit-entries.ts'
import type { Session, Transaction } from './connection.ts'
import { NOW_MS } from './now.ts'
import { lockTenant, writeAudit } from './registry.ts'
import { readTables } from './table.ts'

export function erase({ connection, tenant }: Session, by: { actor: string; at: number }): Promise<Erased | Occupied> {
  return connection.write(tenant, async (transaction): Promise<Erased | Occupied> => {
    await lockTenant(transaction)
    const entries = await transaction.all<{ worker: string; sync: string; by: string | null; until: number | null; now: number }>(
      `select connector_id as worker, stream_id as sync, holder as by, held_until as until, ${NOW_MS} as now from tidemark.registry where tenant_id = $1 for update`, tenant,
    )
    const held = entries.find(({ until, now }) => until !== null && until > now)
    if (held !== undefined) return { kind: 'held', ref: { worker: held.worker, sync: held.sync }, by: held.by!, until: held.until! }
    await lockSeveral(transaction)
    await keepEpochs(transaction)
    const counts = { syncs: entries.length, entries: await eraseRows(transaction) }
    // Whoever asks again finds the record of the first time.
    if (counts.entries > 0) await eraseTrail(transaction, counts, by)
    return { kind: 'erased', ...counts, remains: 'the free space of its tables until VACUUM and new rows take it, the write-ahead log, replicas and backups' }
  })
}

/** Rows of which others lock several without the tenant, in the order in which they do. */
async function lockSeveral(transaction: Transaction): Promise<void> {
  // A delivery that is being noted holds its webhook, and then its deliveries.
  await transaction.run('select from tidemark.webhooks where tenant_id = $1 for update', transaction.tenant)
  await transaction.run('select from tidemark.pauses where tenant_id = $1 order by connector_id, pacer, origin for update', transaction.tenant)
  await transaction.run('select from tidemark.requests where tenant_id = $1 order by time_window, who for update', transaction.tenant)
}

/** Invariant 3: whoever holds a lease from before, ended or not, must never hold a newest one. */
async function keepEpochs(transaction: Transaction): Promise<void> {
  await transaction.run(
    `update tidemark.tenants set epoch = greatest(epoch, (select max(epoch) from tidemark.registry where tenant_id = $1), (select max(epoch) from tidemark.webhooks where tenant_id = $1))
     where tenant_id = $1`, transaction.tenant,
  )
}

const DEPENDED_ON = '2BP01'

async function eraseRows(transaction: Transaction): Promise<number> {
  let erased = 0
  for (const { name, history } of (await readTables(transaction)).values()) {
    // A table that was dropped by hand has nothing to count.
    for (const table of [name, history]) {
      const there = await transaction.get<{ is: boolean }>('select to_regclass($1) is not null as is', table)
      if (there!.is) erased += (await transaction.get<{ count: number }>(`select count(*) from ${table}`))!.count
    }
    if (await transaction.attempt(`drop table if exists ${name}, ${history}`, { lockTimeoutMs: 10_000, refusals: [DEPENDED_ON] })) continue
    throw new SyncError('STORE_FOREIGN', `Others have built upon the table ${name}: drop what they built first. Nothing was erased.`)
  }
  // From the catalog itself, so that a table that is added later is not forgotten.
  const tables = await transaction.all<{ name: string }>("select tablename as name from pg_tables where schemaname = 'tidemark' and tablename not in ('tenants', 'audit')")
  for (const { name } of tables) erased += await transaction.run(`delete from tidemark.${name} where tenant_id = $1`, transaction.tenant)
  return erased
}

/** Last of all: the audit lets itself be deleted only once nothing is left that it tells of. */
async function eraseTrail(transaction: Transaction, counts: { syncs: number; entries: number }, by: { actor: string; at: number }): Promise<void> {
  await transaction.run('delete from tidemark.audit where tenant_id = $1', transaction.tenant)
  await transaction.run(
    "update tidemark.tenants set erased = true, audit_head = '', audit_count = 0, floor = sequence, floor_committed_at = committed_at where tenant_id = $1", transaction.tenant,
  )
  writeAudit(transaction, null, eraseEntry(counts, by))
}
