import {
  SyncError,
  type BeginRequest,
  type ColumnKey,
  type ColumnStore,
  type StoredColumnRules,
  type SyncRef,
  type UsedColumnRules,
} from '../../../contract/index.ts'
import { createColumnKeyAuditEntry, createColumnRulesAuditEntry, createRevealAuditEntry } from '../audit-entries.ts'
import { findEntry, lockTenant } from '../registry.ts'
import type { RegistryEntry } from '../registry-rows.ts'
import { defineRead, defineWrite, type PlansOf, type Sql, type Steps } from '../sql/port.ts'
import { required } from '../../../values/required.ts'
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

  changeColumnRules: defineWrite(function* (sql, { worker, sync, database, rules, isApplied }, by) {
    const { sequence } = yield* lockTenant(sql)
    const row = (yield* readRules(sql, worker, sync)).find((one) => one.database === database)
    const known = row === undefined ? { ...NO_RULES, worker, sync, database } : toStoredRules(row)
    if (isApplied && lastUse(known.used, sync)?.rules !== rules) return null
    const next = isApplied
      ? { applied: rules, appliedSince: 0, used: [{ sync: '', since: 0, rules }] }
      : {
          applied: known.fingerprint,
          appliedSince: known.since,
          used: addUse(known.used, { sync, since: sequence, rules }),
        }
    const pending = { pending: null, pendingSince: null, pendingCycle: null }
    yield* writeRules(sql, {
      worker,
      sync,
      database,
      ...(row === undefined || isApplied ? pending : toPending(row)),
      ...next,
    })
    if (isApplied) yield* sql.kernel.writeAudit(null, createColumnRulesAuditEntry(sync, database, by))
    return required(
      (yield* readRules(sql, worker, sync)).map(toStoredRules).find((one) => one.database === database),
      'rules',
    )
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
  /** The tenant's newest sequence now. */
  readonly headSequence: number
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
  { entry, cycle, startSequence, headSequence, readsAll, isFirst }: RulesCycle,
): Steps<string[]> {
  if (rules === undefined) return []
  const isOwn = rules.sync === entry.stream_id
  const stored = new Map((yield* readRules(sql, worker, rules.sync)).map((row) => [row.database, row]))
  const changed: string[] = []
  for (const [database, fingerprint] of Object.entries(rules.fingerprints)) {
    const row = stored.get(database)
    if (row === undefined && fingerprint === '') continue
    const ref = { worker, sync: rules.sync, database }
    const first = { fingerprint, since: 0, used: [{ sync: '', since: 0, rules: fingerprint }] }
    const known = row === undefined ? (isOwn && isFirst ? first : NO_RULES) : toStoredRules(row)
    if (known.fingerprint !== fingerprint) changed.push(database)
    const applied = { ...ref, applied: known.fingerprint, appliedSince: known.since }
    const used = addUse(known.used, { sync: entry.stream_id, since: headSequence, rules: fingerprint })
    if (!isOwn) {
      // A delta writes by the rules before its backfill has begun a cycle with them.
      const hasBegun = row !== undefined || ((yield* findEntry(sql, ref))?.version ?? 0) > 0
      if (hasBegun && used !== known.used) yield* writeRules(sql, { ...applied, ...toPending(row), used })
      continue
    }
    const isPending = row?.pending_cycle === cycle && row.pending === fingerprint
    yield* writeRules(sql, {
      ...applied,
      pending: readsAll || isPending ? fingerprint : null,
      pendingSince: readsAll ? startSequence : isPending ? row.pending_since : null,
      pendingCycle: readsAll || isPending ? cycle : null,
      used,
    })
  }
  return changed
}

/** The rules of rows that were written before the sync had any. */
const NO_RULES: Pick<StoredColumnRules, 'fingerprint' | 'since' | 'used'> = {
  fingerprint: '',
  since: 0,
  used: [{ sync: '', since: 0, rules: '' }],
}

/** The same list if the rules are those of the last use, or if earlier uses are not known. */
function addUse(used: readonly UsedColumnRules[], use: UsedColumnRules): readonly UsedColumnRules[] {
  return used.length === 0 || lastUse(used, use.sync)?.rules === use.rules ? used : [...used, use]
}

function lastUse(used: readonly UsedColumnRules[], sync: string): UsedColumnRules | undefined {
  return used.findLast((use) => use.sync === sync || use.sync === '')
}

interface PendingRules {
  readonly pending: string | null
  readonly pendingSince: number | null
  readonly pendingCycle: number | null
}

function toPending(row: RulesRow | undefined): PendingRules {
  return {
    pending: row?.pending ?? null,
    pendingSince: row?.pending_since ?? null,
    pendingCycle: row?.pending_cycle ?? null,
  }
}

interface WrittenRules extends SyncRef, PendingRules {
  readonly database: string
  readonly applied: string
  readonly appliedSince: number
  readonly used: readonly UsedColumnRules[]
}

function* writeRules(sql: Sql, { worker, sync, database, used, ...rules }: WrittenRules): Steps<void> {
  yield* sql.send(
    sql.dialect.upsert({
      table: 'column_rules',
      key: ['tenant_id', 'connector_id', 'stream_id', 'database_name'],
      insert: RULE_COLUMNS,
      update: RULE_COLUMNS,
    }),
    {
      connector_id: worker,
      stream_id: sync,
      database_name: database,
      applied: rules.applied,
      applied_since: rules.appliedSince,
      pending: rules.pending,
      pending_since: rules.pendingSince,
      pending_cycle: rules.pendingCycle,
      used: JSON.stringify(used),
    },
  )
}

const RULE_COLUMNS = ['applied', 'applied_since', 'pending', 'pending_since', 'pending_cycle', 'used']

interface RulesRow extends Omit<StoredColumnRules, 'used'> {
  readonly used: string
  readonly pending: string | null
  readonly pending_since: number | null
  readonly pending_cycle: number | null
  readonly committed_by: number | null
}

/** `sync` is null for all syncs of the worker. */
function readRules(sql: Sql, worker: string, sync: string | null): Steps<RulesRow[]> {
  return sql.all<RulesRow>(
    `select r.connector_id as worker, r.stream_id as sync, r.database_name as database, r.applied as fingerprint, r.applied_since as since, r.pending, r.pending_since, r.pending_cycle, r.used, g.committed_by
     from {column_rules} r
     left join {registry} g on g.tenant_id = r.tenant_id and g.connector_id = r.connector_id and g.stream_id = r.stream_id
     where r.tenant_id = :tenant and r.connector_id = :worker${sync === null ? '' : ' and r.stream_id = :sync'}
     order by r.stream_id, r.database_name`,
    sync === null ? { worker } : { worker, sync },
  )
}

/** The commit that completes a cycle does not write here: the checkpoint names the cycle that it comes from. */
function toStoredRules({ worker, sync, database, fingerprint, since, ...row }: RulesRow): StoredColumnRules {
  const used = JSON.parse(row.used) as UsedColumnRules[]
  const isComplete = row.pending !== null && row.pending_cycle !== null && row.committed_by === row.pending_cycle
  if (!isComplete || row.pending === fingerprint) return { worker, sync, database, fingerprint, since, used }
  return { worker, sync, database, fingerprint: row.pending ?? '', since: row.pending_since ?? since, used }
}

function readColumnKeys(sql: Sql): Steps<ColumnKey[]> {
  return sql.all<ColumnKey>('select key_id as id, secret from {column_keys} where tenant_id = :tenant order by number')
}
