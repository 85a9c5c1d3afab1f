import type { Compacted, CompactRequest, CursorSecret, CursorSecretOffer, FeedEntry, FeedPage, FeedQuery } from '../../contract/index.ts'
import { CYCLES_KEPT } from '../kit/cycles-kept.ts'
import type { Session } from './connection.ts'
import { commitOf, readLog } from './log.ts'
import { checkSealingKey } from './sealed-texts.ts'
import { purgeTables } from './deletes.ts'
import { forgetHistory, forgetVersions, readKept, type KeptHistory } from './history.ts'
import { requireTable } from './table.ts'

const DAY_MS = 86_400_000

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

/** Times grow with sequences: everything before the first commit of that time or later is older. */
export function sequenceBefore(session: Session, time: number): number {
  const { connection, tenantId } = session
  const next = connection.get<{ first: number }>(
    'select first_sequence as first from tidemark_commits where tenant_id = ? and committed_at >= ? order by committed_at, first_sequence limit 1', tenantId, time,
  )
  return next === undefined ? readStanding(session).position : next.first - 1
}

export function compact(session: Session, request: CompactRequest): Compacted {
  const log = compactLog(session, request)
  const cycles = log.more ? 0 : forgetCycles(session, request)
  return { ...log, cycles, more: log.more || cycles === request.scanMax }
}

/** Forgets the versions that were replaced, and the deletions, up to a sequence. Live rows are not touched. */
function compactLog(session: Session, { before, scanMax, at }: CompactRequest): Omit<Compacted, 'cycles'> {
  const { connection, tenantId } = session
  return connection.write(() => {
    const { floor } = readStanding(session)
    const { least } = connection.get<{ least: number | null }>(
      'select min(inflight_start_sequence) as least from tidemark_registry where tenant_id = ? and inflight_cycle is not null', tenantId,
    )!
    const until = Math.min(sequenceBefore(session, before), least ?? Infinity)
    const next = Math.min(until, floor + scanMax)
    const kept = readKept(session)
    const moved = next > floor ? moveFloor(session, { floor, next, kept }) : 0
    const history = forgetHistory(session, kept, { floor: Math.max(floor, next), scanMax, before: (days) => (at === undefined ? null : sequenceBefore(session, at - days * DAY_MS)) })
    const purged = purgeTables(session, scanMax)
    return { floor: Math.max(floor, next), removed: moved + history.removed + purged.removed, more: next < until || history.more || purged.more }
  })
}

/** Everything up to the next floor, except of databases that keep their history longer. */
function moveFloor(session: Session, { floor, next, kept }: { floor: number; next: number; kept: readonly KeptHistory[] }): number {
  const { connection, tenantId } = session
  const { at: committedAt } = connection.get<{ at: number | null }>(
    'select max(committed_at) as at from tidemark_commits where tenant_id = ? and first_sequence <= ? and last_sequence > ?', tenantId, next, floor,
  )!
  const touched = connection.all<{ id: number }>(
    'select distinct database_id as id from tidemark_commits where tenant_id = ? and last_sequence > ? and first_sequence <= ?', tenantId, floor, next,
  )
  let removed = 0
  for (const { id } of touched) if (!kept.some((own) => own.id === id)) removed += forgetVersions(session, requireTable(session, id), next)
  connection.run(
    'update tidemark_tenants set floor = ?, floor_committed_at = max(floor_committed_at, ?) where tenant_id = ?', next, committedAt ?? 0, tenantId,
  )
  return removed
}

/** Looked for before anything is locked: what may go today is not needed again tomorrow. */
function forgetCycles({ connection, tenantId }: Session, { before, scanMax }: CompactRequest): number {
  const old = connection.read(() => connection.all<{ id: number }>(
    `select cycle_id as id from (
       select cycle_id, sync_id, coalesce(ended_at, started_at) as at, row_number() over (partition by sync_id order by cycle_id desc) as rank,
         max(cycle_id) filter (where stop_reason = 'complete') over (partition by sync_id) as complete
       from tidemark_cycles where tenant_id = ?1
     ) c join tidemark_registry g using (sync_id)
     where rank > ?2 and at < ?3 and cycle_id is not complete and cycle_id is not g.inflight_cycle and cycle_id is not g.committed_by
       and cycle_id not in (select cycle_id from tidemark_commits where tenant_id = ?1)
     order by cycle_id limit ?4`, tenantId, CYCLES_KEPT, before, scanMax,
  ))
  if (old.length === 0) return 0
  return connection.write(() => connection.run(
    'delete from tidemark_cycles where tenant_id = ? and cycle_id in (select value from json_each(?))', tenantId, JSON.stringify(old.map(({ id }) => id)),
  ).changes)
}

export function cursorSecrets(session: Session, { secret, createdAt, renewMs, keepMs }: CursorSecretOffer): CursorSecret[] {
  const { connection, tenantId } = session
  const read = (): CursorSecret[] => connection.all<CursorSecret>(
    'select secret, created_at as createdAt from tidemark_cursor_secrets where tenant_id = ? order by created_at desc', tenantId,
  ).map((row) => ({ ...row }))
  const known = connection.read(read)
  if (known[0] !== undefined && known[0].createdAt > createdAt - renewMs) return known
  return connection.write(() => {
    const [newest] = read()
    if (newest === undefined || newest.createdAt <= createdAt - renewMs) {
      checkSealingKey(session, secret)
      connection.run('insert into tidemark_cursor_secrets (tenant_id, created_at, secret) values (?, ?, ?)', tenantId, createdAt, secret)
      connection.run(
        `delete from tidemark_cursor_secrets where tenant_id = ?1 and exists (
           select 1 from tidemark_cursor_secrets s where s.tenant_id = ?1 and s.created_at > tidemark_cursor_secrets.created_at and s.created_at < ?2
         )`, tenantId, createdAt - keepMs,
      )
    }
    return read()
  })
}

type Standing = Pick<FeedPage, 'position' | 'committedAt' | 'floor' | 'floorCommittedAt'>

function readStanding({ connection, tenantId }: Session): Standing {
  const { position, committedAt, floor, floorCommittedAt } = connection.get<Standing>(
    'select sequence as position, committed_at as committedAt, floor, floor_committed_at as floorCommittedAt from tidemark_tenants where tenant_id = ?', tenantId,
  )!
  return { position, committedAt, floor, floorCommittedAt }
}
