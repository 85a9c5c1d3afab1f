import { SyncError, type Compacted, type CompactRequest, type CursorSecret, type CursorSecretOffer, type FeedEntry, type FeedPage, type FeedQuery } from '../../contract/index.ts'
import { CYCLES_KEPT } from '../kit/cycles-kept.ts'
import { bigintArray, textArray } from './arrays.ts'
import type { Session, Transaction } from './connection.ts'
import { lockTenant } from './registry.ts'
import { ACTION_OF, STATUS } from './rows.ts'

/** The log as it is served, and what belongs to that. */

export async function feed(session: Session, query: FeedQuery): Promise<FeedPage> {
  const page = await readFeed(session, query)
  if (query.after <= page.position || session.isReplica) return page
  // A replica may show a commit that is not seen here yet: it is written, and waits for its replicas. Until it is seen it holds
  // its tenant's row, so whoever has had that row sees it.
  await session.connection.write(session.tenant, lockTenant)
  return readFeed(session, query)
}

/** Sent together and seen at one moment: the transaction reads from one snapshot. */
function readFeed(session: Session, { after, limit, databases, live = false, scanMax }: FeedQuery): Promise<FeedPage> {
  return session.connection.read(session.tenant, async (transaction) => {
    const { tenant } = transaction
    const filtered = databases !== undefined || live
    const [standing, afterTime, rows] = await Promise.all([
      readStanding(transaction), committedAtOf(transaction, after),
      limit === 0 ? [] : transaction.all<EntryRow>(
        entriesOf({ named: databases !== undefined, live }), tenant, after, limit, filtered ? after + scanMax : Number.MAX_SAFE_INTEGER,
        ...(databases === undefined ? [] : [textArray(databases)]),
      ),
    ])
    const until = filtered ? Math.min(standing.position, after + scanMax) : standing.position
    const last = rows.at(-1)
    const scanned = rows.length === limit ? (last?.sequence ?? after) : Math.max(after, until)
    const afterCommittedAt = after === standing.floor ? standing.floorCommittedAt : afterTime
    const scannedTime = async (): Promise<number | null> => {
      if (scanned === last?.sequence) return last.committed_at
      if (scanned === after) return afterCommittedAt
      return scanned === standing.floor ? standing.floorCommittedAt : committedAtOf(transaction, scanned)
    }
    return { ...standing, afterCommittedAt, entries: rows.map(toEntry), scanned, scannedCommittedAt: (await scannedTime()) ?? 0 }
  })
}

async function committedAtOf(transaction: Transaction, sequence: number): Promise<number | null> {
  const found = await transaction.get<{ at: number }>('select committed_at as at from tidemark.log where tenant_id = $1 and sequence = $2', transaction.tenant, sequence)
  return found?.at ?? null
}

export function sequenceBefore(session: Session, time: number): Promise<number> {
  return session.connection.read(session.tenant, (transaction) => findBefore(transaction, time))
}

export async function compact(session: Session, request: CompactRequest): Promise<Compacted> {
  const log = await compactLog(session, request)
  const cycles = log.more ? 0 : await forgetCycles(session, request)
  return { ...log, cycles, more: log.more || cycles === request.scanMax }
}

