import type { CommitOutcome, Sweep, SweepScope } from '../../contract/index.ts'
import {
  countToAllowDeletes,
  sampleEvenly,
  exceedsDeleteLimit,
  mergeRanges,
  toSequenceRanges,
  type LandingPlan,
} from '../kit/plan-landing.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { liveCondition } from '../kit/tables/delete-state.ts'
import { writeCommits, type CommitFacts } from './commits.ts'
import type { TenantSession } from './connection.ts'
import { STATUS_CODES } from './stored-codes.ts'
import { SequenceSet } from './sequence-set.ts'
import { SYSTEM_COLUMNS, readTables, tableOf, type Table } from './table.ts'

export interface SweepFacts extends CommitFacts {
  readonly owner: number
  readonly startSequence: number
  readonly headSequence: number
}

/**
 * Invariant 5: the sweep deletes rows of this owner that the cycle did not see, that no sync wrote since the source's
 * lag before it began, and that no other owner lists.
 */
export function sweep(
  session: TenantSession,
  limits: Sweep,
  facts: SweepFacts,
): { kind: 'swept'; count: number } | Extract<CommitOutcome, { kind: 'massDeleteBlocked' | 'absent' }> {
  const { connection, tenantId } = session
  collectUnseenRanges(
    session,
    facts.cycle,
    Math.min(facts.startSequence, limits.settledSequence ?? facts.startSequence),
  )
  const { within } = limits
  // A claim outside the scope is of a row that this cycle did not read.
  if (within === undefined) {
    connection.run(
      'delete from tidemark_claims where tenant_id = ? and owner_id = ? and cycle_id <> ?',
      tenantId,
      facts.owner,
      facts.cycle,
    )
  }

  let { headSequence } = facts
  for (const open of readTables(session).values()) {
    const table = open()
    const scope = scopeCondition(table, within)
    if (scope === null) continue
    // The gaps drive the join: each is a range of the index by sequence, and a complete listing leaves few.
    const unseen = connection.all<{ key: string }>(
      `select t._key as key from temp.tidemark_unseen u cross join ${table.name} t indexed by tidemark_current_${table.id}
       on t._sequence between u.first and u.last${liveCondition(table)} where t._owner = ?${scope.sql} order by t._key`,
      facts.owner,
      ...scope.values,
    )
    const toDelete = unseen.filter(({ key }) => !transferOwnership(session, table, key))
    if (toDelete.length === 0) continue
    const existed = countRowsAtStart(session, table, scope, facts, countToAllowDeletes(limits, toDelete.length))
    if (exceedsDeleteLimit(limits, existed, toDelete.length))
      return { kind: 'massDeleteBlocked', database: table.database, owned: existed, toDelete: toDelete.length }
    if (limits.confirmAbsent?.database === table.database) {
      return {
        kind: 'absent',
        keys: sampleEvenly(toDelete, limits.confirmAbsent.limit).map(({ key }) => key),
        count: toDelete.length,
      }
    }
    deleteRows(
      session,
      table,
      toDelete.map(({ key }) => key),
      headSequence,
      facts,
    )
    writeCommits(session, [{ table, first: headSequence + 1, last: headSequence + toDelete.length }], facts)
    headSequence += toDelete.length
  }
  return { kind: 'swept', count: headSequence - facts.headSequence }
}

interface ScopeCondition {
  readonly sql: string
  readonly values: readonly string[]
}

/** Null if no row of the table can be in the scope: then its field has no column. */
function scopeCondition({ columns }: Table, within: SweepScope | undefined): ScopeCondition | null {
  if (within === undefined) return { sql: '', values: [] }
  const name = columns.find(({ member }) => member === within.field)?.name ?? null
  if (name === null || within.values.length === 0) return null
  return {
    sql: ` and cast(t.${quoteIdentifier(name)} as text) in (${within.values.map(() => '?').join(', ')})`,
    values: within.values,
  }
}

/**
 * Deletes in key order, each row with the next sequence. Without statistics the planner would rather scan the table than
 * look up the deleted keys; a cross join fixes the order.
 */
