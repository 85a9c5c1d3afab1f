import {
  sampleEvenly,
  exceedsDeleteLimit,
  mergeRanges,
  toSequenceRanges,
  writeCommits,
  type CommitFacts,
  type CommitOutcome,
  type LandingPlan,
  type Sweep,
} from 'tidemark/store'
import type { Transaction } from './connection.ts'
import { deleteRows, deleteKeys } from './rows.ts'
import { performSteps, type TenantSession } from './sql.ts'
import { readTables, tableOf, type Table } from './table.ts'

export interface SweepFacts extends CommitFacts {
  readonly owner: number
  readonly startSequence: number
  readonly headSequence: number
}

type SequenceRanges = Array<[number, number]>

/**
 * Invariant 5: the sweep deletes rows of this owner that the cycle did not see, that no sync wrote since the source's
 * lag before it began, and that no other owner lists.
 */
export async function sweep(
  session: TenantSession,
  transaction: Transaction,
  limits: Sweep,
  facts: SweepFacts,
): Promise<{ kind: 'swept'; count: number } | Extract<CommitOutcome, { kind: 'massDeleteBlocked' | 'absent' }>> {
  const { tenant } = session
  const { owner, cycle, startSequence } = facts
  const pages = await transaction.all<{ ranges: string }>(
    'select ranges from tidemark_seen where tenant_id = ? and cycle_id = ?',
    tenant,
    cycle,
  )
  const seen = mergeRanges(pages.flatMap(({ ranges }) => JSON.parse(ranges) as SequenceRanges))
  await transaction.run(
    'delete from tidemark_claims where tenant_id = ? and owner_id = ? and cycle_id <> ?',
    tenant,
    owner,
    cycle,
  )
  let { headSequence } = facts
  for (const table of (await readTables(session, transaction)).values()) {
    const owned = await transaction.all<OwnedRow>(
      `select _key as "key", _sequence as sequence, _upstream_at as upstreamAt, _created_sequence <= ? as existed from ${table.name} where _owner = ? order by _key`,
      startSequence,
      owner,
    )
    const unseen = listUnseen(owned, seen, Math.min(startSequence, limits.settledSequence ?? startSequence))
    const toDelete = unseen.length === 0 ? [] : await transferOwnership(session, transaction, table, unseen)
    if (toDelete.length === 0) continue
    const existed = owned.filter((row) => Boolean(row.existed)).length - (unseen.length - toDelete.length)
    if (exceedsDeleteLimit(limits, existed, toDelete.length))
      return { kind: 'massDeleteBlocked', database: table.database, owned: existed, toDelete: toDelete.length }
    if (limits.confirmAbsent?.database === table.database) {
      return {
        kind: 'absent',
        keys: sampleEvenly(toDelete, limits.confirmAbsent.limit).map(({ key }) => key),
        count: toDelete.length,
      }
    }
    const first = headSequence + 1
    await deleteRows(
      session,
      transaction,
      table,
      toDelete.map(({ key, upstreamAt }) => ({
        key,
        sequence: ++headSequence,
        isLogged: true,
        isLive: true,
        status: 'swept',
        loggedAt: null,
        upstreamAt,
        writer: facts.sync,
        owner,
      })),
      facts.committedAt,
    )
    await deleteKeys(
      session,
      transaction,
      'contests',
      table,
      toDelete.map(({ key }) => ({ landing: { key } })),
    )
    await performSteps(session, transaction, (sql) => writeCommits(sql, [{ table, first, last: headSequence }], facts))
  }
  return { kind: 'swept', count: headSequence - facts.headSequence }
}

interface OwnedRow {
  readonly key: string
  readonly sequence: number
  readonly upstreamAt: string | null
  readonly existed: number
}

/** The rows up to a sequence that are in none of the ranges. */
function listUnseen(rows: readonly OwnedRow[], seen: SequenceRanges, until: number): OwnedRow[] {
  return rows.filter(({ sequence }) => {
    let [low, high] = [0, seen.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((seen[middle]?.[0] ?? Infinity) <= sequence) low = middle + 1
      else high = middle
    }
    return sequence <= until && (seen[low - 1]?.[1] ?? -1) < sequence
  })
}

