import { hash } from 'node:crypto'
import { keyRangeOf } from '../kit/key-range.ts'
import type { StoredRow } from '../kit/resolve-landing.ts'
import { textArray } from './binary-arrays.ts'
import { binaryArray } from './binary-values.ts'
import type { Transaction } from './connection.ts'
import { NO_ROWS, UnchangedRows, type FoundTableRows, type RowLookup } from './found-rows.ts'
import type { Table } from './table.ts'
import { required } from '../../values/required.ts'

/**
 * Looks up a page by the range from its smallest key to its largest. One index scan costs less than a probe per key, as
 * long as the range holds few rows outside the page.
 */

const OWNER = '(select owner_id from tidemark.owners where tenant_id = $1 and name = $6)'
const CONTESTS = 'exists (select from tidemark.contests where tenant_id = $1 and database_id = $2)'

/** Parameters: tenant, database, smallest and largest key, the number of rows at most, the owner's name. */
function rangeSql(live: string): string {
  return `(select _key, _hash, _upstream_at, _sequence, _writer, _owner from ${live} l where _key >= $3::text and _key <= $4::text order by _key limit $5)`
}

/** Returns null unless every row exists and is the same: compared by a digest, without sending keys and hashes. */
export async function findUnchanged(
  transaction: Transaction,
  { id, live }: Pick<Table, 'id' | 'live'>,
  { keys, hashes, times }: RowLookup,
  owner: string,
): Promise<FoundTableRows | null> {
  const range = keyRangeOf(keys)
  if (range === null || hashes.includes(null) || !isSorted(keys)) return null
  const [found] = await transaction.textRows(
    `select case when bool_and(_owner = ${OWNER}) and not ${CONTESTS}
         then sha256(array_send(array_agg(_key)) || array_send(array_agg(_hash)) || array_send(array_agg(_upstream_at))) end,
       array_agg(_sequence)::text, ${OWNER}
     from ${rangeSql(live)} r`,
    transaction.tenant,
    id,
    range.min,
    range.max,
    range.count + 1,
    owner,
  )
  const [digest, sequences, ownerId] = required(found, 'The digest of the unchanged rows')
  const sent = Buffer.concat([textArray(keys), textArray(hashes), binaryArray('timestamptz', times)])
  if (digest !== `\\x${hash('sha256', sent)}`) return null
  return new UnchangedRows(keys, hashes, times, toNumbers(sequences ?? null, keys.length), Number(ownerId))
}

