import { SyncError, type LogEntry } from '../../contract/index.ts'
import type { TenantSession } from './connection.ts'
import { requireTable, type Table } from './table.ts'

/**
 * The change log, read from the tables: current rows, replaced versions and deletions, in sequence order. The commit
 * directory limits the read to tables that hold the range. Rows are fetched by whole statements: one call per row costs
 * more than reading it.
 */
export interface LogQuery {
  /** Sequences above `after`, up to `until`. */
  readonly after: number
  readonly until: number
  readonly limit: number
  readonly databases?: readonly string[] | undefined
  /** Current rows only. */
  readonly live?: boolean
  /** The page ends once its records reach this many bytes; it always has at least one entry. */
  readonly bytesMax?: number | undefined
  /** Omits the cursor and the source's time: each value that is read costs a tenth of a row. */
  readonly brief?: boolean
}

export interface LogPage {
  readonly entries: LogEntry[]
  /** The page ended because of its bytes. */
  readonly isCut: boolean
}

/** Rows fetched from each table before their size is known. */
const INITIAL_ROWS = 16
/** Commits read first: usually one has more entries than a page. */
const INITIAL_COMMITS = 2
const COMMITS_GROWTH = 8
/** A long range without current rows is read in bounded steps. */
const COMMITS_MAX = 8_192

export function readLog(
  session: TenantSession,
  { after, until, limit, databases, live = false, bytesMax = Infinity, brief = false }: LogQuery,
): LogPage {
  const wanted = databases === undefined ? null : findDatabaseIds(session, databases)
  const entries: LogEntry[] = []
  if (wanted?.length === 0) return { entries, isCut: false }
  const tables = new TableCache(session)
  let [bytes, commitsMax] = [0, INITIAL_COMMITS]
  for (
    let from = after;
    from < until && entries.length < limit;
    commitsMax = Math.min(commitsMax * COMMITS_GROWTH, COMMITS_MAX)
  ) {
    const rowsMax = Math.min(limit - entries.length, estimateRowsWithin(bytesMax, bytes, entries.length))
    const commits = readCommits(session, { after: from, until, entriesMax: rowsMax, commitsMax, wanted })
    const lastCommit = commits.at(-1)
    if (lastCommit === undefined) break
    const chunk = { commits, after: from, until: Math.min(until, lastCommit.last), rowsMax, live, wanted, brief }
    const { found, through } = readVersions(session, chunk, tables)
    const remaining = commits.values()
    let commit = remaining.next().value
    for (const stored of found) {
      if (entries.length === limit) return { entries, isCut: false }
      if (bytes >= bytesMax) return { entries, isCut: true }
      while (commit !== undefined && commit.last < stored.sequence) commit = remaining.next().value
      if (commit === undefined || commit.first > stored.sequence) throwCommitMissing(stored.sequence)
      const { worker, sync, cycle, page, committedAt } = commit
      const { sequence, database, key, action, text, cursor, upstreamAt } = stored.decode()
      if (bytesMax < Infinity && text !== null) bytes += Buffer.byteLength(text)
      entries.push({
        sequence,
        database,
        key,
        action,
        text,
        cursor,
        upstreamAt,
        committedAt,
        worker,
        sync,
        cycle,
        page,
      })
    }
    from = through
  }
  return { entries, isCut: false }
}

/** Estimates how many rows fit into the remaining bytes, from the size of the previous ones. */
function estimateRowsWithin(bytesMax: number, bytes: number, entries: number): number {
  if (bytesMax === Infinity) return Number.MAX_SAFE_INTEGER
  return entries === 0 ? INITIAL_ROWS : Math.max(1, Math.floor(((bytesMax - bytes) * entries) / Math.max(bytes, 1)))
}

function findDatabaseIds({ connection, tenantId }: TenantSession, names: readonly string[]): number[] {
  return connection
    .all<{ id: number }>(
      'select database_id as id from tidemark_databases where tenant_id = ? and name in (select value from json_each(?))',
      tenantId,
      JSON.stringify(names),
    )
    .map(({ id }) => id)
}