/** Transfers rows that another owner still lists to that owner, and returns the others. */
async function transferOwnership(
  { tenant }: TenantSession,
  transaction: Transaction,
  { id, name }: Table,
  rows: readonly OwnedRow[],
): Promise<OwnedRow[]> {
  const claims = await transaction.all<{ key: string; heir: number }>(
    'select "key", min(owner_id) as heir from tidemark_claims where tenant_id = ? and database_id = ? group by "key"',
    tenant,
    id,
  )
  const heirs = new Map(claims.map(({ key, heir }) => [key, heir]))
  for (const { key } of rows) {
    const heir = heirs.get(key)
    if (heir === undefined) continue
    await transaction.run(
      'delete from tidemark_claims where tenant_id = ? and database_id = ? and "key" = ? and owner_id = ?',
      tenant,
      id,
      key,
      heir,
    )
    await transaction.run(`update ${name} set _owner = ? where _key = ?`, heir, key)
  }
  return rows.filter(({ key }) => !heirs.has(key))
}

/** Records the rows that a page of a replace cycle confirmed. */
export async function recordSeen(
  { tenant }: TenantSession,
  transaction: Transaction,
  plan: LandingPlan,
  tables: ReadonlyMap<string, Table>,
  { owner, cycle, page }: { owner: number; cycle: number; page: number },
): Promise<void> {
  if (plan.seenSequences.length > 0)
    await transaction.run(
      'insert into tidemark_seen values (?, ?, ?, ?)',
      tenant,
      cycle,
      page,
      JSON.stringify(toSequenceRanges(plan.seenSequences)),
    )
  for (const { database, key } of plan.sightings) {
    const { id, name } = tableOf(tables, database)
    // An owner that never sweeps does not protect its rows: the first sweeping owner takes them over.
    const taken = await transaction.run(
      `update ${name} set _owner = ? where _key = ? and _owner in (select owner_id from tidemark_owners where tenant_id = ? and not sweeps)`,
      owner,
      key,
      tenant,
    )
    if (taken > 0) continue
    await transaction.run(
      'insert into tidemark_claims values (?, ?, ?, ?, ?) on duplicate key update cycle_id = values(cycle_id)',
      tenant,
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
export async function protectFromOtherSweeps(
  { tenant }: TenantSession,
  transaction: Transaction,
  { seenSequences }: LandingPlan,
  syncId: number,
): Promise<void> {
  if (seenSequences.length === 0) return
  for (const { cycle } of await transaction.all<{ cycle: number }>(
    "select inflight_cycle as cycle from tidemark_registry where tenant_id = ? and inflight_mode = 'replace' and sync_id <> ?",
    tenant,
    syncId,
  )) {
    const stored = await transaction.get<{ ranges: string }>(
      'select ranges from tidemark_seen where tenant_id = ? and cycle_id = ? and page = ?',
      tenant,
      cycle,
      -syncId,
    )
    const ranges = JSON.stringify(
      mergeRanges([
        ...(stored === undefined ? [] : (JSON.parse(stored.ranges) as SequenceRanges)),
        ...toSequenceRanges(seenSequences),
      ]),
    )
    await transaction.run(
      'insert into tidemark_seen values (?, ?, ?, ?) on duplicate key update ranges = values(ranges)',
      tenant,
      cycle,
      -syncId,
      ranges,
    )
  }
}

/** True when another owner that sweeps has the row, or listed its key in its last complete cycle. */
export async function createSharedKeyCheck(
  { tenant }: TenantSession,
  transaction: Transaction,
  owner: number,
): Promise<(databaseId: number, key: string, rowOwner: number) => boolean> {
  const sweeping = new Set(
    (
      await transaction.all<{ id: number }>(
        'select owner_id as id from tidemark_owners where tenant_id = ? and sweeps',
        tenant,
      )
    ).map(({ id }) => id),
  )
  const claims = await transaction.all<{ id: number; key: string }>(
    'select database_id as id, "key" from tidemark_claims where tenant_id = ? and owner_id <> ?',
    tenant,
    owner,
  )
  const claimed = new Set(claims.map(({ id, key }) => `${id} ${key}`))
  return (databaseId, key, rowOwner) =>
    (rowOwner !== owner && sweeping.has(rowOwner)) || claimed.has(`${databaseId} ${key}`)
}
