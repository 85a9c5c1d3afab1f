import {
  SyncError,
  type BeginRequest,
  type ColumnKey,
  type ColumnStore,
  type StoredColumnRules,
  type SyncRef,
} from '../../../contract/index.ts'
import { createColumnKeyAuditEntry, createRevealAuditEntry } from '../audit-entries.ts'
import { lockTenant } from '../registry.ts'
import type { RegistryEntry } from '../registry-rows.ts'
import { defineRead, defineWrite, type PlansOf, type Sql, type Steps } from '../sql/port.ts'
import { checkSealingKey } from './data-keys.ts'

export const COLUMN_PLANS = {
  columnKeys: defineRead(function* (sql) {
    return yield* readColumnKeys(sql)
  }),

  offerColumnKey: defineWrite(function* (sql, key, by) {
    if (key === null)
      throw new SyncError('KEYS_MISSING', 'Hashed and encrypted columns need a store that seals its secrets.')
    const { id, secret } = key
    yield* lockTenant(sql)
    const known = yield* readColumnKeys(sql)
    if (known.length > 0) return known
    yield* checkSealingKey(sql, secret)
    yield* sql.run('insert into {column_keys} (tenant_id, key_id, number, secret) values (:tenant, :id, 1, :secret)', {
      id,
      secret,
    })
    yield* sql.kernel.writeAudit(null, createColumnKeyAuditEntry(id, by))
    return yield* readColumnKeys(sql)
  }),

  columnRules: defineRead(function* (sql, worker) {
    return (yield* readRules(sql, worker, null)).map(toStoredRules)
  }),

  recordReveal: defineWrite(function* (sql, by) {
    yield* lockTenant(sql)
    yield* sql.kernel.writeAudit(null, createRevealAuditEntry(by))
  }),
} satisfies PlansOf<ColumnStore>

/** A cycle as its column rules see it. */
interface RulesCycle {
  readonly entry: RegistryEntry
  readonly cycle: number
  /** The cycle began now and reads every record, so that all rows follow the rules once it is complete. */
  readonly readsAll: boolean
  readonly startSequence: number
  /** The sync has never written a row. */
  readonly isFirst: boolean
}

/**
 * Tracks which rules the rows follow: `applied` once a complete cycle that began with them has read every record. Legal
 * within the transaction that begins the cycle. Returns the databases whose rows may follow other rules.
 */
export function* beginColumnRules(
  sql: Sql,
  { worker }: SyncRef,
  { rules }: BeginRequest,
  { entry, cycle, startSequence, readsAll, isFirst }: RulesCycle,
): Steps<string[]> {
  if (rules === undefined) return []
  const isOwn = rules.sync === entry.stream_id
  const stored = new Map((yield* readRules(sql, worker, rules.sync)).map((row) => [row.database, row]))
  const changed: string[] = []
  for (const [database, fingerprint] of Object.entries(rules.fingerprints)) {
    const row = stored.get(database)
    if (row === undefined && fingerprint === '') continue
    const known = row === undefined ? { fingerprint: isFirst ? fingerprint : '', since: 0 } : toStoredRules(row)
    const applied = known.fingerprint
    if (applied !== fingerprint) changed.push(database)
    if (!isOwn) continue
    const isPending = row?.pending_cycle === cycle && row.pending === fingerprint
    const next = {
      applied,
      appliedSince: known.since,
      pending: readsAll || isPending ? fingerprint : null,
      pendingSince: readsAll ? startSequence : isPending ? row.pending_since : null,
      pendingCycle: readsAll || isPending ? cycle : null,
    }
    yield* sql.send(
      sql.dialect.upsert({
        table: 'column_rules',
        key: ['tenant_id', 'connector_id', 'stream_id', 'database_name'],
        insert: RULE_COLUMNS,
        update: RULE_COLUMNS,
      }),
      {
        connector_id: worker,
        stream_id: rules.sync,
        database_name: database,
        applied: next.applied,
        applied_since: next.appliedSince,
        pending: next.pending,
        pending_since: next.pendingSince,
        pending_cycle: next.pendingCycle,
      },
    )
  }
  return changed
}

const RULE_COLUMNS = ['applied', 'applied_since', 'pending', 'pending_since', 'pending_cycle']

interface RulesRow extends StoredColumnRules {
  readonly pending: string | null
  readonly pending_since: number | null
  readonly pending_cycle: number | null
  readonly committed_by: number | null
}

/** `sync` is null for all syncs of the worker. */
function readRules(sql: Sql, worker: string, sync: string | null): Steps<RulesRow[]> {
  return sql.all<RulesRow>(
    `select r.connector_id as worker, r.stream_id as sync, r.database_name as database, r.applied as fingerprint, r.applied_since as since, r.pending, r.pending_since, r.pending_cycle, g.committed_by
     from {column_rules} r
     left join {registry} g on g.tenant_id = r.tenant_id and g.connector_id = r.connector_id and g.stream_id = r.stream_id
     where r.tenant_id = :tenant and r.connector_id = :worker${sync === null ? '' : ' and r.stream_id = :sync'}
     order by r.stream_id, r.database_name`,
    sync === null ? { worker } : { worker, sync },
  )
}

/** The commit that completes a cycle does not write here: the checkpoint names the cycle that it comes from. */
function toStoredRules({ worker, sync, database, fingerprint, since, ...row }: RulesRow): StoredColumnRules {
  const isComplete = row.pending !== null && row.pending_cycle !== null && row.committed_by === row.pending_cycle
  if (!isComplete || row.pending === fingerprint) return { worker, sync, database, fingerprint, since }
  return { worker, sync, database, fingerprint: row.pending ?? '', since: row.pending_since ?? since }
}

function readColumnKeys(sql: Sql): Steps<ColumnKey[]> {
  return sql.all<ColumnKey>('select key_id as id, secret from {column_keys} where tenant_id = :tenant order by number')
}
