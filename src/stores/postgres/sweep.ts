import type { CommitOutcome, Sweep, SweepScope } from '../../contract/index.ts'
import { countToAllowDeletes, exceedsDeleteLimit, type LandingFacts, type LandingPlan } from '../kit/plan-landing.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { DELETED_AT } from '../kit/tables/delete-state.ts'
import { textArray } from './binary-arrays.ts'
import { writeCommits, type CommitFacts, type LoggedRange } from './commits.ts'
import type { Transaction } from './connection.ts'
import { checkDeletable } from './delete-mode.ts'
import { insertMany } from './insert-many.ts'
import { STATUS_CODES } from './find-rows.ts'
import { groupByTable, keysFromParameter } from './rows.ts'
import { SYSTEM_COLUMNS, readTables, type Table } from './table.ts'
import { required } from '../../values/required.ts'

export interface SweepFacts extends CommitFacts {
  readonly owner: number
  /** Databases in which the owner may have rows. */
  readonly holdings: ReadonlySet<number>
  /** See `applyDeleteModes`. */
  readonly lockedDatabases: ReadonlySet<string>
  readonly startSequence: number
  readonly headSequence: number
}

/** The facts of the cycle, and the bounds of its sweep. */
interface SweepBounds extends SweepFacts {
  /** The last sequence that may be swept. */
  readonly settled: number
  readonly within: SweepScope | undefined
}

/**
 * Invariant 5: the sweep deletes rows of this owner that the cycle did not see, that no sync wrote since the source's
 * lag before it began, and that no other owner lists. Unseen rows are found in the gaps between the seen sequences.
 */
export async function sweep(
  transaction: Transaction,
  limits: Sweep,
  given: SweepFacts,
): Promise<{ kind: 'swept'; count: number } | Extract<CommitOutcome, { kind: 'massDeleteBlocked' | 'absent' }>> {
  const { tenant } = transaction
  const { owner, cycle, startSequence } = given
  const facts: SweepBounds = {
    ...given,
    settled: Math.min(startSequence, limits.settledSequence ?? startSequence),
    within: limits.within,
  }
  const { within } = limits
  // A claim outside the scope is of a row that this cycle did not read.
  if (within === undefined) {
    transaction.send(
      'delete from tidemark.claims where tenant_id = $1 and owner_id = $2 and cycle_id <> $3',
      tenant,
      owner,
      cycle,
    )
  }

  const tables = [...(await readTables(transaction)).values()]
    .filter((table) => facts.holdings.has(table.id) && canContain(table, within))
    .toSorted((a, b) => a.id - b.id)
  const surveys = await Promise.all(
    tables.map(async (table) => ({ table, ...(await countUnseen(transaction, table, facts)) })),
  )
  for (const { table, unseen, inherited } of surveys) {
    const toDelete = unseen - inherited
    if (toDelete === 0) continue
    // Rows that are newer than the cycle do not dilute the deleted share: if every key were renamed, all previous rows
    // would still be deleted.
    const countMax = inherited + countToAllowDeletes(limits, toDelete)
    const existed = (await countRowsAtStart(transaction, table, facts, countMax)) - inherited
    if (exceedsDeleteLimit(limits, existed, toDelete))
      return { kind: 'massDeleteBlocked', database: table.database, owned: existed, toDelete }
    if (limits.confirmAbsent?.database === table.database)
      return {
        kind: 'absent',
        keys: await sampleUnseenKeys(transaction, table, facts, toDelete, limits.confirmAbsent.limit),
        count: toDelete,
      }
  }
  for (const { table, inherited } of surveys) if (inherited > 0) transferOwnership(transaction, table, facts)
  let { headSequence } = facts
  const ranges: LoggedRange[] = []
  for (const { table, unseen, inherited } of surveys.toSorted((a, b) =>
    Buffer.compare(Buffer.from(a.table.database), Buffer.from(b.table.database)),
  )) {
    const toDelete = unseen - inherited
    if (toDelete === 0) continue
    deleteUnseen(transaction, table, facts, headSequence)
    ranges.push({ table, first: headSequence + 1, last: headSequence + toDelete })
    headSequence += toDelete
  }
  writeCommits(transaction, ranges, facts)
  return { kind: 'swept', count: headSequence - facts.headSequence }
}

