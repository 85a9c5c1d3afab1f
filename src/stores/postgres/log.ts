import type { ChangeAction, LogEntry } from '../../contract/index.ts'
import { textArray } from './binary-arrays.ts'
import { itemSqlTypeOf, oidOf, type SqlType } from './binary-values.ts'
import type { Parameter, Transaction } from './connection.ts'
import { readTables, toInstant, tableOf, type Table } from './table.ts'
import { required } from '../../values/required.ts'

/**
 * The change log, read from the tables: current rows, replaced versions and deletions, in sequence order. The commit
 * directory limits the read to tables that hold the range.
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
}

export interface LogPage {
  readonly entries: LogEntry[]
  /** The page ended because of its bytes. */
  readonly isCut: boolean
}

export async function readLog(
  transaction: Transaction,
  { after, until, limit, databases, live = false, bytesMax = Infinity }: LogQuery,
): Promise<LogPage> {
  const entries: LogEntry[] = []
  let bytes = 0
  for (let from = after; from < until && entries.length < limit;) {
    const wanted = limit - entries.length
    const { commits, tables } = await readCommits(transaction, { after: from, until, limit: wanted, databases })
    const chunk = takeCommits(commits, from, wanted)
    const lastCommit = chunk.at(-1)
    if (lastCommit === undefined) break
    const end = Math.min(until, lastCommit.last)
    const versions = await readVersions(transaction, {
      commits: chunk,
      tables,
      after: from,
      until: end,
      limit: wanted,
      live,
      bytesMax: bytesMax - bytes,
    })
    const remaining = chunk.values()
    let commit = remaining.next().value
    for (const version of versions.found.slice(0, wanted)) {
      if (bytes >= bytesMax) return { entries, isCut: true }
      while (commit !== undefined && commit.last < version.sequence) commit = remaining.next().value
      const { database, worker, sync, cycle, page, committedAt } = required(
        commit,
        `The commit of the change ${version.sequence}`,
      )
      const { sequence, key, action, cursor, upstreamAt } = version
      const text = version.text()
      if (text !== null) bytes += Buffer.byteLength(text)
      entries.push({
        sequence,
        database,
        key,
        action,
        text,
        committedAt,
        worker,
        sync,
        cycle,
        page,
        cursor,
        upstreamAt,
      })
    }
    if (versions.isCut) return { entries, isCut: true }
    from = end
  }
  return { entries, isCut: false }
}

// ── the commit directory
// ─────────────────────────────────────────────────────────────────────────────────────────────────

/** The facts that an entry shares with its commit and database. */
interface CommitRow {
  readonly first: number
  readonly last: number
  readonly database: string
  readonly worker: string
  readonly sync: string
  readonly cycle: number
  readonly page: number
  readonly committedAt: number
}

/** Commits read per query: each has at least one entry, unless only current rows are wanted. */
const COMMITS_MAX = 1_000

interface CommitsQuery {
  readonly after: number
  readonly until: number
  readonly limit: number
  readonly databases: readonly string[] | undefined
}

async function readCommits(
  transaction: Transaction,
  { after, until, limit, databases }: CommitsQuery,
): Promise<{ commits: CommitRow[]; tables: ReadonlyMap<string, Table> }> {
  const filter =
    databases === undefined
      ? ''
      : ' and database_id = any(array(select database_id from tidemark.databases where tenant_id = $1 and name = any($5::text[])))'
  // Limited in the directory first, in the order of its key, and only then joined.
  const commits = await transaction.all<CommitRow>(
    `select c.first_sequence as first, c.last_sequence as last, d.name as "database", g.connector_id as worker, g.stream_id as sync,
       c.cycle_id as cycle, c.page, c.committed_at as "committedAt"
     from (
       select * from tidemark.commits
       where tenant_id = $1 and first_sequence <= $3::bigint and last_sequence > $2::bigint and first_sequence >= coalesce(
         (select first_sequence from tidemark.commits where tenant_id = $1 and first_sequence <= $2::bigint + 1 order by first_sequence desc limit 1), 0
       )${filter} order by first_sequence limit $4
     ) c
     cross join lateral (select name from tidemark.databases where tenant_id = $1 and database_id = c.database_id limit 1) d
     cross join lateral (select connector_id, stream_id from tidemark.registry where tenant_id = $1 and sync_id = c.sync_id limit 1) g
     order by c.first_sequence`,
    transaction.tenant,
    after,
    until,
    Math.min(limit, COMMITS_MAX),
    ...(databases === undefined ? [] : [textArray(databases)]),
  )
  const tables =
    commits.length === 0
      ? new Map<string, Table>()
      : await readTables(transaction, [...new Set(commits.map(({ database }) => database))])
  return { commits, tables }
}

