import type { Landing } from '../../contract/index.ts'
import type { LandingPlan, RowWrite } from '../kit/plan-landing.ts'
import type { Parameter, Session } from './connection.ts'
import { ACTION, STATUS } from './encoding.ts'
import { isSorted } from './lookup.ts'

/** Rows per insert statement. One call per row spends half its time crossing into SQLite; past about twenty it no longer helps. */
const BATCH = 20

interface Ids {
  readonly commit: number
  readonly writer: number
  readonly owner: number
  /** By database, where another. */
  readonly owners: ReadonlyMap<string, number>
}

/** Newcomers, by far the most on a first load, go in many at a time; everything else one by one. */
export function writeRows(session: Session, plan: LandingPlan, databases: Map<string, number>, ids: Ids): void {
  for (const [name, id] of databases) {
    const newcomers = plan.writes.filter((write) => write.action === 'created' && write.row === undefined && write.landing.database === name)
    insertNewcomers(session, id, newcomers as Newcomer[], { ...ids, owner: ids.owners.get(name) ?? ids.owner })
  }
  for (const write of plan.writes) {
    if (write.action === 'created' && write.row === undefined) continue
    if (write.action !== null) appendLog(session, write, databases.get(write.landing.database)!, ids.commit)
    writeRow(session, write, databases.get(write.landing.database)!, ids)
  }
  for (const { landing, upstreamAt } of plan.touches) touchRow(session, databases, landing, upstreamAt)
}

type Newcomer = RowWrite & { readonly landing: Extract<Landing, { type: 'upsert' }> }

/**
 * A value bound costs a fifth of a microsecond, so each is bound once: what is the same for all rows of a sync stands in the
 * statement's text, which stays prepared; what a batch has in common is bound ahead of its rows; and positions that follow
 * one another, as on a first load, are counted on from the first.
 */
function insertNewcomers(session: Session, databaseId: number, newcomers: readonly Newcomer[], ids: Pick<Ids, 'commit' | 'writer' | 'owner'>): void {
  if (newcomers.length === 0) return
  const { tenantId, base } = session
  const cursors = newcomers.some(({ landing }) => landing.cursor !== null)
  const follow = newcomers.at(-1)!.sequence - newcomers[0]!.sequence === newcomers.length - 1
  insertBatched(session, 'insert into tidemark_log (commit_id, position, database_id, key, action, previous, cursor, upstream_at, record) values ', newcomers, {
    tuple: (at) => `(?1,${follow ? `?2+${at}` : '?'},${databaseId},?,${ACTION.created},null,${cursors ? '?' : 'null'},?,?)`,
    shared: ({ sequence }) => (follow ? [ids.commit, base + sequence] : [ids.commit]),
    push: ({ landing, sequence }, into) => {
      if (!follow) into.push(base + sequence)
      into.push(landing.key)
      if (cursors) into.push(landing.cursor)
      into.push(landing.upstreamAt, landing.text)
    },
  })
  // In key order, so that a page of scattered keys walks the tree once.
  const inOrder = isSorted(newcomers.map(({ landing }) => landing))
  const sorted = inOrder ? newcomers : newcomers.toSorted((a, b) => (a.landing.key < b.landing.key ? -1 : 1))
  const followOn = inOrder && follow
  insertBatched(session, 'insert into tidemark_rows (position, tenant_id, database_id, key, status, hash, upstream_at, writer_id, owner_id) values ', sorted, {
    tuple: (at) => `(${followOn ? `?1+${at}` : '?'},${tenantId},${databaseId},?,${STATUS.live},?,?,${ids.writer},${ids.owner})`,
    shared: ({ sequence }) => (followOn ? [base + sequence] : []),
    push: ({ landing, sequence }, into) => {
      if (!followOn) into.push(base + sequence)
      into.push(landing.key, landing.hash, landing.upstreamAt)
    },
  })
}

function appendLog(session: Session, { landing, action, sequence, row }: RowWrite, databaseId: number, commitId: number): void {
  const upsert = landing.type === 'upsert' ? landing : null
  session.connection.run(
    'insert into tidemark_log (position, commit_id, database_id, key, action, previous, cursor, upstream_at, record) values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    session.base + sequence, commitId, databaseId, landing.key, ACTION[action!], row === undefined ? null : session.base + row.sequence,
    upsert?.cursor ?? null, landing.upstreamAt, upsert?.text ?? null,
  )
}

function writeRow(session: Session, { landing, sequence, row }: RowWrite, databaseId: number, ids: Ids): void {
  const upsert = landing.type === 'upsert' ? landing : null
  // A fact without a time keeps the row's: what is older than that is still older, and what was known then stays dead.
  const upstreamAt = landing.upstreamAt ?? row?.upstreamAt ?? null
  // A row that comes back belongs to whoever brought it; a living one keeps its owner.
  const owner = row?.status === 'live' ? row.owner : (ids.owners.get(landing.database) ?? ids.owner)
  session.connection.run(
    `insert into tidemark_rows (tenant_id, database_id, key, position, status, hash, upstream_at, writer_id, owner_id) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict do update set position = excluded.position, status = excluded.status, hash = excluded.hash,
       upstream_at = excluded.upstream_at, writer_id = excluded.writer_id, owner_id = excluded.owner_id`,
    session.tenantId, databaseId, landing.key, session.base + sequence, upsert === null ? STATUS.deleted : STATUS.live,
    upsert?.hash ?? null, upstreamAt, ids.writer, owner,
  )
}

function touchRow(session: Session, databases: Map<string, number>, landing: Landing, upstreamAt: string | null): void {
  const where = 'where tenant_id = ? and database_id = ? and key = ?'
  const id = databases.get(landing.database)!
  if (landing.type === 'delete') session.connection.run(`update tidemark_rows set upstream_at = ?, status = ? ${where}`, upstreamAt, STATUS.deleted, session.tenantId, id, landing.key)
  else session.connection.run(`update tidemark_rows set upstream_at = ?, hash = ? ${where}`, upstreamAt, landing.hash, session.tenantId, id, landing.key)
}

interface Batched<Write> {
  /** The text for the row at this place of its batch. */
  tuple(at: number): string
  /** Bound once for a batch, from its first write. */
  shared(first: Write): Parameter[]
  push(write: Write, into: Parameter[]): void
}

function insertBatched<Write>(session: Session, head: string, writes: readonly Write[], { tuple, shared, push }: Batched<Write>): void {
  const { connection } = session
  const run = (statement: ReturnType<typeof connection.prepare>, from: number, to: number): void => {
    const parameters = shared(writes[from]!)
    for (let at = from; at < to; at++) push(writes[at]!, parameters)
    statement.run(...parameters)
  }
  let at = 0
  if (writes.length >= BATCH) {
    const many = connection.prepare(head + Array.from({ length: BATCH }, (_, place) => tuple(place)).join(','))
    for (; at + BATCH <= writes.length; at += BATCH) run(many, at, at + BATCH)
  }
  const one = connection.prepare(head + tuple(0))
  for (; at < writes.length; at++) run(one, at, at + 1)
}