function deleteRows(
  session: TenantSession,
  table: Table,
  keys: readonly string[],
  headSequence: number,
  { sync, committedAt }: SweepFacts,
): void {
  const { connection, tenantId } = session
  connection.exec(
    'create temp table if not exists tidemark_to_delete (key text primary key, sequence integer not null) without rowid; delete from temp.tidemark_to_delete',
  )
  for (const [at, key] of keys.entries())
    connection.run('insert into temp.tidemark_to_delete (key, sequence) values (?, ?)', key, headSequence + 1 + at)
  const columns = [...SYSTEM_COLUMNS, ...table.members].map((name) => `t.${name}`)
  connection.run(
    `insert into ${table.history} (_until_sequence, _until_at, ${[...SYSTEM_COLUMNS, ...table.members].join(', ')})
     select d.sequence, ?, ${columns.join(', ')} from temp.tidemark_to_delete d cross join ${table.name} t on t._key = d.key`,
    new Date(committedAt).toISOString(),
  )
  connection.run(
    'insert into tidemark_deletions (tenant_id, sequence, database_id, key) select ?, sequence, ?, key from temp.tidemark_to_delete',
    tenantId,
    table.id,
  )
  connection.run(
    `insert into tidemark_tombstones (tenant_id, database_id, key, sequence, status, upstream_at, writer_id, owner_id)
     select ?, ?, d.key, d.sequence, ${STATUS_CODES.swept}, t._upstream_at, ?, t._owner from temp.tidemark_to_delete d cross join ${table.name} t on t._key = d.key`,
    tenantId,
    table.id,
    sync,
  )
  connection.run(
    'delete from tidemark_contests where tenant_id = ? and database_id = ? and key in (select key from temp.tidemark_to_delete)',
    tenantId,
    table.id,
  )
  if (table.deletes !== 'soft')
    connection.run(`delete from ${table.name} where _key in (select key from temp.tidemark_to_delete)`)
  else {
    connection.run(
      `update ${table.name} as t set _deleted_at = ?1, _synced_at = ?1, _sequence = d.sequence, _writer = ?2 from temp.tidemark_to_delete d where t._key = d.key`,
      new Date(committedAt).toISOString(),
      sync,
    )
  }
}

/**
 * Rows that are newer than the cycle do not dilute the deleted share: if every key were renamed, all previous rows
 * would still be deleted. Counts up to `countMax`.
 */
function countRowsAtStart(
  { connection }: TenantSession,
  { live }: Table,
  scope: ScopeCondition,
  { owner, startSequence }: SweepFacts,
  countMax: number,
): number {
  return connection.one<{ existed: number }>(
    `select count(*) as existed from (select 1 from ${live} t where t._owner = ? and t._created_sequence <= ?${scope.sql} limit ?)`,
    owner,
    startSequence,
    ...scope.values,
    countMax,
  ).existed
}

/** True when another owner that sweeps has the row, or listed its key in its last complete cycle. */
export function isShared(
  session: TenantSession,
  databaseId: number,
  key: string,
  rowOwner: number,
  owner: number,
): boolean {
  const { connection, tenantId } = session
  if (
    rowOwner !== owner &&
    connection.get('select 1 from tidemark_owners where owner_id = ? and sweeps = 1', rowOwner) !== undefined
  )
    return true
  return (
    connection.get(
      'select 1 from tidemark_claims where tenant_id = ? and database_id = ? and key = ? and owner_id <> ?',
      tenantId,
      databaseId,
      key,
      owner,
    ) !== undefined
  )
}

