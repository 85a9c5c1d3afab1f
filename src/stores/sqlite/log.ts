import { SyncError, type LogEntry } from '../../contract/index.ts'
import type { Parameter, Session } from './connection.ts'
import { readTables, type Table } from './table.ts'

/**
 * The log, read from the tables: the current rows, the versions they replaced and the deletions, in the order of their
 * sequences. The directory of commits says which tables hold a range, so that no other table is looked at.
 */
export interface LogRange {
  /** Sequences above `after`, up to `until`. */
  readonly after: number
  readonly until: number
  /** About how many entries will be taken: no more tables are opened than these need. */
  readonly limit: number
  readonly databases?: readonly string[] | undefined
  /** Current rows only. */
  readonly live?: boolean
}

export function* readLog(session: Session, { after, until, limit, databases, live = false }: LogRange): Generator<LogEntry> {
  const tables = readTables(session)
  const wanted = databases === undefined ? null : [...tables].filter(([, open]) => databases.includes(open().database)).map(([id]) => id)
  if (wanted?.length === 0) return
  for (let from = after; from < until;) {
    const commits = readCommits(session, { after: from, until, limit, wanted })
    if (commits.length === 0) return
    const end = Math.min(until, commits.at(-1)!.last)
    yield* merge(session, { commits, after: from, until: end, live, wanted }, tables)
    from = end
  }
}

/** What an entry has in common with the others of its commit and database. */
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

type CommitValues = [first: number, last: number, databaseId: number, worker: string, sync: string, cycle: number, page: number, committedAt: number]

const COMMITS = `select c.first_sequence, c.last_sequence, c.database_id, g.connector_id, g.stream_id, c.cycle_id, c.page, c.committed_at
  from tidemark_commits c cross join tidemark_registry g on g.sync_id = c.sync_id`

/** Of an entry that is there: the directory must have its commit. */
export function requireCommit(session: Session, sequence: number): CommitRow {
  return commitOf(session, sequence) ?? outsideDirectory(sequence)
}

function outsideDirectory(sequence: number): never {
  throw new SyncError('STATE_UNREADABLE', `The directory of commits does not have the change ${sequence}, which is in a table.`)
}

/** The commit that a sequence belongs to; null when there is none. */
export function commitOf({ connection, tenantId }: Session, sequence: number): CommitRow | null {
  const found = connection.prepareArrays(`${COMMITS} where c.tenant_id = ? and c.first_sequence <= ? order by c.first_sequence desc limit 1`)
    .get(tenantId, sequence) as unknown as CommitValues | undefined
  return found === undefined || found[1] < sequence ? null : toCommit(found)
}

/** The next commits, as many as have `limit` entries together. */
function readCommits(
  { connection, tenantId }: Session, { after, until, limit, wanted }: { after: number; until: number; limit: number; wanted: readonly number[] | null },
): CommitRow[] {
  const named = wanted === null ? '' : ` and c.database_id in (${wanted.join(',')})`
  const start = connection.get<{ first: number }>(
    'select first_sequence as first from tidemark_commits where tenant_id = ? and first_sequence <= ? order by first_sequence desc limit 1', tenantId, after + 1,
  )?.first ?? 0
  const commits: CommitRow[] = []
  let entries = 0
  const found = connection.prepareArrays(
    `${COMMITS} where c.tenant_id = ? and c.first_sequence between ? and ? and c.last_sequence > ?${named} order by c.first_sequence`,
  ).iterate(...([tenantId, start, until, after] satisfies Parameter[])) as unknown as Iterable<CommitValues>
  for (const values of found) {
    const commit = toCommit(values)
    commits.push(commit)
    entries += commit.last - Math.max(commit.first - 1, after)
    if (entries >= limit) break
  }
  return commits
}

function toCommit([first, last, databaseId, worker, sync, cycle, page, committedAt]: CommitValues): CommitRow {
  return { first, last, databaseId, worker, sync, cycle, page, committedAt }
}

interface Chunk {
  readonly commits: readonly CommitRow[]
  readonly after: number
  readonly until: number
  readonly live: boolean
  readonly wanted: readonly number[] | null
}

/** An entry without what its commit says of it. */
type Version = Pick<LogEntry, 'sequence' | 'database' | 'key' | 'action' | 'text' | 'cursor' | 'upstreamAt'>

/** Rows are read one by one, so that those beyond the caller's limit cost nothing. */
function* merge(session: Session, chunk: Chunk, tables: ReadonlyMap<number, () => Table>): Generator<LogEntry> {
  const { commits, after, until, live } = chunk
  const sources: Array<Generator<Version>> = []
  for (const id of new Set(commits.map(({ databaseId }) => databaseId))) {
    const table = tables.get(id)!()
    sources.push(versions(session, table, table.name, after, until))
    if (!live) sources.push(versions(session, table, table.history, after, until))
  }
  if (!live) sources.push(deletions(session, chunk, tables))
  const heads = sources.map((source) => ({ source, next: source.next() }))
  let at = 0
  try {
    for (;;) {
      let least: (typeof heads)[number] | null = null
      for (const head of heads) {
        if (head.next.done === true) continue
        if (least === null || head.next.value.sequence < (least.next.value as Version).sequence) least = head
      }
      if (least === null) return
      const version = least.next.value as Version
      while (at < commits.length && commits[at]!.last < version.sequence) at++
      const commit = commits[at]
      if (commit === undefined || commit.first > version.sequence) outsideDirectory(version.sequence)
      const { worker, sync, cycle, page, committedAt } = commit
      yield { ...version, committedAt, worker, sync, cycle, page }
      least.next = least.source.next()
    }
  } finally {
    for (const { source } of heads) source.return(undefined)
  }
}

type VersionValues = [sequence: number, created: number, key: string, cursor: string | null, upstreamAt: string | null, extra: string | null, ...members: Array<string | number | null>]
const MEMBERS_FROM = 6

/** What `versionOf` reads, as a SELECT lists it. */
export function versionColumns({ selected }: Table): string {
  return `_sequence, _created_sequence, _key, _cursor, _upstream_at, _extra${selected}`
}

export function versionOf(table: Table, values: VersionValues): Version {
  const [sequence, created, key, cursor, upstreamAt, extra] = values
  return {
    sequence, database: table.database, key, action: created === sequence ? 'created' : 'updated',
    text: table.decode(sequence, extra, values, MEMBERS_FROM), cursor, upstreamAt,
  }
}

function* versions({ connection }: Session, table: Table, from: string, after: number, until: number): Generator<Version> {
  const rows = connection.prepareArrays(`select ${versionColumns(table)} from ${from} where _sequence > ? and _sequence <= ? order by _sequence`)
    .iterate(after, until) as unknown as Iterable<VersionValues>
  for (const values of rows) yield versionOf(table, values)
}

function* deletions({ connection, tenantId }: Session, { after, until, wanted }: Chunk, tables: ReadonlyMap<number, () => Table>): Generator<Version> {
  const named = wanted === null ? '' : ` and database_id in (${wanted.join(',')})`
  const rows = connection.iterate<{ sequence: number; id: number; key: string; upstream_at: string | null }>(
    `select sequence, database_id as id, key, upstream_at from tidemark_deletions where tenant_id = ? and sequence > ? and sequence <= ?${named} order by sequence`,
    tenantId, after, until,
  )
  for (const { sequence, id, key, upstream_at: upstreamAt } of rows) {
    yield { sequence, database: tables.get(id)!().database, key, action: 'deleted', text: null, cursor: null, upstreamAt }
  }
}
