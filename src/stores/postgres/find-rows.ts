import { hash } from 'node:crypto'
import type { Commit } from '../../contract/index.ts'
import { keyRangeOf, type KeyRange } from '../kit/key-range.ts'
import type { RowStatus, StoredRow } from '../kit/resolve-landing.ts'
import { textArray } from './binary-arrays.ts'
import { binaryArray } from './binary-values.ts'
import type { CachedTable, Transaction } from './connection.ts'
import {
  NO_ROWS,
  toUnchangedRow,
  toUnchangedRows,
  type FoundTableRows,
  type RowLookup,
  type StoredRecord,
} from './found-rows.ts'
import { toInstant } from './table.ts'
import { required } from '../../values/required.ts'

export const STATUS_CODES: Record<RowStatus, number> = { live: 0, deleted: 1, swept: 2 }
const STATUS_BY_CODE: readonly RowStatus[] = ['live', 'deleted', 'swept']

/** Collects the lookups of a commit, by database. */
export function collectRowLookups({ landings, quarantined, forceLogSince }: Commit): Map<string, RowLookup> {
  const wanted = new Map<string, RowLookup>()
  const add = (database: string, key: string, hash: string | null, time: string | null): void => {
    let own = wanted.get(database)
    if (own === undefined) wanted.set(database, (own = { keys: [], hashes: [], times: [] }))
    own.keys.push(key)
    own.hashes.push(hash)
    own.times.push(time)
  }
  // A commit with `forceLogSince` also needs the writer of unchanged rows.
  const isBrief = forceLogSince === undefined
  for (const landing of landings)
    add(landing.database, landing.key, landing.type === 'upsert' && isBrief ? landing.hash : null, landing.upstreamAt)
  for (const { database, key } of quarantined) if (key !== null) add(database, key, null, null)
  return wanted
}

/** A wrong guess costs one round trip: the rows are then looked up one by one. */
export async function findRows(
  transaction: Transaction,
  table: CachedTable,
  wanted: RowLookup,
  owner: string,
): Promise<FoundTableRows> {
  const { lastPageKind: guess = 'mixed' } = table
  const range = keyRangeOf(wanted.keys)
  if (guess === 'new' && range !== null && (await isRangeEmpty(transaction, table, range))) return NO_ROWS
  // Only keys in the order of the table can be compared with a range of it.
  if (guess === 'scattered' || range === null || !isSorted(wanted.keys))
    return findEach(transaction, table, wanted, owner)
  if (guess === 'unchanged') {
    const same = await findUnchanged(transaction, table, wanted, owner, range)
    if (same !== null) return same
  }
  const found = await findRange(transaction, table, wanted, owner, range)
  if (found === null) return findEach(transaction, table, wanted, owner)
  // The range has other rows too, and so probably the next one: their digest would differ again.
  return guess === 'unchanged' ? { ...found, kind: 'mixed' } : found
}

const DATABASE_CONDITION = 'tenant_id = $1 and database_id = $2'

/** True when no row and no tombstone lies between the smallest and the largest key. */
async function isRangeEmpty(
  transaction: Transaction,
  { id, live }: CachedTable,
  { min, max }: KeyRange,
): Promise<boolean> {
  const { isEmpty } = await transaction.one<{ isEmpty: boolean }>(
    `select coalesce((select _key from ${live} l where _key >= $3::text order by _key limit 1) > $4::text, true)
       and coalesce((select key from tidemark.tombstones where ${DATABASE_CONDITION} and key >= $3::text order by key limit 1) > $4::text, true) as "isEmpty"`,
    transaction.tenant,
    id,
    min,
    max,
  )
  return isEmpty
}

const OWNER = '(select owner_id from tidemark.owners where tenant_id = $1 and name = $6)'
const CONTESTS = `exists (select from tidemark.contests where ${DATABASE_CONDITION})`

