import {
  SyncError,
  type CompactResult,
  type CompactRequest,
  type CursorSecret,
  type CursorSecretCandidate,
  type FeedEntry,
  type FeedPage,
  type FeedQuery,
  type LogEntry,
} from '../../contract/index.ts'
import { COMPACTION_PLANS } from '../kit/compaction.ts'
import { CURSOR_SECRET_PLANS, hasFreshSecret } from '../kit/roles/cursor-secrets.ts'
import { findCommittedAt } from './commits.ts'
import type { TenantSession, Transaction } from './connection.ts'
import { readLog } from './log.ts'
import { lockTenant } from './registry.ts'
import { runPlan } from './sql.ts'

/** The change log as the feed serves it, compaction and cursor secrets. */

export async function feed(session: TenantSession, query: FeedQuery): Promise<FeedPage> {
  const page = await readFeed(session, query)
  if (query.after <= page.headSequence || session.isReplica) return page
  // A replica may show a commit that is not visible here yet: it is written, and waits for its replicas. Until then it
  // holds its tenant's row lock, so taking that lock waits for it.
  await session.connection.write(session.tenant, lockTenant)
  return readFeed(session, query)
}

/** A consistent page: the transaction reads from one snapshot. */
function readFeed(
  session: TenantSession,
  { after, limit, databases, liveOnly = false, scanMax, bytesMax }: FeedQuery,
): Promise<FeedPage> {
  return session.connection.read(session.tenant, async (transaction) => {
    const filtered = databases !== undefined || liveOnly
    const [head, afterTime, { entries, isCut }] = await Promise.all([
      readFeedHead(transaction),
      findCommittedAt(transaction, after),
      readLog(transaction, {
        after,
        until: filtered ? after + scanMax : Number.MAX_SAFE_INTEGER - 1,
        limit,
        databases,
        live: liveOnly,
        bytesMax,
      }),
    ])
    const until = filtered ? Math.min(head.headSequence, after + scanMax) : head.headSequence
    const last = entries.at(-1)
    const scanned = entries.length === limit || isCut ? (last?.sequence ?? after) : Math.max(after, until)
    const afterCommittedAt = after === head.floor ? head.floorCommittedAt : afterTime
    const scannedTime = async (): Promise<number | null> => {
      if (scanned === last?.sequence) return last.committedAt
      if (scanned === after) return afterCommittedAt
      return scanned === head.floor ? head.floorCommittedAt : findCommittedAt(transaction, scanned)
    }
    return {
      ...head,
      afterCommittedAt,
      entries: entries.map(toFeedEntry),
      scannedSequence: scanned,
      scannedCommittedAt: (await scannedTime()) ?? 0,
    }
  })
}

function toFeedEntry({ sequence, database, key, action, text, committedAt }: LogEntry): FeedEntry {
  return { sequence, database, key, action, text, committedAt }
}

export async function compact(session: TenantSession, request: CompactRequest): Promise<CompactResult> {
  const log = await runPlan(session, COMPACTION_PLANS.log, [request])
  const cycles = log.hasMore ? 0 : await runPlan(session, COMPACTION_PLANS.cycles, [request])
  return { ...log, removedCycles: cycles, hasMore: log.hasMore || cycles === request.scanMax }
}

export async function cursorSecrets(session: TenantSession, candidate: CursorSecretCandidate): Promise<CursorSecret[]> {
  const known = await runPlan(session, CURSOR_SECRET_PLANS.known, [])
  // A replica keeps using an old secret; only the primary can renew it.
  if (hasFreshSecret(known, candidate) || (session.isReplica && known.length > 0)) return known
  if (session.isReplica)
    throw new SyncError(
      'STORE_READONLY',
      `The replica has no cursor secret for tenant ${session.tenant} yet. Run \`tidemark keys create\` on the primary, or read a page of the feed there.`,
    )
  return runPlan(session, CURSOR_SECRET_PLANS.renew, [candidate])
}

type FeedHead = Pick<FeedPage, 'headSequence' | 'headCommittedAt' | 'floor' | 'floorCommittedAt'>

async function readFeedHead(transaction: Transaction): Promise<FeedHead> {
  const found = await transaction.get<FeedHead>(
    `select sequence as "headSequence", committed_at as "headCommittedAt", floor, floor_committed_at as "floorCommittedAt" from tidemark.tenants where tenant_id = $1`,
    transaction.tenant,
  )
  return found ?? { headSequence: 0, headCommittedAt: 0, floor: 0, floorCommittedAt: 0 }
}
