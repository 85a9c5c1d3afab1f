import type {
  CompactResult,
  CompactRequest,
  CursorSecret,
  CursorSecretCandidate,
  FeedEntry,
  FeedPage,
  FeedQuery,
} from '../../contract/index.ts'
import { COMPACTION_PLANS } from '../kit/compaction.ts'
import { CURSOR_SECRET_PLANS, hasFreshSecret } from '../kit/roles/cursor-secrets.ts'
import type { TenantSession } from './connection.ts'
import { findCommit, readLog } from './log.ts'
import { runPlan } from './sql.ts'

/** The change log as the feed serves it, compaction and cursor secrets. */

export function feed(
  session: TenantSession,
  { after, limit, databases, liveOnly = false, scanMax, bytesMax }: FeedQuery,
): FeedPage {
  const head = readFeedHead(session)
  const { headSequence } = head
  const filtered = databases !== undefined || liveOnly
  const until = filtered ? Math.min(headSequence, after + scanMax) : headSequence
  const { entries, isCut } =
    limit === 0 || after >= until
      ? { entries: [], isCut: false }
      : readLog(session, { after, until, limit, databases, live: liveOnly, bytesMax, brief: true })
  const timeOf = (sequence: number): number | null =>
    sequence === head.floor ? head.floorCommittedAt : (findCommit(session, sequence)?.committedAt ?? null)
  const last = entries.at(-1)
  const scanned = isCut || entries.length === limit ? (last?.sequence ?? after) : Math.max(after, until)
  const afterCommittedAt = timeOf(after)
  return {
    ...head,
    afterCommittedAt,
    entries: entries.map(toFeedEntry),
    scannedSequence: scanned,
    scannedCommittedAt:
      (scanned === last?.sequence ? last.committedAt : scanned === after ? afterCommittedAt : timeOf(scanned)) ?? 0,
  }
}

function toFeedEntry({ sequence, database, key, action, text, committedAt }: FeedEntry): FeedEntry {
  return { sequence, database, key, action, text, committedAt }
}

export function compact(session: TenantSession, request: CompactRequest): CompactResult {
  const log = runPlan(session, COMPACTION_PLANS.log, [request])
  const cycles = log.hasMore ? 0 : runPlan(session, COMPACTION_PLANS.cycles, [request])
  return { ...log, removedCycles: cycles, hasMore: log.hasMore || cycles === request.scanMax }
}

export function cursorSecrets(session: TenantSession, candidate: CursorSecretCandidate): CursorSecret[] {
  const known = runPlan(session, CURSOR_SECRET_PLANS.known, [])
  return hasFreshSecret(known, candidate) ? known : runPlan(session, CURSOR_SECRET_PLANS.renew, [candidate])
}

type FeedHead = Pick<FeedPage, 'headSequence' | 'headCommittedAt' | 'floor' | 'floorCommittedAt'>

function readFeedHead({ connection, tenantId }: TenantSession): FeedHead {
  const { headSequence, headCommittedAt, floor, floorCommittedAt } = connection.one<FeedHead>(
    'select sequence as headSequence, committed_at as headCommittedAt, floor, floor_committed_at as floorCommittedAt from tidemark_tenants where tenant_id = ?',
    tenantId,
  )
  return { headSequence, headCommittedAt, floor, floorCommittedAt }
}