/** Takes as many commits as have `limit` entries together, if none of their entries was deleted. */
function takeCommits(commits: readonly CommitRow[], after: number, limit: number): CommitRow[] {
  let entries = 0
  const end = commits.findIndex(({ first, last }) => (entries += last - Math.max(first - 1, after)) >= limit)
  return end === -1 ? [...commits] : commits.slice(0, end + 1)
}

// ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface RowVersion extends Pick<LogEntry, 'sequence' | 'key' | 'action' | 'cursor' | 'upstreamAt'> {
  text(): string | null
}

interface VersionsQuery {
  readonly commits: readonly CommitRow[]
  readonly tables: ReadonlyMap<string, Table>
  readonly after: number
  readonly until: number
  readonly limit: number
  readonly live: boolean
  readonly bytesMax: number
}

/** In sequence order. With `isCut`, the range has more versions after the last one. */
async function readVersions(
  transaction: Transaction,
  { commits, tables, after, until, limit, live, bytesMax }: VersionsQuery,
): Promise<{ found: RowVersion[]; isCut: boolean }> {
  const ofRange = { where: '_sequence > $1 and _sequence <= $2', orderBy: '_sequence', limit, bytesMax } as const
  const involved = [...new Set(commits.map(({ database }) => tableOf(tables, database)))]
  const parts = await Promise.all([
    ...involved.flatMap((table) =>
      (live ? [table.live] : [table.live, table.history]).map((name) =>
        selectVersions(transaction, table, name, ofRange, after, until),
      ),
    ),
    ...(live
      ? []
      : [
          readDeletions(
            transaction,
            'sequence > $2 and sequence <= $3 and database_id = any($4::integer[])',
            limit,
            after,
            until,
            `{${involved.map(({ id }) => id).join()}}`,
          ),
        ]),
  ])
  // Entries beyond the end of a truncated source are missing from this batch.
  const complete = Math.min(
    ...parts.map(({ found, isCut }) => (isCut ? (found.at(-1)?.sequence ?? Infinity) : Infinity)),
  )
  const found = parts
    .flatMap((part) => part.found)
    .filter(({ sequence }) => sequence <= complete)
    .toSorted((a, b) => a.sequence - b.sequence)
  return { found, isCut: complete < Infinity }
}

export interface VersionsSelect {
  readonly where: string
  readonly orderBy: '_key' | '_sequence'
  readonly limit: number
  readonly bytesMax: number
}

/** A version with its columns as the server wrote them. */
interface StoredVersion extends RowVersion {
  readonly syncedAt: string
  readonly extra: string | null
  values(): ReadonlyArray<string | null>
}

/** Reads versions of a table or its history. The columns start with VERSION_COLUMNS, followed by the fields. */
export async function selectVersions(
  transaction: Transaction,
  table: Table,
  name: string,
  { where, orderBy, limit, bytesMax }: VersionsSelect,
  ...parameters: Parameter[]
): Promise<{ found: StoredVersion[]; isCut: boolean }> {
  const isBounded = bytesMax < Infinity
  const members = table.members.map(({ name: column, type }, at) =>
    isBounded ? `${column}${isVariableLength(type) && type !== 'text' ? '::text' : ''} as c${at}` : column,
  )
  const page = `select ${[...VERSION_COLUMNS, ...members, ...typeProbesOf(table, isBounded)].join(', ')} from ${name} v where ${where} order by ${orderBy} limit ${limit}`
  // The server drops rows beyond the byte limit, so that they never reach this process.
  const sizes = table.members
    .flatMap(({ type }, at) => (isVariableLength(type) ? [` + coalesce(octet_length(c${at}), 0)`] : []))
    .join('')
  const columns = [...VERSION_COLUMNS, ...table.members.map((_, at) => `c${at}`)].join(', ')
  // For a column that is cast to text, a null of its own type reveals the actual type.
  const casts = isBounded ? table.members.filter(({ type }) => isVariableLength(type) && type !== 'text') : []
  const types = [
    ...table.members.map(({ type }) => oidOf(isBounded && isVariableLength(type) ? 'text' : type)),
    ...casts.map(({ type }) => oidOf(type)),
  ]
  const probes = casts.map((_, at) => `, t${at}`).join('')
  const rows = await transaction.typedTextRows(
    types,
    VERSION_COLUMNS.length,
    isBounded
      ? `select ${columns}${probes}, is_followed from (
         select *, sum(bytes) over (order by ${orderBy} rows unbounded preceding) - bytes as bytes_before, lead(_sequence) over (order by ${orderBy}) is not null as is_followed
         from (select *, coalesce(octet_length(_extra::text), 0)${sizes} as bytes from (${page} offset 0) p) sized
       ) bounded where bytes_before < ${Math.max(bytesMax, 1)} order by ${orderBy}`
      : page,
    ...parameters,
  )
  const found = rows.map((row) => {
    const [sequence, key, created, cursor, upstreamAt, syncedAt, extra] = row as VersionValues
    const action: ChangeAction = created === sequence ? 'created' : 'updated'
    return {
      sequence: Number(sequence),
      key,
      action,
      cursor,
      upstreamAt: toInstant(upstreamAt),
      syncedAt,
      extra,
      values: () => row.slice(VERSION_COLUMNS.length, VERSION_COLUMNS.length + table.members.length),
      text: () => table.decode(Number(sequence), extra, row.slice(VERSION_COLUMNS.length)),
    }
  })
  return { found, isCut: isBounded && rows.at(-1)?.at(-1) === 't' }
}

