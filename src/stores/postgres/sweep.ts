import type { CommitOutcome, Sweep } from '../../contract/index.ts'
import { isBraked, toRanges, type LandingFacts, type LandingPlan } from '../kit/plan-landing.ts'
import type { Transaction } from './connection.ts'
import { insertMany } from './insert-many.ts'
import { ACTION, putRows, STATUS } from './rows.ts'

export interface SweepFacts {
  readonly writer: number
  readonly owner: number
  readonly cycle: number
  readonly startSequence: number
  readonly position: number
  readonly committedAt: number
}

/** Invariant 5: gone are the rows this owner had, that the cycle did not see, that nobody wrote since it began, and that no other owner still lists. */
export async function sweep(
  transaction: Transaction, limits: Sweep, facts: SweepFacts,
): Promise<{ kind: 'swept'; count: number } | Extract<CommitOutcome, { kind: 'braked' }>> {
  const { tenant } = transaction
  const { owner, cycle, startSequence } = facts
  transaction.send('delete from tidemark.claims where tenant_id = $1 and owner_id = $2 and cycle_id <> $3', tenant, owner, cycle)

  const surveys = await survey(transaction, facts)
  const count = surveys.reduce((sum, { dying }) => sum + dying, 0)
  const inherited = surveys.reduce((sum, survey) => sum + survey.inherited, 0)
  if (count > 0) {
    const created = await countCreated(transaction, facts)
    for (const { id, name, owned, dying } of surveys) {
      // Newcomers do not dilute the share that dies: were every key renamed, all that was there would still go.
      const existed = owned - (created.get(id) ?? 0)
      if (isBraked(limits, existed, dying)) return { kind: 'braked', database: name, owned: existed, doomed: dying }
    }
  }
  // A row that another owner still lists passes to that owner instead of dying.
  if (inherited > 0) {
    transaction.send(
      `with ${SEEN}, heirs as materialized (
         select distinct on (c.database_id, c.key) c.database_id, c.key, c.owner_id, r.sequence, r.writer_id, r.status
         from tidemark.claims c cross join lateral (
           select r.* from tidemark.rows r where r.database_id = c.database_id and r.key = c.key and ${DOOMED} limit 1
         ) r
         where c.tenant_id = $1 order by c.database_id, c.key, c.owner_id
       ), redeemed as (
         insert into tidemark.claims (tenant_id, database_id, key, owner_id, cycle_id) select $1, database_id, key, owner_id, 0 from heirs
         on conflict (tenant_id, database_id, key, owner_id) do update set cycle_id = 0
       )
       insert into tidemark.rows (tenant_id, database_id, key, owner_id, sequence, writer_id, status)
       select $1, database_id, key, owner_id, sequence, writer_id, status from heirs
       on conflict (tenant_id, database_id, key) do update set owner_id = excluded.owner_id`,
      tenant, owner, cycle, startSequence,
    )
    transaction.send('delete from tidemark.claims where tenant_id = $1 and cycle_id = 0', tenant)
  }
  if (count > 0) {
    transaction.send(
      `with ${SEEN}, dying as materialized (
         select r.database_id, r.key, r.sequence as previous, $5::bigint + row_number() over (order by d.name, r.key) as sequence
         from tidemark.rows r join tidemark.databases d on d.tenant_id = $1 and d.database_id = r.database_id where ${DOOMED}
       ), logged as (
         insert into tidemark.log (tenant_id, committed_at, sequence, database_id, action, previous, key)
         select $1, $6, sequence, database_id, ${ACTION.deleted}, previous, key from dying
       )
       insert into tidemark.rows (tenant_id, database_id, key, sequence, status, writer_id, owner_id)
       select $1, database_id, key, sequence, ${STATUS.swept}, $7::int, $2 from dying
       on conflict (tenant_id, database_id, key) do update set sequence = excluded.sequence, status = excluded.status, hash = null, writer_id = excluded.writer_id`,
      tenant, owner, cycle, startSequence, facts.position, facts.committedAt, facts.writer,
    )
  }
  return { kind: 'swept', count }
}

/** What the cycle saw, as one set. Parameters: tenant, owner, cycle, start sequence. */
const SEEN = `seen as materialized (select range_agg(ranges) as sequences from tidemark.seen where tenant_id = $1 and cycle_id = $3)`
const UNSEEN = `r.sequence <= $4 and not coalesce(r.sequence <@ (select sequences from seen), false)`
const DOOMED = `r.tenant_id = $1 and r.owner_id = $2 and r.status = ${STATUS.live} and ${UNSEEN}`

interface Survey {
  id: number
  name: string
  /** Live, and not about to pass to another owner. */
  owned: number
  dying: number
  /** Not seen, but listed by another owner. */
  inherited: number
}