/** Transfers a row that another owner still lists to that owner, instead of deleting it. */
function transferOwnership(session: TenantSession, { id, name }: Table, key: string): boolean {
  const { connection, tenantId } = session
  const heir = connection.get<{ owner_id: number }>(
    'select owner_id from tidemark_claims where tenant_id = ? and database_id = ? and key = ? order by owner_id limit 1',
    tenantId,
    id,
    key,
  )
  if (heir === undefined) return false
  connection.run(
    'delete from tidemark_claims where tenant_id = ? and database_id = ? and key = ? and owner_id = ?',
    tenantId,
    id,
    key,
    heir.owner_id,
  )
  connection.run(`update ${name} set _owner = ? where _key = ?`, heir.owner_id, key)
  return true
}

export function recordSeen(
  session: TenantSession,
  plan: LandingPlan,
  tables: ReadonlyMap<string, Table>,
  owner: number,
  cycle: number,
  page: number,
): void {
  const { connection, tenantId } = session
  if (plan.seenSequences.length > 0) {
    connection.run(
      'insert into tidemark_seen (tenant_id, cycle_id, page, ranges) values (?, ?, ?, ?)',
      tenantId,
      cycle,
      page,
      JSON.stringify(toSequenceRanges(plan.seenSequences)),
    )
  }
  for (const { database, key } of plan.sightings) {
    const { id, name } = tableOf(tables, database)
    // An owner that never sweeps does not protect its rows: the first sweeping owner takes them over.
    const taken = connection.run(
      `update ${name} set _owner = ? where _key = ? and _owner in (select owner_id from tidemark_owners where tenant_id = ? and sweeps = 0)`,
      owner,
      key,
      tenantId,
    )
    if (taken.changes > 0) continue
    connection.run(
      `insert into tidemark_claims (tenant_id, database_id, key, owner_id, cycle_id) values (?, ?, ?, ?, ?)
       on conflict do update set cycle_id = excluded.cycle_id`,
      tenantId,
      id,
      key,
      owner,
      cycle,
    )
  }
}

/**
 * Protects the rows that this page saw from other replace cycles: stored there as one more page, numbered by the sync
 * that saw them.
 */
export function protectFromOtherSweeps(session: TenantSession, { seenSequences }: LandingPlan, syncId: number): void {
  if (seenSequences.length === 0) return
  const { connection, tenantId } = session
  for (const { cycle } of connection.all<{ cycle: number }>(
    "select inflight_cycle as cycle from tidemark_registry where tenant_id = ? and inflight_mode = 'replace' and sync_id <> ?",
    tenantId,
    syncId,
  )) {
    const stored = connection.get<{ ranges: string }>(
      'select ranges from tidemark_seen where tenant_id = ? and cycle_id = ? and page = ?',
      tenantId,
      cycle,
      -syncId,
    )
    const ranges = mergeRanges([
      ...(stored === undefined ? [] : (JSON.parse(stored.ranges) as Array<[number, number]>)),
      ...toSequenceRanges(seenSequences),
    ])
    connection.run(
      'insert into tidemark_seen (tenant_id, cycle_id, page, ranges) values (?, ?, ?, ?) on conflict do update set ranges = excluded.ranges',
      tenantId,
      cycle,
      -syncId,
      JSON.stringify(ranges),
    )
  }
}

/** Collects the sequences that the pages did not see, as gaps between the seen ones, up to a sequence. */
function collectUnseenRanges(session: TenantSession, cycle: number, until: number): void {
  const { connection, tenantId } = session
  connection.exec(
    'create temp table if not exists tidemark_unseen (first integer primary key, last integer not null); delete from temp.tidemark_unseen',
  )
  const seen = new SequenceSet()
  for (const { ranges } of connection
    .prepare('select ranges from tidemark_seen where tenant_id = ? and cycle_id = ?')
    .iterate(tenantId, cycle) as IterableIterator<{ ranges: string }>) {
    for (const [first, last] of JSON.parse(ranges) as Array<[number, number]>) seen.add(first, last)
  }
  let next = 0
  const add = (first: number, last: number): void => {
    if (first <= last) connection.run('insert into temp.tidemark_unseen (first, last) values (?, ?)', first, last)
  }
  for (const [first, last] of seen.ranges()) {
    if (first > until) break
    add(next, first - 1)
    next = last + 1
  }
  add(next, until)
}
