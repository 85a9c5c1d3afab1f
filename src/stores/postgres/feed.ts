import {
  SyncError, type Compacted, type CompactRequest, type CursorSecret, type CursorSecretOffer, type FeedEntry, type FeedPage, type FeedQuery, type LogEntry,
} from '../../contract/index.ts'
import { CYCLES_KEPT } from '../kit/cycles-kept.ts'
import { committedAtOf } from './commits.ts'
import type { Session, Transaction } from './connection.ts'
import { deleteUnlocked } from './delete-unlocked.ts'
import { purgeTables } from './deletes.ts'
import { forgetHistory, forgetVersions, readKept, type KeptHistory } from './history.ts'
import { readLog } from './log.ts'
import { lockTenant } from './registry.ts'
import { checkSealingKey } from './sealed-texts.ts'
import { readTables } from './table.ts'

const DAY_MS = 86_400_000

/** The log as it is served, and what belongs to that. */

export async function feed(session: Session, query: FeedQuery): Promise<FeedPage> {
  const page = await readFeed(session, query)
  if (query.after <= page.position || session.isReplica) return page
  // A replica may show a commit that is not seen here yet: it is written, and waits for its replicas. Until it is seen it holds
  // its tenant's row, so whoever has had that row sees it.
  await session.connection.write(session.tenant, lockTenant)
  return readFeed(session, query)
}

/** Seen at one moment: the transaction reads from one snapshot. */
function readFeed(session: Session, { after, limit, databases, live = false, scanMax, bytesMax }: FeedQuery): Promise<FeedPage> {
  return session.connection.read(session.tenant, async (transaction) => {
    const filtered = databases !== undefined || live
    const [standing, afterTime, { entries, isCut }] = await Promise.all([
      readStanding(transaction), committedAtOf(transaction, after),
      readLog(transaction, { after, until: filtered ? after + scanMax : Number.MAX_SAFE_INTEGER - 1, limit, databases, live, bytesMax }),
    ])
    const until = filtered ? Math.min(standing.position, after + scanMax) : standing.position
    const last = entries.at(-1)
    const scanned = entries.length === limit || isCut ? (last?.sequence ?? after) : Math.max(after, until)
    const afterCommittedAt = after === standing.floor ? standing.floorCommittedAt : afterTime
    const scannedTime = async (): Promise<number | null> => {
      if (scanned === last?.sequence) return last.committedAt
      if (scanned === after) return afterCommittedAt
      return scanned === standing.floor ? standing.floorCommittedAt : committedAtOf(transaction, scanned)
    }
    return { ...standing, afterCommittedAt, entries: entries.map(toEntry), scanned, scannedCommittedAt: (await scannedTime()) ?? 0 }
  })
}

function toEntry({ sequence, database, key, action, text, committedAt }: LogEntry): FeedEntry {
  return { sequence, database, key, action, text, committedAt }
}

export function sequenceBefore(session: Session, time: number): Promise<number> {
  return session.connection.read(session.tenant, (transaction) => findBefore(transaction, time))
}

export async function compact(session: Session, request: CompactRequest): Promise<Compacted> {
  const log = await compactLog(session, request)
  const cycles = log.more ? 0 : await forgetCycles(session, request)
  return { ...log, cycles, more: log.more || cycles === request.scanMax }
}

function compactLog(session: Session, { before, scanMax, at }: CompactRequest): Promise<Omit<Compacted, 'cycles'>> {
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
    const kept = await readKept(transaction)
    const moved = next > floor ? await moveFloor(transaction, { floor, next, kept }) : 0
    const history = await forgetHistory(transaction, kept, {
      floor: Math.max(floor, next), scanMax, before: async (days) => (at === undefined ? null : findBefore(transaction, at - days * DAY_MS)),
    })
    const purged = await purgeTables(transaction, scanMax)
    return { floor: Math.max(floor, next), removed: moved + history.removed + purged.removed, more: next < until || history.more || purged.more }
  })
}

/** Everything up to the next floor, except of databases that keep their history longer. */
async function moveFloor(transaction: Transaction, { floor, next, kept }: { floor: number; next: number; kept: readonly KeptHistory[] }): Promise<number> {
  const { tenant } = transaction
  const last = await transaction.get<{ at: number }>(
    'select committed_at as at from tidemark.commits where tenant_id = $1 and first_sequence <= $2 order by first_sequence desc limit 1', tenant, next,
  )
  // What replaced or deleted a version is an entry of the same database.
  const touched = await transaction.all<{ name: string }>(
    `select distinct d.name from tidemark.commits c join tidemark.databases d on d.tenant_id = $1 and d.database_id = c.database_id
     where c.tenant_id = $1 and c.first_sequence <= $3 and c.last_sequence > $2`, tenant, floor, next,
  )
  const names = touched.map(({ name }) => name).filter((name) => !kept.some((own) => own.name === name))
  let removed = 0
  for (const table of names.length === 0 ? [] : (await readTables(transaction, names)).values()) removed += await forgetVersions(transaction, table, floor, next)
  await transaction.run(
    'update tidemark.tenants set floor = $2, floor_committed_at = greatest(floor_committed_at, $3) where tenant_id = $1', tenant, next, last?.at ?? 0,
  )
  return removed
}

/** Nobody waits for it: what may go today is not needed again tomorrow, whatever is written meanwhile. */
function forgetCycles(session: Session, { before, scanMax }: CompactRequest): Promise<number> {
  return session.connection.write(session.tenant, (transaction) => deleteUnlocked(
    transaction, 'cycles', `cycle_id in (
       select c.cycle_id from (
         select cycle_id, sync_id, coalesce(ended_at, started_at) as at, row_number() over (partition by sync_id order by cycle_id desc) as rank,
           max(cycle_id) filter (where stop_reason = 'complete') over (partition by sync_id) as complete
         from tidemark.cycles where tenant_id = $1
       ) c join tidemark.registry g on g.tenant_id = $1 and g.sync_id = c.sync_id
       where c.rank > $2 and c.at < $3 and c.cycle_id is distinct from c.complete and c.cycle_id is distinct from g.inflight_cycle and c.cycle_id is distinct from g.committed_by
         and not exists (select from tidemark.commits k where k.tenant_id = $1 and k.cycle_id = c.cycle_id)
       order by c.cycle_id limit $4
     )`, CYCLES_KEPT, before, scanMax,
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
      await checkSealingKey(transaction, secret)
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

/** By the directory's index on times, which grow with sequences. */
async function findBefore(transaction: Transaction, time: number): Promise<number> {
  const [{ position }, found] = await Promise.all([
    readStanding(transaction),
    transaction.get<{ first: number }>(
      'select first_sequence as first from tidemark.commits where tenant_id = $1 and committed_at >= $2 order by committed_at, first_sequence limit 1', transaction.tenant, time,
    ),
  ])
  return found === undefined ? position : found.first - 1
}
