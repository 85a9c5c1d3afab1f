import {
  SyncError,
  type ChangesQuery,
  type FeedEntry,
  type FeedPage,
  type FeedQuery,
  type Kernel,
  type LogEntry,
} from '../../contract/index.ts'
import { defineRead, type PlansOf, type Sql, type Steps } from './sql/port.ts'

/** A log entry without its commit's facts; the record is assembled only when `text()` is called. */
export interface RowVersion extends Pick<
  LogEntry,
  'sequence' | 'database' | 'key' | 'action' | 'cursor' | 'upstreamAt'
> {
  text(): string | null
}

/** Either the sequences above `after` up to `until`, in order, or all versions of one key. */
export type VersionRange =
  | { readonly after: number; readonly until: number; readonly limit: number }
  | { readonly key: string }

/** Reads the current rows of a database, or the versions they replaced. */
export type VersionReader = (database: string, from: 'table' | 'history', range: VersionRange) => Steps<RowVersion[]>

/**
 * The change log over the SQL port, for stores without a faster implementation: current rows, replaced versions and
 * deletions, in sequence order. The commit directory limits the read to tables that hold the range.
 */
export function createLogPlans(readVersions: VersionReader) {
  return {
    changes: defineRead(function* (sql, { after, limit, databases }: ChangesQuery) {
      return (yield* readLog(sql, readVersions, { after, until: Number.MAX_SAFE_INTEGER, limit, databases })).entries
    }),

    history: defineRead(function* (sql, database: string, key: string) {
      const known = yield* sql.get(
        'select 1 as known from {databases} where tenant_id = :tenant and name = :database',
        { database },
      )
      if (known === undefined) return []
      const versions = [
        ...(yield* readVersions(database, 'table', { key })),
        ...(yield* readVersions(database, 'history', { key })),
        ...(yield* readDeletions(sql, database, { key })),
      ]
      const entries: LogEntry[] = []
      for (const version of versions.toSorted((a, b) => a.sequence - b.sequence))
        entries.push(toLogEntry(version, yield* findCommit(sql, version.sequence)))
      return entries
    }),

    feed: defineRead(function* (
      sql,
      { after, limit, databases, liveOnly = false, scanMax, bytesMax }: FeedQuery,
    ): Steps<FeedPage> {
      const head = (yield* sql.get<Pick<FeedPage, 'headSequence' | 'headCommittedAt' | 'floor' | 'floorCommittedAt'>>(
        'select sequence as "headSequence", committed_at as "headCommittedAt", floor, floor_committed_at as "floorCommittedAt" from {tenants} where tenant_id = :tenant',
      )) ?? { headSequence: 0, headCommittedAt: 0, floor: 0, floorCommittedAt: 0 }
      const until =
        databases !== undefined || liveOnly ? Math.min(head.headSequence, after + scanMax) : head.headSequence
      const { entries, isCut } =
        limit === 0 || after >= until
          ? { entries: [], isCut: false }
          : yield* readLog(sql, readVersions, { after, until, limit, databases, live: liveOnly, bytesMax })
      function* timeOf(sequence: number): Steps<number | null> {
        return sequence === head.floor
          ? head.floorCommittedAt
          : ((yield* findCommit(sql, sequence))?.committedAt ?? null)
      }
      const last = entries.at(-1)
      const scanned = isCut || entries.length === limit ? (last?.sequence ?? after) : Math.max(after, until)
      return {
        ...head,
        afterCommittedAt: yield* timeOf(after),
        entries: entries.map(toFeedEntry),
        scannedSequence: scanned,
        scannedCommittedAt: (scanned === last?.sequence ? last.committedAt : yield* timeOf(scanned)) ?? 0,
      }
    }),
  } satisfies PlansOf<Pick<Kernel, 'changes' | 'history' | 'feed'>>
}

interface LogQuery {
  readonly after: number
  readonly until: number
  readonly limit: number
  readonly databases?: readonly string[] | undefined
  /** Current rows only. */
  readonly live?: boolean
  /** The page ends once its records reach this many bytes; it always has at least one entry. */
  readonly bytesMax?: number | undefined
}