/** Looks up a table when it is needed: a page costs the same however many databases there are. */
class TableCache {
  readonly #session: TenantSession
  readonly #known = new Map<number, Table>()

  constructor(session: TenantSession) {
    this.#session = session
  }

  get(id: number): Table {
    let table = this.#known.get(id)
    if (table === undefined) this.#known.set(id, (table = requireTable(this.#session, id)))
    return table
  }
}

// ── the commit directory
// ─────────────────────────────────────────────────────────────────────────────────────────────────

/** The facts that an entry shares with its commit and database. */
export interface CommitRow {
  readonly first: number
  readonly last: number
  readonly databaseId: number
  readonly worker: string
  readonly sync: string
  readonly cycle: number
  readonly page: number
  readonly committedAt: number
}

type CommitValues = [
  first: number,
  last: number,
  databaseId: number,
  worker: string,
  sync: string,
  cycle: number,
  page: number,
  committedAt: number,
]

const SELECT_COMMITS = `select c.first_sequence, c.last_sequence, c.database_id, g.connector_id, g.stream_id, c.cycle_id, c.page, c.committed_at
  from tidemark_commits c cross join tidemark_registry g on g.sync_id = c.sync_id`

/** The commit of an existing entry: the directory must have it. */
export function requireCommit(session: TenantSession, sequence: number): CommitRow {
  return findCommit(session, sequence) ?? throwCommitMissing(sequence)
}

function throwCommitMissing(sequence: number): never {
  throw new SyncError(
    'STATE_UNREADABLE',
    `The commit directory has no entry for the change ${sequence}, which is in a table.`,
  )
}

/** The commit that a sequence belongs to; null when there is none. */
export function findCommit({ connection, tenantId }: TenantSession, sequence: number): CommitRow | null {
  const found = connection.tuple<CommitValues>(
    `${SELECT_COMMITS} where c.tenant_id = ? and c.first_sequence <= ? order by c.first_sequence desc limit 1`,
    tenantId,
    sequence,
  )
  return found === undefined || found[1] < sequence ? null : toCommit(found)
}

interface CommitsQuery {
  readonly after: number
  readonly until: number
  readonly entriesMax: number
  readonly commitsMax: number
  readonly wanted: readonly number[] | null
}

/** Returns the next commits, up to those that have `entriesMax` entries together. */
function readCommits(
  { connection, tenantId }: TenantSession,
  { after, until, entriesMax, commitsMax, wanted }: CommitsQuery,
): CommitRow[] {
  const filter = wanted === null ? '' : ` and c.database_id in (${wanted.join(',')})`
  const commits = connection.tuples<CommitValues>(
    `${SELECT_COMMITS} where c.tenant_id = ?1 and c.first_sequence >= coalesce(
         (select first_sequence from tidemark_commits where tenant_id = ?1 and first_sequence <= ?2 + 1 order by first_sequence desc limit 1), 0
       ) and c.first_sequence <= ?3 and c.last_sequence > ?2${filter} order by c.first_sequence limit ?4`,
    tenantId,
    after,
    until,
    commitsMax,
  )
  let entries = 0
  const end = commits.findIndex(([first, last]) => (entries += last - Math.max(first - 1, after)) >= entriesMax)
  return (end === -1 ? commits : commits.slice(0, end + 1)).map(toCommit)
}

function toCommit([first, last, databaseId, worker, sync, cycle, page, committedAt]: CommitValues): CommitRow {
  return { first, last, databaseId, worker, sync, cycle, page, committedAt }
}

// ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface LogChunk {
  readonly commits: readonly CommitRow[]
  readonly after: number
  readonly until: number
  /** Limit per table. */
  readonly rowsMax: number
  readonly live: boolean
  readonly wanted: readonly number[] | null
  readonly brief: boolean
}

