import {
  SyncError, type Compacted, type CompactRequest, type CursorSecret, type CursorSecretOffer, type FeedEntry, type FeedPage, type FeedQuery, type LogEntry,
} from '../../contract/index.ts'
import { COMPACTION } from '../kit/compaction.ts'
import { CURSOR_SECRETS, isFresh } from '../kit/roles/cursor-secrets.ts'
import { committedAtOf } from './commits.ts'
import type { Session, Transaction } from './connection.ts'
import { readLog } from './log.ts'
import { lockTenant } from './registry.ts'
import { runPlan } from './sql.ts'

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

export async function compact(session: Session, request: CompactRequest): Promise<Compacted> {
  const log = await runPlan(session, COMPACTION.log, [request])
  const cycles = log.more ? 0 : await runPlan(session, COMPACTION.cycles, [request])
  return { ...log, cycles, more: log.more || cycles === request.scanMax }
}

export async function cursorSecrets(session: Session, offer: CursorSecretOffer): Promise<CursorSecret[]> {
  const known = await runPlan(session, CURSOR_SECRETS.known, [])
  // A replica goes on with what it has, also when that is old: it is for the primary to renew it.
  if (isFresh(known, offer) || (session.isReplica && known.length > 0)) return known
  if (session.isReplica) throw new SyncError('STORE_READONLY', `The replica has no secret for the cursors of tenant ${session.tenant} yet. \`tidemark keys create\` on the primary makes one, and so does a page of the feed that is read there.`)
  return runPlan(session, CURSOR_SECRETS.renew, [offer])
}

type Standing = Pick<FeedPage, 'position' | 'committedAt' | 'floor' | 'floorCommittedAt'>

async function readStanding(transaction: Transaction): Promise<Standing> {
  const found = await transaction.get<Standing>(
    `select sequence as position, committed_at as "committedAt", floor, floor_committed_at as "floorCommittedAt" from tidemark.tenants where tenant_id = $1`,
    transaction.tenant,
  )
  return found ?? { position: 0, committedAt: 0, floor: 0, floorCommittedAt: 0 }
}