/**
 * Live rows of the owner that the cycle did not see. Each gap is an index scan: a planner that may join by ranges
 * compares every row with every gap. Parameters: tenant, database, owner, cycle, the last sequence that may be swept,
 * the values of the scope.
 */
function unseenSql(table: Table, within: SweepScope | undefined): string {
  return `gaps as materialized (
      select unnest(int8multirange(int8range(0, $5::bigint, '[]')) - coalesce(range_agg(ranges), int8multirange())) as gap
      from tidemark.seen where tenant_id = $1 and cycle_id = $4
    ),
    unseen as materialized (
      select t._key as key, exists (select from tidemark.claims c where c.tenant_id = $1 and c.database_id = $2 and c.key = t._key) as is_claimed
      from gaps g cross join lateral (
        select _key, _owner, ${scopeCondition(table, within, 6)} as is_inside from ${table.live} l where _sequence >= lower(g.gap) and _sequence < upper(g.gap) order by _sequence offset 0
      ) t where t._owner = $3 and t.is_inside
    )`
}

const parametersOf = (transaction: Transaction, { id }: Table, { owner, cycle, settled, within }: SweepBounds) =>
  [transaction.tenant, id, owner, cycle, settled, within === undefined ? null : textArray(within.values)] as const

/** The condition for a row `l` of the scope, whose values are a parameter. */
function scopeCondition(table: Table, within: SweepScope | undefined, parameter: number): string {
  const values = `$${parameter}::text[]`
  if (within === undefined) return `${values} is null`
  return `l.${quoteIdentifier(required(findColumn(table, within), 'column of the scope'))}::text = any(${values})`
}

/** Whether a row of the table can be in the scope: its field has a column. */
function canContain(table: Table, within: SweepScope | undefined): boolean {
  return within === undefined || (findColumn(table, within) !== null && within.values.length > 0)
}

function findColumn({ columns }: Table, { field }: SweepScope): string | null {
  return columns.find(({ member }) => member === field)?.name ?? null
}

interface UnseenCounts {
  unseen: number
  /** Not seen, but listed by another owner. */
  inherited: number
}

async function countUnseen(transaction: Transaction, table: Table, facts: SweepBounds): Promise<UnseenCounts> {
  return await transaction.one<UnseenCounts>(
    `with ${unseenSql(table, facts.within)} select count(*) as unseen, count(*) filter (where is_claimed) as inherited from unseen`,
    ...parametersOf(transaction, table, facts),
  )
}

/** Counts the owner's live rows that existed when the cycle began, up to `countMax`. */
async function countRowsAtStart(
  transaction: Transaction,
  table: Table,
  { owner, startSequence, within }: SweepBounds,
  countMax: number,
): Promise<number> {
  return (
    await transaction.one<{ count: number }>(
      `select count(*) from (select from ${table.live} l where _owner = $1 and _created_sequence <= $2 and ${scopeCondition(table, within, 4)} limit $3) as existed`,
      owner,
      startSequence,
      countMax,
      within === undefined ? null : textArray(within.values),
    )
  ).count
}

/** Samples at most `limit` of the keys to delete, at equal distances. */
async function sampleUnseenKeys(
  transaction: Transaction,
  table: Table,
  facts: SweepBounds,
  count: number,
  limit: number,
): Promise<string[]> {
  const rows = await transaction.all<{ key: string }>(
    `with ${unseenSql(table, facts.within)}, to_delete as (select key, row_number() over (order by key) - 1 as at from unseen where not is_claimed)
     select key from to_delete where at = 0 or (at * $7) / $8 <> ((at - 1) * $7) / $8 order by key`,
    ...parametersOf(transaction, table, facts),
    Math.min(limit, count),
    count,
  )
  return rows.map(({ key }) => key)
}

/** Transfers rows that another owner still lists to that owner. */
function transferOwnership(transaction: Transaction, table: Table, facts: SweepBounds): void {
  transaction.send(
    `with ${unseenSql(table, facts.within)}, heirs as materialized (
       select u.key, (select min(c.owner_id) from tidemark.claims c where c.tenant_id = $1 and c.database_id = $2 and c.key = u.key) as owner_id from unseen u where u.is_claimed
     ), redeemed as (
       delete from tidemark.claims c using heirs h where c.tenant_id = $1 and c.database_id = $2 and c.key = h.key and c.owner_id = h.owner_id
     ), held as (
       insert into tidemark.holdings (tenant_id, owner_id, database_id) select distinct $1, owner_id, $2::integer from heirs on conflict do nothing
     )
     update ${table.name} t set _owner = h.owner_id from heirs h where t._key = h.key`,
    ...parametersOf(transaction, table, facts),
  )
}