/** An entry without its commit's facts. */
type RowVersion = Pick<LogEntry, 'sequence' | 'database' | 'key' | 'action' | 'text' | 'cursor' | 'upstreamAt'>

/** A version as it was read; the record is decoded only when needed. */
interface StoredVersion {
  readonly sequence: number
  decode(): RowVersion
}

/** In sequence order. Up to `through` none is missing. */
function readVersions(
  session: TenantSession,
  chunk: LogChunk,
  tables: TableCache,
): { found: StoredVersion[]; through: number } {
  const parts: StoredVersion[][] = []
  for (const id of new Set(chunk.commits.map(({ databaseId }) => databaseId))) {
    const table = tables.get(id)
    for (const from of chunk.live ? [table.live] : [table.live, table.history])
      parts.push(readRange(session, table, from, chunk))
  }
  if (!chunk.live) parts.push(readDeletions(session, chunk, tables))
  const filled = parts.filter(({ length }) => length > 0)
  // Entries beyond the end of a truncated part are missing from this batch.
  const through = Math.min(
    chunk.until,
    ...filled.map((part) => (part.length < chunk.rowsMax ? Infinity : (part.at(-1)?.sequence ?? Infinity))),
  )
  const found =
    filled.length <= 1
      ? (filled[0] ?? [])
      : filled
          .flat()
          .filter(({ sequence }) => sequence <= through)
          .toSorted((a, b) => a.sequence - b.sequence)
  return { found, through }
}

/** The cursor and the source's time follow the fields, unless they are omitted. */
type VersionValues = [
  sequence: number,
  created: number,
  key: string,
  extra: string | null,
  ...members: Array<string | number | null>,
]
const FIRST_MEMBER_INDEX = 4

/** The columns that `toRowVersion` reads, as a SELECT lists them. */
export function versionColumns({ selected }: Table, brief = false): string {
  return `_sequence, _created_sequence, _key, _extra${selected}${brief ? '' : ', _cursor, _upstream_at'}`
}

export function toRowVersion(table: Table, values: VersionValues): RowVersion {
  const [sequence, created, key, extra] = values
  const membersEnd = FIRST_MEMBER_INDEX + table.members.length
  return {
    sequence,
    database: table.database,
    key,
    action: created === sequence ? 'created' : 'updated',
    text: table.decode(sequence, extra, values, FIRST_MEMBER_INDEX),
    cursor: (values[membersEnd] ?? null) as string | null,
    upstreamAt: (values[membersEnd + 1] ?? null) as string | null,
  }
}

function readRange(
  { connection }: TenantSession,
  table: Table,
  from: string,
  { after, until, rowsMax, brief }: LogChunk,
): StoredVersion[] {
  const rows = connection.tuples<VersionValues>(
    `select ${versionColumns(table, brief)} from ${from} where _sequence > ? and _sequence <= ? order by _sequence limit ?`,
    after,
    until,
    rowsMax,
  )
  return rows.map((values) => ({ sequence: values[0], decode: () => toRowVersion(table, values) }))
}

function readDeletions(
  { connection, tenantId }: TenantSession,
  { after, until, rowsMax, wanted }: LogChunk,
  tables: TableCache,
): StoredVersion[] {
  const filter = wanted === null ? '' : ` and database_id in (${wanted.join(',')})`
  const rows = connection.all<{ sequence: number; id: number; key: string; upstream_at: string | null }>(
    `select sequence, database_id as id, key, upstream_at from tidemark_deletions
     where tenant_id = ? and sequence > ? and sequence <= ?${filter} order by sequence limit ?`,
    tenantId,
    after,
    until,
    rowsMax,
  )
  return rows.map(({ sequence, id, key, upstream_at: upstreamAt }) => ({
    sequence,
    decode: () => ({
      sequence,
      database: tables.get(id).database,
      key,
      action: 'deleted',
      text: null,
      cursor: null,
      upstreamAt,
    }),
  }))
}