/** Returns null unless every row exists and is the same: compared by a digest, without sending keys and hashes. */
async function findUnchanged(
  transaction: Transaction,
  { id, live }: CachedTable,
  { keys, hashes, times }: RowLookup,
  owner: string,
  { min, max, count }: KeyRange,
): Promise<FoundTableRows | null> {
  if (hashes.includes(null)) return null
  const answer = transaction.textRows(
    `select case when bool_and(_owner = ${OWNER}) and not ${CONTESTS}
         then sha256(array_send(array_agg(_key)) || array_send(array_agg(_hash)) || array_send(array_agg(_upstream_at))) end,
       array_agg(_sequence)::text, ${OWNER}
     from (select _key, _hash, _upstream_at, _sequence, _owner from ${live} l where _key >= $3::text and _key <= $4::text order by _key limit $5) r`,
    transaction.tenant,
    id,
    min,
    max,
    count + 1,
    owner,
  )
  // Computed while the server computes its own.
  transaction.flush()
  const wanted = hash('sha256', Buffer.concat([textArray(keys), textArray(hashes), binaryArray('timestamptz', times)]))
  const [digest, sequences, ownerId] = required((await answer)[0], 'The digest of the unchanged rows')
  if (digest !== `\\x${wanted}`) return null
  return toUnchangedRows(keys, hashes, times, toNumbers(sequences), Number(ownerId))
}

function isSorted(keys: readonly string[]): boolean {
  return keys.every((key, at) => at === 0 || (keys[at - 1] ?? '') < key)
}

/**
 * Sends keys and hashes, and gets back the sequences, and the whole rows that are not the same: most of a listing is
 * unchanged. One index scan from the smallest key to the largest costs less than a probe per key.
 *
 * Returns null when a key has no row, when the range has too many other rows or a row of another owner, or when there
 * are contests.
 */
async function findRange(
  transaction: Transaction,
  { id, live, members }: CachedTable,
  { keys, hashes, times }: RowLookup,
  owner: string,
  { min, max, count }: KeyRange,
): Promise<FoundTableRows | null> {
  const columns = ['_extra', ...members.map(({ name }) => name)]
  // Arrays are unnested in a select list: in FROM each would first be materialised.
  const [summary, ...others] = await transaction.textRows(
    `with stored as materialized (
       select array_agg(_key) as keys, array_agg(_hash) as hashes, array_agg(_upstream_at) as times, array_agg(_sequence) as sequences,
         min(_owner) as owner_min, max(_owner) as owner_max
       from (
         select _key, _hash, _upstream_at, _sequence, _owner from ${live} l where _key >= $7::text and _key <= $8::text order by _key limit $9
       ) r where _key = any($3::text[])
     )
     select (keys = $3::text[] and owner_min = ${OWNER} and owner_max = ${OWNER} and not ${CONTESTS})::text, sequences::text, owner_min::text,
       null, null, null, null, null${', null'.repeat(columns.length)} from stored
     union all
     select c.n::text, c.sequence::text, '${STATUS_CODES.live}', c.at::text, r._writer::text, r._owner::text, null, c.hash${columns.map((_, at) => `, r.c${at}`).join('')}
     from (
       select unnest(keys) as key, unnest(hashes) as hash, unnest($4::text[]) as wanted_hash, unnest(times) as at, unnest($5::timestamptz[]) as wanted_at,
         unnest(sequences) as sequence, generate_series(1, $10::integer) as n
       from stored where keys = $3::text[]
     ) c cross join lateral (
       select _writer, _owner, ${columns.map((column, at) => `${column} as c${at}`).join(', ')} from ${live} l where _key = c.key limit 1
     ) r where c.hash is distinct from c.wanted_hash or c.at is distinct from c.wanted_at`,
    transaction.tenant,
    id,
    textArray(keys),
    textArray(hashes),
    binaryArray('timestamptz', times),
    owner,
    min,
    max,
    2 * count,
    count,
  )
  const [isAligned, sequences, ownerId] = required(summary, 'The summary of the range')
  if (isAligned !== 'true') return null
  return toFoundRows({ keys, hashes, times }, 'mixed', toNumbers(sequences), Number(ownerId), others)
}

/**
 * Like `findRange`, for keys anywhere in the table. The statement leaves the planner no choice: each row is found through
 * a lateral probe of its whole key.
 */
