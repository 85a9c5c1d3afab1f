import { SyncError, type Action, type Commit, type Landing } from '../../contract/index.ts'
import type { RowStatus, StoredRow } from '../kit/judge.ts'
import type { LandingFacts, LandingPlan, RowWrite } from '../kit/plan-landing.ts'
import { bigintArray, textArray, withoutNul } from './arrays.ts'
import type { Transaction } from './connection.ts'
import { insertMany } from './insert-many.ts'

export const STATUS: Record<RowStatus, number> = { live: 0, deleted: 1, swept: 2 }
export const ACTION: Record<Action, number> = { created: 1, updated: 2, deleted: 3 }
export const ACTION_OF: Record<1 | 2 | 3, Action> = { 1: 'created', 2: 'updated', 3: 'deleted' }
const STATUS_OF: readonly RowStatus[] = ['live', 'deleted', 'swept']

interface RowRecord {
  key: string
  sequence: number
  status: number
  hash: string | null
  upstream_at: string | null
  writer_id: number
  owner_id: number
}

/**
 * The rows a page meets, all looked up before the first is judged.
 *
 * Here and below, statements leave the planner no choice: a row is found through a lateral probe of its whole key, and
 * changed through ON CONFLICT. With \`key = any(…)\` or \`update … from\`, a planner that has no statistics yet takes a
 * tenant to have one row and reads all of them, for every page.
 */
export interface FoundRows {
  readonly find: LandingFacts['find']
  /** The stored texts of rows whose hash is another, for `textOf`. */
  textsOfChanged(transaction: Transaction, commit: Commit): Promise<LandingFacts['textOf']>
}

export async function findRows(transaction: Transaction, commit: Commit): Promise<FoundRows> {
  const keys = new Map<string, string[]>()
  for (const { database, key } of [...commit.landings, ...commit.quarantined]) {
    if (key === null) continue
    const wanted = keys.get(database)
    if (wanted === undefined) keys.set(database, [key])
    else wanted.push(key)
  }
  const tables = new Map(await Promise.all([...keys].map(async ([database, wanted]) => {
    const rows = await transaction.all<RowRecord>(
      // When no row stands between the smallest and the largest key of the page, nothing needs to be looked up.
      `with wanted as materialized (select key collate "C" as key from unnest($3::text[]) as w (key)),
       place as materialized (select database_id as id from tidemark.databases where tenant_id = $1 and name = $2)
       select r.* from wanted cross join lateral (
         select key, sequence, status, hash, upstream_at, writer_id, owner_id from tidemark.rows
         where tenant_id = $1 and database_id = (select id from place) and key = wanted.key limit 1
       ) r
       where exists (
         select from tidemark.rows where tenant_id = $1 and database_id = (select id from place)
           and key between (select min(key) from wanted) and (select max(key) from wanted)
       )`,
      transaction.tenant, database, textArray(wanted),
    )
    return [database, new Map(rows.map((row) => [row.key, toStoredRow(row)]))] as const
  })))
  const find = ({ database, key }: Landing) => tables.get(database)?.get(key)
  return { find, textsOfChanged: (transaction, commit) => readTexts(transaction, commit, find) }
}

async function readTexts(transaction: Transaction, commit: Commit, find: LandingFacts['find']): Promise<LandingFacts['textOf']> {
  const sequences: number[] = []
  for (const landing of commit.landings) {
    const row = find(landing)
    if (landing.type === 'upsert' && row?.status === 'live' && row.hash !== landing.hash) sequences.push(row.sequence)
  }
  const entries = sequences.length === 0 ? [] : await transaction.all<{ sequence: number; record: string }>(
    `select l.* from unnest($2::bigint[]) as wanted (sequence) cross join lateral (
       select sequence, coalesce(exact, record::text) as record from tidemark.log where tenant_id = $1 and sequence = wanted.sequence limit 1
     ) l`, transaction.tenant, bigintArray(sequences),
  )
  const texts = new Map(entries.map(({ sequence, record }) => [sequence, record]))
  return (landing, row) => {
    const text = texts.get(row.sequence)
    if (text === undefined) throw new SyncError('INTERNAL', `The row of ${landing.database} points to entry ${row.sequence}, which is not in the log.`)
    return text
  }
}

function toStoredRow(row: RowRecord): StoredRow {
  return { sequence: row.sequence, status: STATUS_OF[row.status]!, hash: row.hash, upstreamAt: row.upstream_at, writer: row.writer_id, owner: row.owner_id }
}

