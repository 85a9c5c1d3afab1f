import type { Action, Commit, CommitOutcome, Landing, LandingCounts, Sweep } from '../../contract/index.ts'
import type { RowStatus, StoredRow } from '../kit/judge.ts'
import { isBraked, planLanding, toRanges, type LandingPlan, type RowWrite } from '../kit/plan-landing.ts'
import { identityOf } from '../kit/quarantine-identity.ts'
import { rollback, type Parameter, type Rollback, type Session } from './connection.ts'
import { forgetSeen, heldEntry, toCheckpoint, toInflight, writeAudit, writeInflight, type RegistryEntry } from './registry.ts'
import { SequenceSet } from './sequence-set.ts'
import { ensureView } from './views.ts'

/** The one door. Everything below runs inside one transaction; a refusal undoes it. */
export function commit(session: Session, commit: Commit): CommitOutcome {
  return session.connection.write(() => {
    const entry = heldEntry(session, commit.lease)
    if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })
    if (!isExpected(entry, commit)) return rollback<CommitOutcome>({ kind: 'conflict', checkpoint: toCheckpoint(entry) })
    return land(session, entry, commit)
  })
}

/** Invariants 1 to 3 stand on this: the version is the one read, the cycle is the unfinished one, the page is the next. */
function isExpected(entry: RegistryEntry, { version, move }: Commit): boolean {
  if (entry.version !== version) return false
  return move.kind === 'set' || (entry.inflight_cycle === move.cycle && entry.inflight_page === move.page - 1)
}

function land(session: Session, entry: RegistryEntry, commit: Commit): CommitOutcome | Rollback<CommitOutcome> {
  const { connection, tenantId } = session
  const tenant = connection.get<{ sequence: number; committed_at: number }>(
    'select sequence, committed_at from tidemark_tenants where tenant_id = ?', tenantId,
  )!
  const inflight = toInflight(entry)
  const sweeps = inflight?.mode === 'replace'
  const owner = ensureOwner(session, commit.owner, sweeps)
  const databases = databaseIds(session, commit)
  const find = finder(session, databases, commit)

  const plan = planLanding(commit, {
    writer: entry.sync_id, owner, position: tenant.sequence, sweeps, find,
    textOf: (_, row) => connection.get<{ record: string }>('select record from tidemark_log where position = ?', session.base + row.sequence)!.record,
  })
  if (plan.overlap.length > 0) return rollback({ kind: 'overlap', keys: plan.overlap })

  // Invariant 7: the feed's time never stands still or goes back, whatever the clock does.
  const committedAt = Math.max(commit.at, tenant.committed_at + 1)
  const page = commit.move.kind === 'set' ? 0 : commit.move.page
  const limits = sweeps && commit.move.kind === 'complete' ? commit.move.sweep : null
  const commitId = plan.writes.length === 0 && limits === null ? 0 : connection.run(
    'insert into tidemark_commits (tenant_id, sync_id, cycle_id, page, committed_at) values (?, ?, ?, ?, ?)',
    tenantId, entry.sync_id, inflight?.cycle ?? 0, page, committedAt,
  ).lastInsertRowid

  writePlan(session, plan, databases, { commit: commitId, writer: entry.sync_id, owner })
  for (const { landing, upstreamAt } of plan.touches) touchRow(session, databases, landing, upstreamAt)
  if (sweeps) rememberSeen(session, plan, databases, owner, inflight!.cycle, page)
  writeQuarantine(session, entry, commit, page)

  let position = plan.position
  if (limits !== null) {
    const swept = sweep(session, entry, limits, { owner, cycle: inflight!.cycle, startSequence: inflight!.startSequence, position, commitId })
    if (swept.kind === 'braked') return rollback(swept)
    plan.counts.swept = swept.count
    position += swept.count
  }
  if (position > tenant.sequence) {
    connection.run('update tidemark_tenants set sequence = ?, committed_at = ? where tenant_id = ?', position, committedAt, tenantId)
  }
  for (const [pacer, slotAt] of Object.entries(commit.pacers)) {
    connection.run(
      'insert into tidemark_pacers (tenant_id, sync_id, pacer, slot_at) values (?, ?, ?, ?) on conflict do update set slot_at = excluded.slot_at',
      tenantId, entry.sync_id, pacer, slotAt,
    )
  }
  if (inflight !== null) addToCycle(session, inflight.cycle, plan.counts)
  const version = moveCheckpoint(session, entry, commit)
  return { kind: 'landed', version, position, counts: plan.counts, paused: entry.paused === 1 }
}

