import type { CommitOutcome, Sweep } from '../../contract/index.ts'
import { isBraked, mergeRanges, toRanges, type LandingPlan } from '../kit/plan-landing.ts'
import type { RegistryEntry } from '../kit/registry-rows.ts'
import type { Session } from './connection.ts'
import { ACTION, STATUS } from './encoding.ts'
import { SequenceSet } from './sequence-set.ts'

export interface SweepFacts {
  readonly owner: number
  readonly cycle: number
  readonly startSequence: number
  readonly position: number
  /** Makes the commit that the deletions belong to; called only when there are any. */
  writeCommit(): number
}

/** Invariant 5: gone are the rows this owner had, that the cycle did not see, that nobody wrote since it began, and that no other owner still lists. */
export function sweep(
  session: Session, entry: RegistryEntry, limits: Sweep, facts: SweepFacts,
): { kind: 'swept'; count: number } | Extract<CommitOutcome, { kind: 'braked' }> {
  const { connection, tenantId, base } = session
  gatherSeen(session, facts.cycle)
  connection.run('delete from tidemark_claims where tenant_id = ? and owner_id = ? and cycle_id <> ?', tenantId, facts.owner, facts.cycle)

  let position = facts.position
  let commitId: number | null = null
  for (const { database_id: id, name } of connection.all<{ database_id: number; name: string }>(
    'select database_id, name from tidemark_databases where tenant_id = ? order by name', tenantId,
  )) {
    const doomed = connection.all<{ key: string; position: number }>(
      `select key, position from tidemark_rows r
       where tenant_id = ? and database_id = ? and status = 0 and owner_id = ? and position <= ?
         and position > coalesce((select ? + last from temp.tidemark_seen_ranges where first <= r.position - ? order by first desc limit 1), 0)
       order by key`,
      tenantId, id, facts.owner, base + facts.startSequence, base, base,
    )
    const dying = doomed.filter(({ key }) => !handOver(session, id, key))
    if (dying.length > 0) {
      const existed = countExisted(session, id, facts)
      if (isBraked(limits, existed, dying.length)) return { kind: 'braked', database: name, owned: existed, doomed: dying.length }
    }
    for (const { key, position: previous } of dying) {
      position++
      connection.run(
        'insert into tidemark_log (position, commit_id, database_id, key, action, previous) values (?, ?, ?, ?, ?, ?)',
        base + position, (commitId ??= facts.writeCommit()), id, key, ACTION.deleted, previous,
      )
      connection.run(
        'update tidemark_rows set position = ?, status = ?, hash = null, writer_id = ? where tenant_id = ? and database_id = ? and key = ?',
        base + position, STATUS.swept, entry.sync_id, tenantId, id, key,
      )
    }
  }
  return { kind: 'swept', count: position - facts.position }
}

/** Newcomers do not dilute the share that dies: were every key renamed, all that was there would still go. */
function countExisted(session: Session, databaseId: number, facts: SweepFacts): number {
  const { connection, tenantId, base } = session
  const { owned } = connection.get<{ owned: number }>(
    'select count(*) as owned from tidemark_rows where tenant_id = ? and database_id = ? and status = 0 and owner_id = ?', tenantId, databaseId, facts.owner,
  )!
  const { created } = connection.get<{ created: number }>(
    `select count(distinct l.key) as created from tidemark_log l
     join tidemark_rows r on r.tenant_id = ? and r.database_id = l.database_id and r.key = l.key
     where l.position > ? and l.position <= ? and l.database_id = ? and l.action = ? and r.status = 0 and r.owner_id = ?`,
    tenantId, base + facts.startSequence, base + facts.position, databaseId, ACTION.created, facts.owner,
  )!
  return owned - created
}

/** A row that another owner still lists passes to that owner instead of dying. */
function handOver(session: Session, databaseId: number, key: string): boolean {
  const { connection, tenantId } = session
  const heir = connection.get<{ owner_id: number }>(
    'select owner_id from tidemark_claims where tenant_id = ? and database_id = ? and key = ? order by owner_id limit 1', tenantId, databaseId, key,
  )
  if (heir === undefined) return false
  connection.run('delete from tidemark_claims where tenant_id = ? and database_id = ? and key = ? and owner_id = ?', tenantId, databaseId, key, heir.owner_id)
  connection.run('update tidemark_rows set owner_id = ? where tenant_id = ? and database_id = ? and key = ?', heir.owner_id, tenantId, databaseId, key)
  return true
}

export function rememberSeen(session: Session, plan: LandingPlan, databases: Map<string, number>, owner: number, cycle: number, page: number): void {
  const { connection, tenantId } = session
  if (plan.seen.length > 0) {
    connection.run('insert into tidemark_seen (tenant_id, cycle_id, page, ranges) values (?, ?, ?, ?)', tenantId, cycle, page, JSON.stringify(toRanges(plan.seen)))
  }
  for (const { database, key } of plan.sightings) {
    const id = databases.get(database)!
    // An owner that never sweeps proves nothing by its silence: the first that does takes the row over.
    const taken = connection.run(
      `update tidemark_rows set owner_id = ? where tenant_id = ? and database_id = ? and key = ?
       and owner_id in (select owner_id from tidemark_owners where tenant_id = ? and sweeps = 0)`,
      owner, tenantId, id, key, tenantId,
    )
    if (taken.changes > 0) continue
    connection.run(
      `insert into tidemark_claims (tenant_id, database_id, key, owner_id, cycle_id) values (?, ?, ?, ?, ?)
       on conflict do update set cycle_id = excluded.cycle_id`,
      tenantId, id, key, owner, cycle,
    )
  }
}

/** What this page saw alive is not for another replace cycle to sweep; kept there as one more page, numbered by the sync that saw it. */
export function tellOtherSweeps(session: Session, { seen }: LandingPlan, syncId: number): void {
  if (seen.length === 0) return
  const { connection, tenantId } = session
  for (const { cycle } of connection.all<{ cycle: number }>(
    "select inflight_cycle as cycle from tidemark_registry where tenant_id = ? and inflight_mode = 'replace' and sync_id <> ?", tenantId, syncId,
  )) {
    const told = connection.get<{ ranges: string }>('select ranges from tidemark_seen where tenant_id = ? and cycle_id = ? and page = ?', tenantId, cycle, -syncId)
    const ranges = mergeRanges([...(told === undefined ? [] : (JSON.parse(told.ranges) as Array<[number, number]>)), ...toRanges(seen)])
    connection.run(
      'insert into tidemark_seen (tenant_id, cycle_id, page, ranges) values (?, ?, ?, ?) on conflict do update set ranges = excluded.ranges',
      tenantId, cycle, -syncId, JSON.stringify(ranges),
    )
  }
}

/** The pages' sightings as disjoint ranges, so that one step down an index tells whether a row was seen. */
function gatherSeen(session: Session, cycle: number): void {
  const { connection, tenantId } = session
  connection.exec('create temp table if not exists tidemark_seen_ranges (first integer primary key, last integer not null); delete from temp.tidemark_seen_ranges')
  const seen = new SequenceSet()
  for (const { ranges } of connection.prepare(
    'select ranges from tidemark_seen where tenant_id = ? and cycle_id = ?',
  ).iterate(tenantId, cycle) as IterableIterator<{ ranges: string }>) {
    for (const [first, last] of JSON.parse(ranges) as Array<[number, number]>) seen.add(first, last)
  }
  for (const [first, last] of seen.ranges()) connection.run('insert into temp.tidemark_seen_ranges (first, last) values (?, ?)', first, last)
}
