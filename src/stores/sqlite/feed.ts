import type { Compacted, CompactRequest, CursorSecret, CursorSecretOffer, FeedEntry, FeedPage, FeedQuery } from '../../contract/index.ts'
import { CYCLES_KEPT } from '../kit/cycles-kept.ts'
import type { Parameter, Session } from './connection.ts'
import { ACTION_OF } from './encoding.ts'

/** The log as it is served, and what belongs to that. */

export function feed(session: Session, { after, limit, databases, live = false, scanMax }: FeedQuery): FeedPage {
  const standing = readStanding(session)
  const { position } = standing
  const filtered = databases !== undefined || live
  const until = filtered ? Math.min(position, after + scanMax) : position
  const entries = limit === 0 || after >= until ? [] : readEntries(session, { after, until, limit, databases, live })
  const timeOf = (sequence: number): number | null => (sequence === standing.floor ? standing.floorCommittedAt : committedAtOf(session, sequence))
  const last = entries.at(-1)
  const scanned = entries.length === limit ? (last?.sequence ?? after) : Math.max(after, until)
  const afterCommittedAt = timeOf(after)
  return {
    ...standing, afterCommittedAt, entries, scanned,
    scannedCommittedAt: (scanned === last?.sequence ? last.committedAt : scanned === after ? afterCommittedAt : timeOf(scanned)) ?? 0,
  }
}

export function sequenceBefore(session: Session, time: number): number {
  const { connection, base } = session
  const { position } = readStanding(session)
  // Times grow with sequences, so halving finds the place; no index by time is kept for this.
  let [low, high] = [0, position]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const found = connection.get<{ position: number; committed_at: number }>(
      `select l.position, c.committed_at from tidemark_log l join tidemark_commits c on c.commit_id = l.commit_id
       where l.position <= ? and l.position > ? order by l.position desc limit 1`, base + middle, base + low,
    )
    // Nothing is left between low and the middle: what is not there was not committed later either.
    if (found === undefined || found.committed_at < time) low = middle
    else high = found.position - base - 1
  }
  return low
}

export function compact(session: Session, request: CompactRequest): Compacted {
  const log = compactLog(session, request)
  const cycles = log.more ? 0 : forgetCycles(session, request)
  return { ...log, cycles, more: log.more || cycles === request.scanMax }
}

function compactLog(session: Session, { before, scanMax }: CompactRequest): Omit<Compacted, 'cycles'> {
  const { connection, tenantId, base } = session
  return connection.write(() => {
    const { floor } = readStanding(session)
    const { least } = connection.get<{ least: number | null }>(
      'select min(inflight_start_sequence) as least from tidemark_registry where tenant_id = ? and inflight_cycle is not null', tenantId,
    )!
    const until = Math.min(sequenceBefore(session, before), least ?? Infinity)
    const next = Math.min(until, floor + scanMax)
    if (next <= floor) return { floor, removed: 0, more: false }
    const committedAt = lastCommittedAt(session, next)
    const forget = (which: string): Gone[] => connection.all<Gone>(
      `delete from tidemark_log where ${which} and not exists (
         select 1 from tidemark_rows r where r.tenant_id = ?3 and r.database_id = tidemark_log.database_id and r.key = tidemark_log.key
           and r.position = tidemark_log.position and r.status = 0
       ) returning position, commit_id`, base + floor, base + next, tenantId,
    )
    const gone = [
      // What a row stood on when the floor passed it, and was overtaken by something that the floor passes now. What came
      // before the first entry of a key may be the place of another's: whether a row stands there is asked here too.
      ...forget('position in (select previous from tidemark_log where position > ?1 and position <= ?2 and previous <= ?1)'),
      ...forget('position > ?1 and position <= ?2'),
    ]
    forgetCommits(session, gone)
    connection.run('update tidemark_tenants set floor = ?, floor_committed_at = max(floor_committed_at, ?) where tenant_id = ?', next, committedAt, tenantId)
    return { floor: next, removed: gone.length, more: next < until }
  })
}

interface Gone {
  position: number
  commit_id: number
}

/** A commit goes with the last of its entries. They lie side by side: when neither neighbour of one that is gone is of its commit, none is left. */
function forgetCommits({ connection }: Session, gone: readonly Gone[]): void {
  for (const [commitId, position] of new Map(gone.map(({ commit_id: commitId, position }) => [commitId, position]))) {
    connection.run(
      `delete from tidemark_commits where commit_id = ?1
         and ?1 is not (select commit_id from tidemark_log where position < ?2 order by position desc limit 1)
         and ?1 is not (select commit_id from tidemark_log where position > ?2 order by position limit 1)`, commitId, position,
    )
  }
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

function committedAtOf({ connection, base }: Session, sequence: number): number | null {
  return connection.get<{ at: number }>(
    'select c.committed_at as at from tidemark_log l join tidemark_commits c on c.commit_id = l.commit_id where l.position = ?', base + sequence,
  )?.at ?? null
}

/** Of the newest entry that is there, up to a sequence. */
function lastCommittedAt({ connection, base }: Session, sequence: number): number {
  return connection.get<{ at: number }>(
    `select c.committed_at as at from tidemark_log l join tidemark_commits c on c.commit_id = l.commit_id
     where l.position <= ? and l.position > ? order by l.position desc limit 1`, base + sequence, base,
  )?.at ?? 0
}

type Bounds = Pick<FeedQuery, 'after' | 'limit'> & { readonly until: number; readonly live: boolean; readonly databases: readonly string[] | undefined }

type EntryRow = [position: number, databaseId: number, key: string, action: 1 | 2 | 3, record: string | null, committedAt: number]

function readEntries(session: Session, { after, until, limit, databases, live }: Bounds): FeedEntry[] {
  const { connection, tenantId, base } = session
  const names = new Map(connection.all<{ id: number; name: string }>(
    'select database_id as id, name from tidemark_databases where tenant_id = ?', tenantId,
  ).map(({ id, name }) => [id, name]))
  const wanted = databases === undefined ? null : [...names].filter(([, name]) => databases.includes(name)).map(([id]) => id)
  if (wanted?.length === 0) return []
  const named = wanted === null ? '' : ` and l.database_id in (${wanted.join(',')})`
  const current = live ? ` and exists (select 1 from tidemark_rows r where r.tenant_id = ${tenantId} and r.database_id = l.database_id and r.key = l.key and r.position = l.position and r.status = 0)` : ''
  const rows = connection.prepareArrays(
    `select l.position, l.database_id, l.key, l.action, l.record, c.committed_at from tidemark_log l cross join tidemark_commits c on c.commit_id = l.commit_id
     where l.position > ? and l.position <= ?${named}${current} order by l.position limit ?`,
  ).all(...([base + after, base + until, limit] satisfies Parameter[])) as unknown as EntryRow[]
  return rows.map(([position, databaseId, key, action, text, committedAt]) => (
    { sequence: position - base, database: names.get(databaseId)!, key, action: ACTION_OF[action], text, committedAt }
  ))
}
