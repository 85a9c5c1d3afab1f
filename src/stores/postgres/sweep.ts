import type { CommitOutcome, Sweep } from '../../contract/index.ts'
import { isBraked, toRanges, type LandingPlan } from '../kit/plan-landing.ts'
import { integerArray, textArray } from './arrays.ts'
import type { Transaction } from './connection.ts'
import { ACTION, STATUS } from './rows.ts'

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
    for (const { name, owned, dying } of surveys) {
      // Newcomers do not dilute the share that dies: were every key renamed, all that was there would still go.
      const existed = owned - (created.get(name) ?? 0)
      if (isBraked(limits, existed, dying)) return { kind: 'braked', database: name, owned: existed, doomed: dying }
    }
  }
  // A row that another owner still lists passes to that owner instead of dying.
  if (inherited > 0) {
    transaction.send(
      `with ${SEEN}, heirs as (
         select distinct on (c.database_id, c.key) c.database_id, c.key, c.owner_id
         from tidemark.claims c join tidemark.rows r using (tenant_id, database_id, key)
         where ${DOOMED} order by c.database_id, c.key, c.owner_id
       ), taken as (
         delete from tidemark.claims c using heirs h
         where c.tenant_id = $1 and c.database_id = h.database_id and c.key = h.key and c.owner_id = h.owner_id
       )
       update tidemark.rows r set owner_id = h.owner_id from heirs h where r.tenant_id = $1 and r.database_id = h.database_id and r.key = h.key`,
      tenant, owner, cycle, startSequence,
    )
  }
  if (count > 0) {
    transaction.send(
      `with ${SEEN}, dying as materialized (
         select r.database_id, r.key, r.sequence as previous, $5 + row_number() over (order by r.database_id, r.key) as sequence
         from tidemark.rows r where ${DOOMED}
       ), logged as (
         insert into tidemark.log (tenant_id, committed_at, sequence, database_id, action, previous, key)
         select $1, $6, sequence, database_id, ${ACTION.deleted}, previous, key from dying
       )
       update tidemark.rows r set sequence = d.sequence, status = ${STATUS.swept}, hash = null, writer_id = $7
       from dying d where r.tenant_id = $1 and r.database_id = d.database_id and r.key = d.key`,
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
     select d.name, count(*) filter (where is_claimed is not true) as owned,
       count(*) filter (where not is_claimed) as dying, count(*) filter (where is_claimed) as inherited
     from owned o join tidemark.databases d on d.tenant_id = $1 and d.database_id = o.database_id
     group by d.database_id, d.name order by d.database_id`,
    transaction.tenant, owner, cycle, startSequence,
  )
}

/** Live rows of the owner that came, or came back, since the cycle began; by database. */
async function countCreated(transaction: Transaction, { owner, startSequence }: SweepFacts): Promise<Map<string, number>> {
  const counts = await transaction.all<{ name: string; created: number }>(
    `select d.name, count(distinct l.key) as created
     from tidemark.log l join tidemark.rows r using (tenant_id, database_id, key) join tidemark.databases d using (tenant_id, database_id)
     where l.tenant_id = $1 and l.sequence > $3 and l.action = ${ACTION.created} and r.owner_id = $2 and r.status = ${STATUS.live}
     group by d.name`,
    transaction.tenant, owner, startSequence,
  )
  return new Map(counts.map(({ name, created }) => [name, created]))
}

/** What a page of a replace cycle proved to be still there. */
export function rememberSeen(
  transaction: Transaction, plan: LandingPlan, databases: ReadonlyMap<string, number>, owner: number, cycle: number, page: number,
): void {
  const { tenant } = transaction
  if (plan.seen.length > 0) {
    const ranges = toRanges(plan.seen).map(([first, last]) => `[${first},${last}]`).join()
    transaction.send('insert into tidemark.seen (tenant_id, cycle_id, page, ranges) values ($1, $2, $3, $4::int8multirange)', tenant, cycle, page, `{${ranges}}`)
  }
  if (plan.sightings.length > 0) {
    // An owner that never sweeps proves nothing by its silence: the first that does takes the row over.
    transaction.send(
      `with sighted as materialized (
         select * from unnest($4::int[], $5::text[]) as s (database_id, key)
       ), taken as (
         update tidemark.rows r set owner_id = $2 from sighted s
         where r.tenant_id = $1 and r.database_id = s.database_id and r.key = s.key
           and r.owner_id in (select owner_id from tidemark.owners where tenant_id = $1 and not sweeps)
         returning r.database_id, r.key
       )
       insert into tidemark.claims (tenant_id, database_id, key, owner_id, cycle_id)
       select $1, s.database_id, s.key, $2, $3 from sighted s where not exists (select from taken t where t.database_id = s.database_id and t.key = s.key)
       on conflict (tenant_id, database_id, key, owner_id) do update set cycle_id = excluded.cycle_id`,
      tenant, owner, cycle, integerArray(plan.sightings.map(({ database }) => databases.get(database)!)), textArray(plan.sightings.map(({ key }) => key)),
    )
  }
}
