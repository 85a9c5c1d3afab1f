import { SyncError, type Action, type Commit, type Landing } from '../../contract/index.ts'
import type { RowStatus, StoredRow } from '../kit/judge.ts'
import type { LandingFacts, LandingPlan } from '../kit/plan-landing.ts'
import { bigintArray, integerArray, textArray, withoutNul } from './arrays.ts'
import type { Transaction } from './connection.ts'

export const STATUS: Record<RowStatus, number> = { live: 0, deleted: 1, swept: 2 }
export const ACTION: Record<Action, number> = { created: 1, updated: 2, deleted: 3 }
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

/** The rows a page meets, all looked up before the first is judged. */
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
      `select key, sequence, status, hash, upstream_at, writer_id, owner_id from tidemark.rows
       where tenant_id = $1 and database_id = (select database_id from tidemark.databases where tenant_id = $1 and name = $2) and key = any($3::text[])`,
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
    'select sequence, coalesce(exact, record::text) as record from tidemark.log where tenant_id = $1 and sequence = any($2::bigint[])', transaction.tenant, bigintArray(sequences),
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
  if (writes.length === 0) return
  transaction.send(
    `insert into tidemark.log (tenant_id, committed_at, sequence, database_id, action, previous, key, cursor, upstream_at, record, exact)
     select $1, $2, sequence, database_id, action, previous, key, cursor, upstream_at, record::jsonb, exact
     from unnest($3::bigint[], $4::int[], $5::int[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
       as w (sequence, database_id, action, previous, key, cursor, upstream_at, record, exact)`,
    transaction.tenant, committedAt, bigintArray(writes.map(({ sequence }) => sequence)),
    integerArray(writes.map(({ landing }) => databases.get(landing.database)!)), integerArray(writes.map(({ action }) => ACTION[action!])),
    bigintArray(writes.map(({ row }) => row?.sequence ?? null)), textArray(writes.map(({ landing }) => landing.key)),
    textArray(writes.map(({ landing }) => (landing.type === 'upsert' ? withoutNul(landing.cursor) : null))),
    textArray(writes.map(({ landing }) => landing.upstreamAt)),
    textArray(writes.map(({ landing }) => (landing.type === 'upsert' && !isUnfit(landing.text) ? landing.text : null))),
    textArray(writes.map(({ landing }) => (landing.type === 'upsert' && isInexact(landing.text) ? landing.text : null))),
  )
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

export function writeRows(transaction: Transaction, plan: LandingPlan, databases: ReadonlyMap<string, number>, writer: number, owner: number): void {
  const fresh = plan.writes.filter(({ row }) => row === undefined)
  const known = plan.writes.filter(({ row }) => row !== undefined)
  if (fresh.length > 0) {
    transaction.send(
      `insert into tidemark.rows (tenant_id, writer_id, owner_id, database_id, key, sequence, status, hash, upstream_at)
       select $1, $2, $3, * from unnest($4::int[], $5::text[], $6::bigint[], $7::int[], $8::text[], $9::text[])`,
      transaction.tenant, writer, owner, ...rowArrays(fresh, databases), textArray(fresh.map(({ landing }) => landing.upstreamAt)),
    )
  }
  if (known.length > 0) {
    transaction.send(
      `update tidemark.rows r set sequence = w.sequence, status = w.status, hash = w.hash, upstream_at = w.upstream_at, writer_id = $2, owner_id = w.owner_id
       from unnest($3::int[], $4::text[], $5::bigint[], $6::int[], $7::text[], $8::text[], $9::int[])
         as w (database_id, key, sequence, status, hash, upstream_at, owner_id)
       where r.tenant_id = $1 and r.database_id = w.database_id and r.key = w.key`,
      transaction.tenant, writer, ...rowArrays(known, databases),
      // A fact without a time keeps the row's: what is older than that is still older, and what was known then stays dead.
      textArray(known.map(({ landing, row }) => landing.upstreamAt ?? row!.upstreamAt)),
      // A row that comes back belongs to whoever brought it; a living one keeps its owner.
      integerArray(known.map(({ row }) => (row!.status === 'live' ? row!.owner : owner))),
    )
  }
}

function rowArrays(writes: LandingPlan['writes'], databases: ReadonlyMap<string, number>): Buffer[] {
  return [
    integerArray(writes.map(({ landing }) => databases.get(landing.database)!)), textArray(writes.map(({ landing }) => landing.key)),
    bigintArray(writes.map(({ sequence }) => sequence)),
    integerArray(writes.map(({ landing }) => (landing.type === 'upsert' ? STATUS.live : STATUS.deleted))),
    textArray(writes.map(({ landing }) => (landing.type === 'upsert' ? landing.hash : null))),
  ]
}

export function touchRows(transaction: Transaction, { touches }: LandingPlan, databases: ReadonlyMap<string, number>): void {
  if (touches.length === 0) return
  transaction.send(
    `update tidemark.rows r set upstream_at = t.upstream_at, hash = t.hash, status = case when t.hash is null then ${STATUS.deleted} else ${STATUS.live} end
     from unnest($2::int[], $3::text[], $4::text[], $5::text[]) as t (database_id, key, hash, upstream_at)
     where r.tenant_id = $1 and r.database_id = t.database_id and r.key = t.key`,
    transaction.tenant, integerArray(touches.map(({ landing }) => databases.get(landing.database)!)), textArray(touches.map(({ landing }) => landing.key)),
    textArray(touches.map(({ landing }) => (landing.type === 'upsert' ? landing.hash : null))), textArray(touches.map(({ upstreamAt }) => upstreamAt)),
  )
}