async function findEach(
  transaction: Transaction,
  { id, live, members }: CachedTable,
  { keys, hashes, times }: RowLookup,
  owner: string,
): Promise<FoundTableRows> {
  // Aliases, because a field may have the name of a column that is added here.
  const columns = ['_hash', '_extra', ...members.map(({ name }) => name)]
  const [summary, ...others] = await transaction.textRows(
    `with wanted as materialized (
       select unnest($3::text[]) collate "C" as key, unnest($4::text[]) as hash, unnest($5::timestamptz[]) as at, generate_series(1, $7::integer) as n
     ),
     span as materialized (select min(key) as low, max(key) as high from wanted),
     there as materialized (
       select coalesce((select key from tidemark.tombstones where ${DATABASE_CONDITION} and key >= (select low from span) order by key limit 1) <= (select high from span), false) as tombstones,
         ${CONTESTS} as contests, ${OWNER} as owner
     ),
     found as materialized (
       select n, sequence, status, at, writer, owner, contested, same, ${columns.map((_, at) => `case when not same then c${at} end as c${at}`).join(', ')}
       from (
         select w.n, coalesce(r._sequence, t.sequence) as sequence, coalesce(t.status, ${STATUS_CODES.live}) as status, coalesce(r._upstream_at, t.upstream_at) as at,
           coalesce(r._writer, t.writer_id) as writer, coalesce(r._owner, t.owner_id) as owner, c.cycle_id as contested,
           coalesce(r.c0 = w.hash and r._upstream_at is not distinct from w.at and r._owner = (select owner from there) and c.cycle_id is null, false) as same,
           ${columns.map((_, at) => `r.c${at}`).join(', ')}
         from wanted w
         left join lateral (
           select _sequence, _upstream_at, _writer, _owner, ${columns.map((column, at) => `${column} as c${at}`).join(', ')} from ${live} l where _key = w.key limit 1
         ) r on true
         left join lateral (
           select sequence, status, upstream_at, writer_id, owner_id from tidemark.tombstones
           where ${DATABASE_CONDITION} and key = w.key and r._sequence is null and (select tombstones from there) limit 1
         ) t on true
         left join lateral (
           select cycle_id from tidemark.contests where ${DATABASE_CONDITION} and key = w.key and (select contests from there) limit 1
         ) c on true
         offset 0
       ) compared
     )
     select null, array_agg(case when same then sequence else 0 end)::text, (select owner from there)::text, null, null, null, null${', null'.repeat(columns.length)} from found
     union all
     select n::text, sequence::text, status::text, at::text, writer::text, owner::text, contested::text, ${columns.map((_, at) => `c${at}`).join(', ')}
     from found where not same and sequence is not null`,
    transaction.tenant,
    id,
    textArray(keys),
    textArray(hashes),
    binaryArray('timestamptz', times),
    owner,
    keys.length,
  )
  const [, sequences, ownerId] = required(summary, 'The summary of the found rows')
  return toFoundRows({ keys, hashes, times }, 'scattered', toNumbers(sequences), Number(ownerId), others)
}

type FoundRowValues = [
  n: string,
  sequence: string,
  status: string,
  upstreamAt: string | null,
  writer: string,
  owner: string,
  contestedBy: string | null,
  hash: string | null,
  extra: string | null,
  ...values: Array<string | null>,
]

/** The sequences are those of the keys, 0 for a key without a row that is the same. `others` are all other rows. */
function toFoundRows(
  { keys, hashes, times }: RowLookup,
  kind: 'mixed' | 'scattered',
  sequences: number[],
  owner: number,
  others: ReadonlyArray<ReadonlyArray<string | null>>,
): FoundTableRows {
  if (others.length === 0 && !sequences.includes(0)) return toUnchangedRows(keys, hashes, times, sequences, owner)
  const rows = new Map<string, StoredRow>()
  const records = new Map<string, StoredRecord>()
  for (const [at, key] of keys.entries()) {
    const sequence = sequences[at] ?? 0
    if (sequence > 0) rows.set(key, toUnchangedRow(sequence, hashes[at] ?? null, times[at] ?? null, owner))
  }
  for (const other of others) {
    const [n, sequence, status, at, writer, ownerId, contested, hash, extra, ...values] = other as FoundRowValues
    const key = required(keys[Number(n) - 1], 'The key of a found row')
    rows.set(key, {
      sequence: Number(sequence),
      status: required(STATUS_BY_CODE[Number(status)], 'A known row status'),
      hash,
      upstreamAt: toInstant(at),
      writer: Number(writer),
      owner: Number(ownerId),
      contestedBy: contested === null ? null : Number(contested),
    })
    records.set(key, { sequence: Number(sequence), extra, values })
  }
  if (rows.size === 0) return NO_ROWS
  return { kind, get: (key) => rows.get(key), recordOf: (key) => records.get(key), unchanged: null }
}

function toNumbers(array: string | null | undefined): number[] {
  return array == null ? [] : array.slice(1, -1).split(',').map(Number)
}