// ── rows and log ─────────────────────────────────────────────────────────────────────────────────────────────────────

const STATUS: Record<RowStatus, number> = { live: 0, deleted: 1, swept: 2 }
const STATUS_OF: readonly RowStatus[] = ['live', 'deleted', 'swept']
const ACTION: Record<Action, number> = { created: 1, updated: 2, deleted: 3 }

/** Rows per insert statement. One call per row spends half its time crossing into SQLite; past about twenty it no longer helps. */
const BATCH = 20

interface RowRecord {
  position: number
  status: number
  hash: string | null
  upstream_at: string | null
  writer_id: number
  owner_id: number
}

/**
 * Looks a landing's row up. Two short cuts keep a page's cost near that of its inserts: when no row stands between the
 * smallest and the largest key of the page, nothing needs to be looked up; and an unchanged row is recognised by an
 * exact match that reads one number.
 */
function finder(session: Session, databases: Map<string, number>, { landings, quarantined }: Commit): (landing: Landing) => StoredRow | undefined {
  const { connection, tenantId, base } = session
  const untouched = new Set<string>()
  for (const [name, id] of databases) {
    // A quarantined key is looked up too, and may lie outside of the landings.
    if (quarantined.some((item) => item.database === name)) continue
    if (isUntouched(session, id, landings.filter((landing) => landing.database === name))) untouched.add(name)
  }
  const same = connection.prepare(
    `select position, writer_id, owner_id from tidemark_rows
     where tenant_id = ? and database_id = ? and key = ? and hash = ? and upstream_at is ? and status = 0`,
  )
  const any = connection.prepare(
    'select position, status, hash, upstream_at, writer_id, owner_id from tidemark_rows where tenant_id = ? and database_id = ? and key = ?',
  )
  return (landing) => {
    if (untouched.has(landing.database)) return undefined
    const id = databases.get(landing.database)!
    if (landing.type === 'upsert') {
      const row = same.get(tenantId, id, landing.key, landing.hash, landing.upstreamAt) as RowRecord | undefined
      if (row !== undefined) {
        return {
          sequence: row.position - base, status: 'live', hash: landing.hash, upstreamAt: landing.upstreamAt,
          writer: row.writer_id, owner: row.owner_id,
        }
      }
    }
    const row = any.get(tenantId, id, landing.key) as RowRecord | undefined
    if (row === undefined) return undefined
    return {
      sequence: row.position - base, status: STATUS_OF[row.status]!, hash: row.hash, upstreamAt: row.upstream_at,
      writer: row.writer_id, owner: row.owner_id,
    }
  }
}

function isUntouched(session: Session, databaseId: number, landings: readonly Landing[]): boolean {
  if (landings.length < 2) return false
  let [least, most] = [landings[0]!.key, landings[0]!.key]
  for (const { key } of landings) {
    if (key < least) least = key
    else if (key > most) most = key
  }
  // JavaScript orders by UTF-16 units and SQLite by bytes; they agree below the surrogates.
  if (/[\ud800-\uffff]/.test(least) || /[\ud800-\uffff]/.test(most)) return false
  if (landings.some(({ key }) => /[\ud800-\uffff]/.test(key))) return false
  return session.connection.get(
    'select 1 from tidemark_rows where tenant_id = ? and database_id = ? and key between ? and ? limit 1', session.tenantId, databaseId, least, most,
  ) === undefined
}

/** Newcomers, by far the most on a first load, go in many at a time; everything else one by one. */
function writePlan(session: Session, plan: LandingPlan, databases: Map<string, number>, ids: { commit: number; writer: number; owner: number }): void {
  for (const [name, id] of databases) {
    const newcomers = plan.writes.filter((write) => write.action === 'created' && write.row === undefined && write.landing.database === name)
    insertNewcomers(session, id, newcomers as Newcomer[], ids)
  }
  for (const write of plan.writes) {
    if (write.action === 'created' && write.row === undefined) continue
    if (write.action !== null) appendLog(session, write, databases.get(write.landing.database)!, ids.commit)
    writeRow(session, write, databases.get(write.landing.database)!, ids)
  }
}

type Newcomer = RowWrite & { readonly landing: Extract<Landing, { type: 'upsert' }> }

/**
 * A value bound costs a fifth of a microsecond, so what is the same for all of them stands in the statement's text, which
 * differs only from sync to sync and stays prepared.
 */
