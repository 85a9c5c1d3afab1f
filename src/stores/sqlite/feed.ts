import type { Compacted, CompactRequest, CursorSecret, CursorSecretOffer, FeedEntry, FeedPage, FeedQuery } from '../../contract/index.ts'
import { COMPACTION } from '../kit/compaction.ts'
import { CURSOR_SECRETS, isFresh } from '../kit/roles/cursor-secrets.ts'
import type { Session } from './connection.ts'
import { commitOf, readLog } from './log.ts'
import { runPlan } from './sql.ts'

/** The log as it is served, and what belongs to that. */

export function feed(session: Session, { after, limit, databases, live = false, scanMax, bytesMax }: FeedQuery): FeedPage {
  const standing = readStanding(session)
  const { position } = standing
  const filtered = databases !== undefined || live
  const until = filtered ? Math.min(position, after + scanMax) : position
  const { entries, isCut } = limit === 0 || after >= until ? { entries: [], isCut: false } : readLog(session, { after, until, limit, databases, live, bytesMax, brief: true })
  const timeOf = (sequence: number): number | null => (sequence === standing.floor ? standing.floorCommittedAt : (commitOf(session, sequence)?.committedAt ?? null))
  const last = entries.at(-1)
  const scanned = isCut || entries.length === limit ? (last?.sequence ?? after) : Math.max(after, until)
  const afterCommittedAt = timeOf(after)
  return {
    ...standing, afterCommittedAt, entries: entries.map(toFeedEntry), scanned,
    scannedCommittedAt: (scanned === last?.sequence ? last.committedAt : scanned === after ? afterCommittedAt : timeOf(scanned)) ?? 0,
  }
}

function toFeedEntry({ sequence, database, key, action, text, committedAt }: FeedEntry): FeedEntry {
  return { sequence, database, key, action, text, committedAt }
}

export function compact(session: Session, request: CompactRequest): Compacted {
  const log = runPlan(session, COMPACTION.log, [request])
  const cycles = log.more ? 0 : runPlan(session, COMPACTION.cycles, [request])
  return { ...log, cycles, more: log.more || cycles === request.scanMax }
}

export function cursorSecrets(session: Session, offer: CursorSecretOffer): CursorSecret[] {
  const known = runPlan(session, CURSOR_SECRETS.known, [])
  return isFresh(known, offer) ? known : runPlan(session, CURSOR_SECRETS.renew, [offer])
}

type Standing = Pick<FeedPage, 'position' | 'committedAt' | 'floor' | 'floorCommittedAt'>

function readStanding({ connection, tenantId }: Session): Standing {
  const { position, committedAt, floor, floorCommittedAt } = connection.get<Standing>(
    'select sequence as position, committed_at as committedAt, floor, floor_committed_at as floorCommittedAt from tidemark_tenants where tenant_id = ?', tenantId,
  )!
  return { position, committedAt, floor, floorCommittedAt }
}