function compactLog(session: Session, { before, scanMax }: CompactRequest): Promise<Omit<Compacted, 'cycles'>> {
  return session.connection.write(session.tenant, async (transaction) => {
    const { tenant } = transaction
    // Looked for before others have to wait: what is committed meanwhile only lies behind it.
    const older = await findBefore(transaction, before)
    await lockTenant(transaction)
    const { floor } = await readStanding(transaction)
    const { least } = (await transaction.get<{ least: number | null }>(
      'select min(inflight_start_sequence) as least from tidemark.registry where tenant_id = $1 and inflight_cycle is not null', tenant,
    ))!
    const until = Math.min(older, least ?? Infinity)
    const next = Math.min(until, floor + scanMax)
    if (next <= floor) return { floor, removed: 0, more: false }
    const last = await transaction.get<{ at: number }>(
      'select committed_at as at from tidemark.log where tenant_id = $1 and sequence <= $2 order by sequence desc limit 1', tenant, next,
    )
    const forget = (which: string): Promise<Gone[]> => transaction.all<Gone>(
      `delete from tidemark.log l where l.tenant_id = $1 and ${which} and not exists (
         select from tidemark.rows r where r.tenant_id = $1 and r.database_id = l.database_id and r.key = l.key and r.sequence = l.sequence and r.status = ${STATUS.live}
       ) returning l.sequence, l.committed_at`, tenant, floor, next,
    )
    const gone = [
      // What a row stood on when the floor passed it, and was overtaken by something that the floor passes now. What came
      // before the first entry of a key may be the place of another's: whether a row stands there is asked here too.
      ...await forget('l.sequence in (select e.previous from tidemark.log e where e.tenant_id = $1 and e.sequence > $2 and e.sequence <= $3 and e.previous <= $2)'),
      ...await forget('l.sequence > $2 and l.sequence <= $3'),
    ]
    await forgetCommits(transaction, gone)
    await transaction.run(
      'update tidemark.tenants set floor = $2, floor_committed_at = greatest(floor_committed_at, $3) where tenant_id = $1', tenant, next, last?.at ?? 0,
    )
    return { floor: next, removed: gone.length, more: next < until }
  })
}

interface Gone {
  sequence: number
  committed_at: number
}

/** A commit goes with the last of its entries. They lie side by side: when neither neighbour of one that is gone is of its commit, none is left. */
async function forgetCommits(transaction: Transaction, gone: readonly Gone[]): Promise<void> {
  const commits = new Map(gone.map(({ committed_at: at, sequence }) => [at, sequence]))
  await transaction.run(
    `delete from tidemark.commits c using unnest($2::bigint[], $3::bigint[]) as gone (committed_at, sequence)
     where c.tenant_id = $1 and c.committed_at = gone.committed_at
       and c.committed_at is distinct from (select l.committed_at from tidemark.log l where l.tenant_id = $1 and l.sequence < gone.sequence order by l.sequence desc limit 1)
       and c.committed_at is distinct from (select l.committed_at from tidemark.log l where l.tenant_id = $1 and l.sequence > gone.sequence order by l.sequence limit 1)`,
    transaction.tenant, bigintArray([...commits.keys()]), bigintArray([...commits.values()]),
  )
}

/** Nobody waits for it: what may go today is not needed again tomorrow, whatever is written meanwhile. */
function forgetCycles(session: Session, { before, scanMax }: CompactRequest): Promise<number> {
  return session.connection.write(session.tenant, (transaction) => transaction.run(
    `delete from tidemark.cycles where tenant_id = $1 and cycle_id in (
       select c.cycle_id from (
         select cycle_id, sync_id, coalesce(ended_at, started_at) as at, row_number() over (partition by sync_id order by cycle_id desc) as rank,
           max(cycle_id) filter (where stop_reason = 'complete') over (partition by sync_id) as complete
         from tidemark.cycles where tenant_id = $1
       ) c join tidemark.registry g on g.tenant_id = $1 and g.sync_id = c.sync_id
       where c.rank > $2 and c.at < $3 and c.cycle_id is distinct from c.complete and c.cycle_id is distinct from g.inflight_cycle and c.cycle_id is distinct from g.committed_by
         and not exists (select from tidemark.commits k where k.tenant_id = $1 and k.cycle_id = c.cycle_id)
       order by c.cycle_id limit $4
     )`, session.tenant, CYCLES_KEPT, before, scanMax,
  ))
}