export function writeLog(transaction: Transaction, plan: LandingPlan, databases: ReadonlyMap<string, number>, committedAt: number): void {
  const writes = plan.writes.filter(({ action }) => action !== null)
  const texts = writes.map(({ landing }) => (landing.type === 'upsert' ? landing.text : null))
  insertMany(transaction, 'tidemark.log', [
    { name: 'sequence', type: 'bigint', values: writes.map(({ sequence }) => sequence) },
    { name: 'committed_at', type: 'bigint', values: writes.map(() => committedAt) },
    { name: 'database_id', type: 'integer', values: writes.map(({ landing }) => databases.get(landing.database)!) },
    { name: 'action', type: 'integer', values: writes.map(({ action }) => ACTION[action!]) },
    { name: 'previous', type: 'bigint', values: writes.map(({ row }) => row?.sequence ?? null) },
    { name: 'key', type: 'text', values: writes.map(({ landing }) => landing.key) },
    { name: 'cursor', type: 'text', values: writes.map(({ landing }) => (landing.type === 'upsert' ? withoutNul(landing.cursor) : null)) },
    { name: 'upstream_at', type: 'text', values: writes.map(({ landing }) => landing.upstreamAt) },
    { name: 'record', type: 'jsonb', values: texts.map((text) => (text === null || isUnfit(text) ? null : text)) },
    { name: 'exact', type: 'text', values: texts.map((text) => (text !== null && isInexact(text) ? text : null)) },
  ])
}

/** jsonb writes 1.5e300 out as an integer of 301 digits, which would be read back as that integer. */
const LARGE_EXPONENT = /[:,[\s]-?\d+(?:\.\d+)?[eE]\+?\d\d/

function isInexact(text: string): boolean {
  return LARGE_EXPONENT.test(text) || isUnfit(text)
}

/** jsonb refuses a number of more than 131072 digits. */
function isUnfit(text: string): boolean {
  return text.length > 100_000 && /\d{100000}/.test(text)
}

export function writeRows(transaction: Transaction, plan: LandingPlan, databases: ReadonlyMap<string, number>, writer: number, ownerIn: (database: string) => number): void {
  const fresh = plan.writes.filter(({ row }) => row === undefined)
  const known = plan.writes.filter(({ row }) => row !== undefined)
  const toRow = ({ landing, sequence, row }: RowWrite): KeyedRow => ({
    database: landing.database, key: landing.key, sequence, status: landing.type === 'upsert' ? 'live' : 'deleted', hash: landing.type === 'upsert' ? landing.hash : null, writer,
    // A fact without a time keeps the row's: what is older than that is still older, and what was known then stays dead.
    upstreamAt: landing.upstreamAt ?? row?.upstreamAt ?? null,
    // A row that comes back belongs to whoever brought it; a living one keeps its owner.
    owner: row?.status === 'live' ? row.owner : ownerIn(landing.database),
  })
  putRows(transaction, databases, fresh.map(toRow), '')
  putRows(transaction, databases, known.map(toRow), `on conflict (tenant_id, database_id, key) do update set sequence = excluded.sequence, status = excluded.status,
    hash = excluded.hash, upstream_at = excluded.upstream_at, writer_id = excluded.writer_id, owner_id = excluded.owner_id`)
}

export function touchRows(transaction: Transaction, { touches }: LandingPlan, databases: ReadonlyMap<string, number>, find: LandingFacts['find']): void {
  const rows = touches.map(({ landing, upstreamAt }): KeyedRow => {
    const { sequence, writer, owner } = find(landing)!
    return {
      database: landing.database, key: landing.key, sequence, status: landing.type === 'upsert' ? 'live' : 'deleted',
      hash: landing.type === 'upsert' ? landing.hash : null, upstreamAt, writer, owner,
    }
  })
  putRows(transaction, databases, rows, 'on conflict (tenant_id, database_id, key) do update set status = excluded.status, hash = excluded.hash, upstream_at = excluded.upstream_at')
}

export interface KeyedRow extends StoredRow {
  readonly database: string
  readonly key: string
}

/** Rows that are new, or with `onConflict` those that are there and what of them changes. */
export function putRows(transaction: Transaction, databases: ReadonlyMap<string, number>, rows: readonly KeyedRow[], onConflict: string): void {
  insertMany(transaction, 'tidemark.rows', [
    { name: 'key', type: 'text', values: rows.map(({ key }) => key) },
    { name: 'database_id', type: 'integer', values: rows.map(({ database }) => databases.get(database)!) },
    { name: 'sequence', type: 'bigint', values: rows.map(({ sequence }) => sequence) },
    { name: 'status', type: 'integer', values: rows.map(({ status }) => STATUS[status]) },
    { name: 'hash', type: 'text', values: rows.map(({ hash }) => hash) },
    { name: 'upstream_at', type: 'text', values: rows.map(({ upstreamAt }) => upstreamAt) },
    { name: 'writer_id', type: 'integer', values: rows.map(({ writer }) => writer) },
    { name: 'owner_id', type: 'integer', values: rows.map(({ owner }) => owner) },
  ], onConflict)
}