/** Archives each row, and writes a deletion to the feed and a tombstone. */
function deleteUnseen(transaction: Transaction, table: Table, facts: SweepBounds, headSequence: number): void {
  checkDeletable(table, facts.lockedDatabases)
  const columns = [...SYSTEM_COLUMNS, ...table.members.map(({ name }) => name)]
  const removal =
    table.deletes === 'soft'
      ? `update ${table.name} t set ${DELETED_AT} = to_timestamp($8::bigint / 1000.0), _synced_at = to_timestamp($8::bigint / 1000.0), _sequence = d.until, _writer = $9::integer from to_delete d`
      : `delete from ${table.name} t using to_delete d`
  transaction.send(
    `with ${unseenSql(table, facts.within)}, to_delete as materialized (
       select key, $7::bigint + row_number() over (order by key) as until from unseen where not is_claimed
     ), kept as (
       insert into ${table.history} (_until_sequence, _until_at, ${columns.join(', ')})
       select d.until, to_timestamp($8::bigint / 1000.0), ${columns.map((column) => `t.${column}`).join(', ')} from to_delete d join ${table.name} t on t._key = d.key
     ), listed as (
       insert into tidemark.deletions (tenant_id, sequence, database_id, key) select $1, until, $2, key from to_delete
     ), contested as (
       delete from tidemark.contests c using to_delete d where c.tenant_id = $1 and c.database_id = $2 and c.key = d.key
     ), gone as (
       ${removal} where t._key = d.key returning d.key, d.until, t._upstream_at
     )
     insert into tidemark.tombstones (tenant_id, database_id, key, sequence, status, upstream_at, writer_id, owner_id)
     select $1, $2, key, until, ${STATUS_CODES.swept}, _upstream_at, $9::integer, $3 from gone`,
    ...parametersOf(transaction, table, facts),
    headSequence,
    facts.committedAt,
    facts.sync,
  )
}

export interface Owner {
  readonly id: number
  readonly name: string
  readonly sweeps: boolean
  /** Ids of the databases in which it may have rows. */
  readonly holdings: ReadonlySet<number>
}

export interface SightingFacts {
  readonly owner: number
  /** All owners of the tenant. */
  readonly owners: readonly Owner[]
  readonly find: LandingFacts['find']
  readonly cycle: number
}

/**
 * Records which rows of other owners a page of a replace cycle returned. Returns the tables in which the owner has taken
 * over rows.
 */
export function recordSightings(
  transaction: Transaction,
  plan: LandingPlan,
  tables: ReadonlyMap<string, Table>,
  { owner, owners, find, cycle }: SightingFacts,
): Table[] {
  // An owner that never sweeps does not protect its rows: the first sweeping owner takes them over.
  const nonSweeping = new Set(owners.filter(({ sweeps }) => !sweeps).map(({ id }) => id))
  const taken: Table[] = []
  for (const [table, own] of groupByTable(
    plan.sightings.map((landing) => ({ landing })),
    tables,
  )) {
    const [free, shared]: [string[], string[]] = [[], []]
    for (const { landing } of own)
      (nonSweeping.has(required(find(landing), 'The row of a sighting').owner) ? free : shared).push(landing.key)
    if (free.length > 0) {
      transaction.send(
        `update ${table.name} t set _owner = $1 from ${keysFromParameter(2)} w where t._key = w.key`,
        owner,
        textArray(free),
      )
      taken.push(table)
    }
    insertMany(
      transaction,
      'tidemark.claims',
      [
        { name: 'key', type: 'text', values: shared },
        { name: 'database_id', type: 'integer', values: shared.map(() => table.id) },
        { name: 'owner_id', type: 'integer', values: shared.map(() => owner) },
        { name: 'cycle_id', type: 'bigint', values: shared.map(() => cycle) },
      ],
      'on conflict (tenant_id, database_id, key, owner_id) do update set cycle_id = excluded.cycle_id',
    )
  }
  return taken
}