/** Values of VERSION_COLUMNS, as PostgreSQL writes them. */
type VersionValues = [
  sequence: string,
  key: string,
  created: string,
  cursor: string | null,
  upstreamAt: string | null,
  syncedAt: string,
  extra: string | null,
]

const VERSION_COLUMNS = ['_sequence', '_key', '_created_sequence', '_cursor', '_upstream_at', '_synced_at', '_extra']

/** Reads the tenant's deletions that match `where`; its parameters begin with the second. */
export async function readDeletions(
  transaction: Transaction,
  where: string,
  limit: number,
  ...parameters: Parameter[]
): Promise<{ found: RowVersion[]; isCut: boolean }> {
  const rows = await transaction.textRows(
    `select sequence, key, upstream_at from tidemark.deletions where tenant_id = $1 and ${where} order by sequence limit ${limit}`,
    transaction.tenant,
    ...parameters,
  )
  const found = rows.map((row): RowVersion => {
    const [sequence, key, upstreamAt] = row as [string, string, string | null]
    return {
      sequence: Number(sequence),
      key,
      action: 'deleted',
      cursor: null,
      upstreamAt: toInstant(upstreamAt),
      text: () => null,
    }
  })
  return { found, isCut: false }
}

/** Reads the entries of one key, ascending. */
export async function readHistory(transaction: Transaction, table: Table, key: string): Promise<LogEntry[]> {
  const ofKey = {
    where: '_key = $1',
    orderBy: '_sequence',
    limit: Number.MAX_SAFE_INTEGER,
    bytesMax: Infinity,
  } as const
  const parts = await Promise.all([
    selectVersions(transaction, table, table.history, ofKey, key),
    selectVersions(transaction, table, table.live, { ...ofKey, orderBy: '_key' }, key),
    readDeletions(transaction, 'database_id = $2 and key = $3', Number.MAX_SAFE_INTEGER, table.id, key),
  ])
  const versions = parts.flatMap(({ found }) => found).toSorted((a, b) => a.sequence - b.sequence)
  if (versions.length === 0) return []
  const commits = await transaction.all<Omit<CommitRow, 'first' | 'last' | 'database'>>(
    `select g.connector_id as worker, g.stream_id as sync, c.cycle_id as cycle, c.page, c.committed_at as "committedAt"
     from unnest($2::bigint[]) with ordinality as wanted (sequence, n)
     cross join lateral (select * from tidemark.commits where tenant_id = $1 and first_sequence <= wanted.sequence order by first_sequence desc limit 1) c
     cross join lateral (select connector_id, stream_id from tidemark.registry where tenant_id = $1 and sync_id = c.sync_id limit 1) g
     order by n`,
    transaction.tenant,
    `{${versions.map(({ sequence }) => sequence).join()}}`,
  )
  return versions.map(({ sequence, action, cursor, upstreamAt, text }, at) => ({
    sequence,
    database: table.database,
    key,
    action,
    text: text(),
    cursor,
    upstreamAt,
    ...required(commits[at], `The commit of the change ${sequence}`),
  }))
}

function typeProbesOf({ members }: Table, isBounded: boolean): string[] {
  if (!isBounded) return []
  return members
    .filter(({ type }) => isVariableLength(type) && type !== 'text')
    .map(({ name }, at) => `case when false then ${name} end as t${at}`)
}

function isVariableLength(type: SqlType): boolean {
  return type === 'text' || type === 'jsonb' || type === 'bytea' || itemSqlTypeOf(type) !== null
}