function insertNewcomers(session: Session, databaseId: number, newcomers: readonly Newcomer[], ids: { commit: number; writer: number; owner: number }): void {
  const { tenantId, base } = session
  const cursors = newcomers.some(({ landing }) => landing.cursor !== null)
  insertBatched(session,
    'insert into tidemark_log (position, commit_id, database_id, key, action, previous, cursor, upstream_at, record) values ',
    `(?,?,${databaseId},?,${ACTION.created},null,${cursors ? '?' : 'null'},?,?)`, newcomers,
    ({ landing, sequence }, into) => {
      into.push(base + sequence, ids.commit, landing.key)
      if (cursors) into.push(landing.cursor)
      into.push(landing.upstreamAt, landing.text)
    })
  // In key order, so that a page of scattered keys walks the tree once.
  const sorted = isSorted(newcomers) ? newcomers : newcomers.toSorted((a, b) => (a.landing.key < b.landing.key ? -1 : 1))
  insertBatched(session,
    'insert into tidemark_rows (tenant_id, database_id, key, position, status, hash, upstream_at, writer_id, owner_id) values ',
    `(${tenantId},${databaseId},?,?,${STATUS.live},?,?,${ids.writer},${ids.owner})`, sorted,
    ({ landing, sequence }, into) => {
      into.push(landing.key, base + sequence, landing.hash, landing.upstreamAt)
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

function writeRow(session: Session, { landing, sequence, row }: RowWrite, databaseId: number, ids: { writer: number; owner: number }): void {
  const upsert = landing.type === 'upsert' ? landing : null
  // A fact without a time keeps the row's: what is older than that is still older, and what was known then stays dead.
  const upstreamAt = landing.upstreamAt ?? row?.upstreamAt ?? null
  // A row that comes back belongs to whoever brought it; a living one keeps its owner.
  const owner = row?.status === 'live' ? row.owner : ids.owner
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

function insertBatched<Write>(session: Session, head: string, tuple: string, writes: readonly Write[], push: (write: Write, into: Parameter[]) => void): void {
  const { connection } = session
  const run = (statement: ReturnType<typeof connection.prepare>, from: number, to: number): void => {
    const parameters: Parameter[] = []
    for (let at = from; at < to; at++) push(writes[at]!, parameters)
    statement.run(...parameters)
  }
  let at = 0
  if (writes.length >= BATCH) {
    const many = connection.prepare(head + Array(BATCH).fill(tuple).join(','))
    for (; at + BATCH <= writes.length; at += BATCH) run(many, at, at + BATCH)
  }
  const one = connection.prepare(head + tuple)
  for (; at < writes.length; at++) run(one, at, at + 1)
}

function isSorted(writes: readonly RowWrite[]): boolean {
  for (let i = 1; i < writes.length; i++) if (writes[i]!.landing.key < writes[i - 1]!.landing.key) return false
  return true
}

function databaseIds(session: Session, commit: Commit): Map<string, number> {
  const ids = new Map<string, number>()
  for (const [name, columns] of Object.entries(commit.columns)) ids.set(name, ensureView(session, name, columns))
  for (const { database } of [...commit.landings, ...commit.quarantined]) {
    if (!ids.has(database)) ids.set(database, ensureView(session, database, []))
  }
  return ids
}

// ── the sweep ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface SweepFacts {
  readonly owner: number
  readonly cycle: number
  readonly startSequence: number
  readonly position: number
  readonly commitId: number
}

/** Invariant 5: gone are the rows this owner had, that the cycle did not see, that nobody wrote since it began, and that no other owner still lists. */
function sweep(
  session: Session, entry: RegistryEntry, limits: Sweep, facts: SweepFacts,
): { kind: 'swept'; count: number } | Extract<CommitOutcome, { kind: 'braked' }> {
  const { connection, tenantId, base } = session
  gatherSeen(session, facts.cycle)
  connection.run('delete from tidemark_claims where tenant_id = ? and owner_id = ? and cycle_id <> ?', tenantId, facts.owner, facts.cycle)

  let position = facts.position
  for (const { database_id: id, name } of connection.all<{ database_id: number; name: string }>(
    'select database_id, name from tidemark_databases where tenant_id = ? order by database_id', tenantId,
  )) {
    const doomed = connection.all<{ key: string; position: number }>(
      `select key, position from tidemark_rows r
       where tenant_id = ? and database_id = ? and status = 0 and owner_id = ? and position <= ?
         and position > coalesce((select ? + last from temp.tidemark_seen_ranges where first <= r.position - ? order by first desc limit 1), 0)`,
      tenantId, id, facts.owner, base + facts.startSequence, base, base,
    )
    const dying = doomed.filter(({ key }) => !handOver(session, id, key))
    if (dying.length > 0) {
      const existed = countExisted(session, id, facts)
      if (isBraked(limits, existed, dying.length)) return { kind: 'braked', database: name, owned: existed, doomed: dying.length }
    }
    for (const { key, position: previous } of dying) {
      position++
      connection.run(
        'insert into tidemark_log (position, commit_id, database_id, key, action, previous) values (?, ?, ?, ?, ?, ?)',
        base + position, facts.commitId, id, key, ACTION.deleted, previous,
      )
      connection.run(
        'update tidemark_rows set position = ?, status = ?, hash = null, writer_id = ? where tenant_id = ? and database_id = ? and key = ?',
        base + position, STATUS.swept, entry.sync_id, tenantId, id, key,
      )
    }
  }
  return { kind: 'swept', count: position - facts.position }
}

/** Newcomers do not dilute the share that dies: were every key renamed, all that was there would still go. */
function countExisted(session: Session, databaseId: number, facts: SweepFacts): number {
  const { connection, tenantId, base } = session
  const { owned } = connection.get<{ owned: number }>(
    'select count(*) as owned from tidemark_rows where tenant_id = ? and database_id = ? and status = 0 and owner_id = ?', tenantId, databaseId, facts.owner,
  )!
  const { created } = connection.get<{ created: number }>(
    `select count(distinct l.key) as created from tidemark_log l
     join tidemark_rows r on r.tenant_id = ? and r.database_id = l.database_id and r.key = l.key
     where l.position > ? and l.position <= ? and l.database_id = ? and l.action = ? and r.status = 0 and r.owner_id = ?`,
    tenantId, base + facts.startSequence, base + facts.position, databaseId, ACTION.created, facts.owner,
  )!
  return owned - created
}

/** A row that another owner still lists passes to that owner instead of dying. */
function handOver(session: Session, databaseId: number, key: string): boolean {
  const { connection, tenantId } = session
  const heir = connection.get<{ owner_id: number }>(
    'select owner_id from tidemark_claims where tenant_id = ? and database_id = ? and key = ? order by owner_id limit 1', tenantId, databaseId, key,
  )
  if (heir === undefined) return false
  connection.run('delete from tidemark_claims where tenant_id = ? and database_id = ? and key = ? and owner_id = ?', tenantId, databaseId, key, heir.owner_id)
  connection.run('update tidemark_rows set owner_id = ? where tenant_id = ? and database_id = ? and key = ?', heir.owner_id, tenantId, databaseId, key)
  return true
}

function rememberSeen(session: Session, plan: LandingPlan, databases: Map<string, number>, owner: number, cycle: number, page: number): void {
  const { connection, tenantId } = session
  if (plan.seen.length > 0) {
    connection.run('insert into tidemark_seen (tenant_id, cycle_id, page, ranges) values (?, ?, ?, ?)', tenantId, cycle, page, JSON.stringify(toRanges(plan.seen)))
  }
  for (const { database, key } of plan.sightings) {
    const id = databases.get(database)!
    // An owner that never sweeps proves nothing by its silence: the first that does takes the row over.
    const taken = connection.run(
      `update tidemark_rows set owner_id = ? where tenant_id = ? and database_id = ? and key = ?
       and owner_id in (select owner_id from tidemark_owners where tenant_id = ? and sweeps = 0)`,
      owner, tenantId, id, key, tenantId,
    )
    if (taken.changes > 0) continue
    connection.run(
      `insert into tidemark_claims (tenant_id, database_id, key, owner_id, cycle_id) values (?, ?, ?, ?, ?)
       on conflict do update set cycle_id = excluded.cycle_id`,
      tenantId, id, key, owner, cycle,
    )
  }
}

/** The pages' sightings as disjoint ranges, so that one step down an index tells whether a row was seen. */
function gatherSeen(session: Session, cycle: number): void {
  const { connection, tenantId } = session
  connection.exec('create temp table if not exists tidemark_seen_ranges (first integer primary key, last integer not null); delete from temp.tidemark_seen_ranges')
  const seen = new SequenceSet()
  for (const { ranges } of connection.prepare(
    'select ranges from tidemark_seen where tenant_id = ? and cycle_id = ?',
  ).iterate(tenantId, cycle) as IterableIterator<{ ranges: string }>) {
    for (const [first, last] of JSON.parse(ranges) as Array<[number, number]>) seen.add(first, last)
  }
  for (const [first, last] of seen.ranges()) connection.run('insert into temp.tidemark_seen_ranges (first, last) values (?, ?)', first, last)
}

function ensureOwner(session: Session, name: string, sweeps: boolean): number {
  const { connection, tenantId } = session
  connection.run('insert into tidemark_owners (tenant_id, name) values (?, ?) on conflict do nothing', tenantId, name)
  if (sweeps) connection.run('update tidemark_owners set sweeps = 1 where tenant_id = ? and name = ? and sweeps = 0', tenantId, name)
  return connection.get<{ owner_id: number }>('select owner_id from tidemark_owners where tenant_id = ? and name = ?', tenantId, name)!.owner_id
}

// ── checkpoint, quarantine, cycle ────────────────────────────────────────────────────────────────────────────────────

function moveCheckpoint(session: Session, entry: RegistryEntry, { move, at }: Commit): number {
  const { connection, tenantId } = session
  switch (move.kind) {
    case 'continue':
      writeInflight(session, entry.sync_id, { ...toInflight(entry)!, page: move.page, state: move.state })
      return entry.version
    case 'abandon':
      writeInflight(session, entry.sync_id, null)
      forgetSeen(session, move.cycle)
      writeAudit(session, entry, { version: entry.version, at, actor: 'engine', action: 'abandon', reason: move.reason, cycle: move.cycle, state: null })
      return entry.version
    case 'complete':
      writeInflight(session, entry.sync_id, null)
      forgetSeen(session, move.cycle)
      connection.run(
        'update tidemark_registry set version = ?, committed = ?, committed_by = ?, tidemark = coalesce(?, tidemark), scope = coalesce(?, scope) where tenant_id = ? and sync_id = ?',
        entry.version + 1, move.state, move.cycle, move.tidemark, move.scope, tenantId, entry.sync_id,
      )
      writeAudit(session, entry, { version: entry.version + 1, at, actor: 'engine', action: 'complete', reason: '', cycle: move.cycle, state: move.state })
      return entry.version + 1
    case 'set':
      if (entry.inflight_cycle !== null) forgetSeen(session, entry.inflight_cycle)
      writeInflight(session, entry.sync_id, null)
      connection.run(
        'update tidemark_registry set version = ?, committed = ?, committed_by = null where tenant_id = ? and sync_id = ?',
        entry.version + 1, move.state, tenantId, entry.sync_id,
      )
      writeAudit(session, entry, { version: entry.version + 1, at, actor: move.actor, action: 'set', reason: move.reason, cycle: null, state: move.state })
      return entry.version + 1
  }
}

function writeQuarantine(session: Session, entry: RegistryEntry, commit: Commit, page: number): void {
  const { connection, tenantId } = session
  const waiting = connection.get('select 1 from tidemark_quarantine where tenant_id = ? and sync_id = ? limit 1', tenantId, entry.sync_id) !== undefined
  // A key that lands has left quarantine.
  if (waiting) {
    for (const landing of commit.landings) {
      connection.run(
        'delete from tidemark_quarantine where tenant_id = ? and sync_id = ? and database_name = ? and identity = ?',
        tenantId, entry.sync_id, landing.database, identityOf(landing),
      )
    }
  }
  for (const item of commit.quarantined) {
    connection.run(
      `insert into tidemark_quarantine (tenant_id, sync_id, database_name, identity, key, code, message, text, cycle_id, page, at)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       on conflict do update set code = excluded.code, message = excluded.message, text = excluded.text, cycle_id = excluded.cycle_id, page = excluded.page, at = excluded.at`,
      tenantId, entry.sync_id, item.database, identityOf(item), item.key, item.code, item.message, item.text,
      entry.inflight_cycle ?? 0, page, commit.at,
    )
  }
}

function addToCycle(session: Session, cycle: number, counts: LandingCounts): void {
  session.connection.run(
    `update tidemark_cycles set pages = pages + 1, created = created + ?, updated = updated + ?, deleted = deleted + ?, swept = swept + ?,
     unchanged = unchanged + ?, stale = stale + ?, missing = missing + ?, quarantined = quarantined + ? where tenant_id = ? and cycle_id = ?`,
    counts.created, counts.updated, counts.deleted, counts.swept, counts.unchanged, counts.stale, counts.missing, counts.quarantined,
    session.tenantId, cycle,
  )
}