function survey(transaction: Transaction, { owner, cycle, startSequence }: SweepFacts): Promise<Survey[]> {
  return transaction.all<Survey>(
    `with ${SEEN}, owned as (
       select r.database_id,
         case when ${UNSEEN} then exists (select from tidemark.claims c where c.tenant_id = $1 and c.database_id = r.database_id and c.key = r.key) end as is_claimed
       from tidemark.rows r where r.tenant_id = $1 and r.owner_id = $2 and r.status = ${STATUS.live}
     )
     select d.database_id as id, d.name, count(*) filter (where is_claimed is not true) as owned,
       count(*) filter (where not is_claimed) as dying, count(*) filter (where is_claimed) as inherited
     from owned o join tidemark.databases d on d.tenant_id = $1 and d.database_id = o.database_id
     group by d.database_id, d.name order by d.database_id`,
    transaction.tenant, owner, cycle, startSequence,
  )
}

/** Live rows of the owner that came, or came back, since the cycle began; by database. */
async function countCreated(transaction: Transaction, { owner, startSequence }: SweepFacts): Promise<Map<number, number>> {
  const counts = await transaction.all<{ id: number; created: number }>(
    `select l.database_id as id, count(distinct l.key) as created
     from tidemark.log l cross join lateral (
       select from tidemark.rows r where r.tenant_id = $1 and r.database_id = l.database_id and r.key = l.key and r.owner_id = $2 and r.status = ${STATUS.live} limit 1
     ) r
     where l.tenant_id = $1 and l.sequence > $3 and l.action = ${ACTION.created} group by l.database_id`,
    transaction.tenant, owner, startSequence,
  )
  return new Map(counts.map(({ id, created }) => [id, created]))
}

export interface Owner {
  readonly id: number
  readonly name: string
  readonly sweeps: boolean
}

export interface Sighting {
  readonly owner: number
  /** All that the tenant has. */
  readonly owners: readonly Owner[]
  readonly find: LandingFacts['find']
  readonly cycle: number
  readonly page: number
}

/** What this page saw alive is not for another replace cycle to sweep; kept there as one more page, numbered by the sync that saw it. */
export function tellOtherSweeps(transaction: Transaction, { seen }: LandingPlan, syncId: number): void {
  if (seen.length === 0) return
  transaction.send(
    `insert into tidemark.seen (tenant_id, cycle_id, page, ranges)
     select $1, inflight_cycle, -$2::bigint, $3::int8multirange from tidemark.registry
     where tenant_id = $1 and inflight_mode = 'replace' and sync_id <> $2::int
     on conflict (tenant_id, cycle_id, page) do update set ranges = seen.ranges + excluded.ranges`,
    transaction.tenant, syncId, toMultirange(seen),
  )
}

/** What a page of a replace cycle proved to be still there. */
export function rememberSeen(transaction: Transaction, plan: LandingPlan, databases: ReadonlyMap<string, number>, { owner, owners, find, cycle, page }: Sighting): void {
  const { tenant } = transaction
  if (plan.seen.length > 0) {
    transaction.send('insert into tidemark.seen (tenant_id, cycle_id, page, ranges) values ($1, $2, $3, $4::int8multirange)', tenant, cycle, page, toMultirange(plan.seen))
  }
  if (plan.sightings.length === 0) return
  // An owner that never sweeps proves nothing by its silence: the first that does takes the row over.
  const silent = new Set(owners.filter(({ sweeps }) => !sweeps).map(({ id }) => id))
  const taken = plan.sightings.filter((landing) => silent.has(find(landing)!.owner))
  const shared = plan.sightings.filter((landing) => !silent.has(find(landing)!.owner))
  const rows = taken.map((landing) => ({ ...find(landing)!, database: landing.database, key: landing.key, owner }))
  putRows(transaction, databases, rows, 'on conflict (tenant_id, database_id, key) do update set owner_id = excluded.owner_id')
  insertMany(transaction, 'tidemark.claims', [
    { name: 'key', type: 'text', values: shared.map(({ key }) => key) },
    { name: 'database_id', type: 'integer', values: shared.map(({ database }) => databases.get(database)!) },
    { name: 'owner_id', type: 'integer', values: shared.map(() => owner) },
    { name: 'cycle_id', type: 'bigint', values: shared.map(() => cycle) },
  ], 'on conflict (tenant_id, database_id, key, owner_id) do update set cycle_id = excluded.cycle_id')
}

function toMultirange(sequences: readonly number[]): string {
  return `{${toRanges(sequences).map(([first, last]) => `[${first},${last}]`).join()}}`
}