/** Returns null when the range has too many other rows, or tombstones or contests that the page may need. */
export async function findRange(
  transaction: Transaction,
  { id, live }: Pick<Table, 'id' | 'live'>,
  { keys, hashes, times }: RowLookup,
  owner: string,
): Promise<FoundTableRows | null> {
  const range = keyRangeOf(keys)
  if (range === null) return null
  const [found] = await transaction.textRows(
    `select count(*), array_send(array_agg(_key)), array_send(array_agg(_hash)), array_send(array_agg(_upstream_at)), array_agg(_sequence)::text,
       case when min(_writer) = max(_writer) then min(_writer)::text else array_agg(_writer)::text end,
       case when min(_owner) = max(_owner) then min(_owner)::text else array_agg(_owner)::text end,
       exists (select from tidemark.tombstones where tenant_id = $1 and database_id = $2 and key >= $3::text and key <= $4::text), ${CONTESTS}, ${OWNER}
     from ${rangeSql(live)} r`,
    transaction.tenant,
    id,
    range.min,
    range.max,
    2 * range.count + 1,
    owner,
  )
  const values = required(found, 'The rows of the range')
  const count = Number(values[0])
  const [hasTombstones, hasContests] = [values[7] === 't', values[8] === 't']
  if (count > 2 * range.count || hasContests) return null
  if (count === 0) return hasTombstones ? null : NO_ROWS
  const [storedKeys, storedHashes, storedTimes] = [toBytes(values[1]), toBytes(values[2]), toBytes(values[3])]
  const sequences = toNumbers(values[4] ?? null, count)
  const [writers, owners] = [toNumbers(values[5] ?? null, count), toNumbers(values[6] ?? null, count)]
  const givenTimes = binaryArray('timestamptz', times)
  const isAligned = storedKeys.equals(textArray(keys))
  const ownerId = Number(values[9])
  if (
    isAligned &&
    owners.every((one) => one === ownerId) &&
    storedTimes.equals(givenTimes) &&
    storedHashes.equals(textArray(hashes))
  )
    return new UnchangedRows(keys, hashes, times, sequences, ownerId)

  const hashTexts = readTexts(storedHashes, count)
  const [storedStarts, givenStarts] = [elementStarts(storedTimes, count), elementStarts(givenTimes, keys.length)]
  const indexes = isAligned ? null : new Map(readTexts(storedKeys, count).map((key, at) => [key, at]))
  const rows = new Map<string, StoredRow>()
  for (const [n, key] of keys.entries()) {
    const at = indexes === null ? n : indexes.get(key)
    if (at === undefined) {
      if (hasTombstones) return null
      continue
    }
    const [stored, given] = [storedStarts[at] ?? 0, givenStarts[n] ?? 0]
    rows.set(key, {
      sequence: sequences[at] ?? 0,
      status: 'live',
      hash: hashTexts[at] ?? null,
      upstreamAt: isSameTime(storedTimes, stored, givenTimes, given)
        ? (times[n] ?? null)
        : readTime(storedTimes, stored),
      writer: writers[at] ?? 0,
      owner: owners[at] ?? 0,
      contestedBy: null,
    })
  }
  return rows.size === 0 ? NO_ROWS : { kind: 'mixed', get: (key) => rows.get(key), unchanged: null }
}

function isSorted(keys: readonly string[]): boolean {
  return keys.every((key, at) => at === 0 || (keys[at - 1] ?? '') < key)
}

/** A single number stands for all of them. */
function toNumbers(text: string | null, count: number): number[] {
  if (text === null) return []
  if (text.startsWith('{')) return text.slice(1, -1).split(',').map(Number)
  const number = Number(text)
  return Array.from({ length: count }, () => number)
}

function toBytes(hex: string | null | undefined): Buffer {
  return Buffer.from(required(hex, 'The values of a range').slice(2), 'hex')
}

const HEADER_BYTES = 20

/** Where the length of each element of a binary array begins. */
function elementStarts(array: Buffer, count: number): Int32Array {
  const starts = new Int32Array(count)
  for (let n = 0, at = HEADER_BYTES; n < count; n++) {
    starts[n] = at
    at += 4 + Math.max(0, array.readInt32BE(at))
  }
  return starts
}

function readTexts(array: Buffer, count: number): string[] {
  const texts: string[] = []
  for (const start of elementStarts(array, count))
    texts.push(array.toString('utf8', start + 4, start + 4 + array.readInt32BE(start)))
  return texts
}

function isSameTime(a: Buffer, atA: number, b: Buffer, atB: number): boolean {
  const length = a.readInt32BE(atA)
  if (length !== b.readInt32BE(atB)) return false
  return (
    length === -1 ||
    (a.readInt32BE(atA + 4) === b.readInt32BE(atB + 4) && a.readInt32BE(atA + 8) === b.readInt32BE(atB + 8))
  )
}

const EPOCH_2000_MICROS = 946_684_800_000_000n

/** A stored time as canonical text. */
function readTime(array: Buffer, at: number): string | null {
  if (array.readInt32BE(at) === -1) return null
  const micros = array.readBigInt64BE(at + 4) + EPOCH_2000_MICROS
  const rest = ((micros % 1_000n) + 1_000n) % 1_000n
  const text = new Date(Number((micros - rest) / 1_000n)).toISOString()
  return `${text.slice(0, 23)}${String(rest).padStart(3, '0')}Z`
}