function* readLog(
  sql: Sql,
  readVersions: VersionReader,
  { after, until, limit, databases, live = false, bytesMax = Infinity }: LogQuery,
): Steps<{ entries: LogEntry[]; isCut: boolean }> {
  const entries: LogEntry[] = []
  if (databases?.length === 0) return { entries, isCut: false }
  let bytes = 0
  for (let from = after; from < until && entries.length < limit;) {
    const commits = yield* readCommits(sql, from, until, databases)
    const lastCommit = commits.at(-1)
    if (lastCommit === undefined) break
    const range = { after: from, until: Math.min(until, lastCommit.last), limit: limit - entries.length }
    const parts: RowVersion[][] = []
    for (const database of new Set(commits.map((commit) => commit.database))) {
      for (const source of live ? (['table'] as const) : (['table', 'history'] as const))
        parts.push(yield* readVersions(database, source, range))
      if (!live) parts.push(yield* readDeletions(sql, database, range))
    }
    // Entries beyond the end of a truncated part are missing from this batch.
    const through = Math.min(
      range.until,
      ...parts.map((part) => (part.length < range.limit ? Infinity : (part.at(-1)?.sequence ?? Infinity))),
    )
    const found = parts
      .flat()
      .filter(({ sequence }) => sequence <= through)
      .toSorted((a, b) => a.sequence - b.sequence)
    const remaining = commits.values()
    let commit = remaining.next().value
    for (const version of found) {
      if (entries.length === limit) return { entries, isCut: false }
      if (bytes >= bytesMax) return { entries, isCut: true }
      while (commit !== undefined && commit.last < version.sequence) commit = remaining.next().value
      const entry = toLogEntry(version, commit)
      entries.push(entry)
      bytes += Buffer.byteLength(entry.text ?? '')
    }
    from = through
  }
  return { entries, isCut: false }
}

/** The facts that an entry shares with its commit and database. */
interface CommitRow extends Pick<LogEntry, 'database' | 'worker' | 'sync' | 'cycle' | 'page' | 'committedAt'> {
  readonly first: number
  readonly last: number
}

const COMMITS_MAX = 100
const SELECT_COMMITS = `select c.first_sequence as first, c.last_sequence as last, d.name as "database", g.connector_id as worker, g.stream_id as sync, c.cycle_id as cycle, c.page,
  c.committed_at as "committedAt" from {commits} c join {registry} g on g.tenant_id = c.tenant_id and g.sync_id = c.sync_id
  join {databases} d on d.tenant_id = c.tenant_id and d.database_id = c.database_id where c.tenant_id = :tenant`

function readCommits(
  sql: Sql,
  after: number,
  until: number,
  databases: readonly string[] | undefined,
): Steps<CommitRow[]> {
  const filter = databases === undefined ? '' : `and d.name in (${databases.map((_, at) => `:d${at}`).join(', ')})`
  return sql.all<CommitRow>(
    `${SELECT_COMMITS} and c.last_sequence > :after and c.first_sequence <= :until and c.first_sequence >= coalesce(
       (select max(first_sequence) from {commits} where tenant_id = :tenant and first_sequence <= :next), 0) ${filter} order by c.first_sequence limit ${COMMITS_MAX}`,
    { after, until, next: after + 1, ...Object.fromEntries((databases ?? []).map((name, at) => [`d${at}`, name])) },
  )
}

function* findCommit(sql: Sql, sequence: number): Steps<CommitRow | undefined> {
  const found = yield* sql.get<CommitRow>(
    `${SELECT_COMMITS} and c.first_sequence <= :sequence order by c.first_sequence desc limit 1`,
    { sequence },
  )
  return found === undefined || found.last < sequence ? undefined : found
}

function* readDeletions(sql: Sql, database: string, range: VersionRange): Steps<RowVersion[]> {
  const where =
    'key' in range ? 'x."key" = :key' : 'x.sequence > :after and x.sequence <= :until order by x.sequence limit :limit'
  const found = yield* sql.all<Pick<LogEntry, 'sequence' | 'key' | 'upstreamAt'>>(
    `select x.sequence, x."key", x.upstream_at as "upstreamAt" from {deletions} x join {databases} d on d.tenant_id = x.tenant_id and d.database_id = x.database_id
     where x.tenant_id = :tenant and d.name = :database and ${where}`,
    { database, ...range },
  )
  return found.map((row) => ({ ...row, database, action: 'deleted', cursor: null, text: () => null }))
}

function toLogEntry({ text, ...version }: RowVersion, commit: CommitRow | undefined): LogEntry {
  if (commit === undefined || commit.first > version.sequence) {
    throw new SyncError(
      'STATE_UNREADABLE',
      `The commit directory has no entry for the change ${version.sequence}, which is in a table.`,
    )
  }
  const { committedAt, worker, sync, cycle, page } = commit
  return { ...version, text: text(), committedAt, worker, sync, cycle, page }
}

function toFeedEntry({ sequence, database, key, action, text, committedAt }: FeedEntry): FeedEntry {
  return { sequence, database, key, action, text, committedAt }
}