export async function cursorSecrets(session: Session, { secret, createdAt, renewMs, keepMs }: CursorSecretOffer): Promise<CursorSecret[]> {
  const read = (transaction: Transaction): Promise<CursorSecret[]> => transaction.all<CursorSecret>(
    'select secret, created_at as "createdAt" from tidemark.cursor_secrets where tenant_id = $1 order by created_at desc', transaction.tenant,
  )
  const known = await session.connection.read(session.tenant, read)
  // A replica goes on with what it has, also when that is old: it is for the primary to renew it.
  if (known[0] !== undefined && (session.isReplica || known[0].createdAt > createdAt - renewMs)) return known
  if (session.isReplica) throw new SyncError('STORE_READONLY', `The replica has no secret for the cursors of tenant ${session.tenant} yet. \`tidemark keys create\` on the primary makes one, and so does a page of the feed that is read there.`)
  return session.connection.write(session.tenant, async (transaction) => {
    const { tenant } = transaction
    // Two processes that offer at once must agree on one.
    await lockTenant(transaction)
    const [newest] = await read(transaction)
    if (newest === undefined || newest.createdAt <= createdAt - renewMs) {
      await transaction.run('insert into tidemark.cursor_secrets (tenant_id, created_at, secret) values ($1, $2, $3)', tenant, createdAt, secret)
      await transaction.run(
        `delete from tidemark.cursor_secrets c where c.tenant_id = $1 and exists (
           select from tidemark.cursor_secrets s where s.tenant_id = $1 and s.created_at > c.created_at and s.created_at < $2
         )`, tenant, createdAt - keepMs,
      )
    }
    return read(transaction)
  })
}

type Standing = Pick<FeedPage, 'position' | 'committedAt' | 'floor' | 'floorCommittedAt'>

async function readStanding(transaction: Transaction): Promise<Standing> {
  const found = await transaction.get<Standing>(
    `select sequence as position, committed_at as "committedAt", floor, floor_committed_at as "floorCommittedAt" from tidemark.tenants where tenant_id = $1`,
    transaction.tenant,
  )
  return found ?? { position: 0, committedAt: 0, floor: 0, floorCommittedAt: 0 }
}

/** Times grow with sequences, so halving finds the place; no index by time is kept for this. */
async function findBefore(transaction: Transaction, time: number): Promise<number> {
  const { position } = await readStanding(transaction)
  let [low, high] = [0, position]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const found = await transaction.get<{ sequence: number; at: number }>(
      'select sequence, committed_at as at from tidemark.log where tenant_id = $1 and sequence <= $2 and sequence > $3 order by sequence desc limit 1',
      transaction.tenant, middle, low,
    )
    // Nothing is left between low and the middle: what is not there was not committed later either.
    if (found === undefined || found.at < time) low = middle
    else high = found.sequence - 1
  }
  return low
}

function entriesOf({ named, live }: { named: boolean; live: boolean }): string {
  const wanted = named ? ' and database_id = any(array(select database_id from tidemark.databases where tenant_id = $1 and name = any($5::text[])))' : ''
  const current = live ? ` and exists (select from tidemark.rows r where r.tenant_id = $1 and r.database_id = log.database_id and r.key = log.key and r.sequence = log.sequence and r.status = ${STATUS.live} offset 0)` : ''
  return `select l.sequence, d.name as "database", l.key, l.action, coalesce(l.exact, l.record::text) as text, l.committed_at
    from (select * from tidemark.log where tenant_id = $1 and sequence > $2 and sequence <= $4::bigint${wanted}${current} order by sequence limit $3) l
    cross join lateral (select name from tidemark.databases where tenant_id = $1 and database_id = l.database_id limit 1) d
    order by l.sequence`
}

interface EntryRow {
  sequence: number
  database: string
  key: string
  action: 1 | 2 | 3
  text: string | null
  committed_at: number
}

function toEntry({ sequence, database, key, action, text, committed_at: committedAt }: EntryRow): FeedEntry {
  return { sequence, database, key, action: ACTION_OF[action], text, committedAt }
}
