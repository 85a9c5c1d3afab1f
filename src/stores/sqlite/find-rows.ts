import type { Commit, Landing } from '../../contract/index.ts'
import { keyRangeOf, type KeyRange } from '../kit/key-range.ts'
import type { StoredRow } from '../kit/resolve-landing.ts'
import { createEmptyCounts, type LandingPlan } from '../kit/plan-landing.ts'
import type { TenantSession } from './connection.ts'
import { STATUS_CODES, STATUS_BY_CODE } from './stored-codes.ts'
import { tableOf, type Table } from './table.ts'
import { required } from '../../values/required.ts'

/**
 * Looks up the stored rows of a page. One call per row costs more than landing it, and the keys of most pages are
 * adjacent in the table: a first load where no rows exist, or a listing of the same keys. So the range from a page's
 * smallest key to its largest is read at once, as long as it holds few rows outside the page.
 */

type RowValues = [
  key: string,
  sequence: number,
  hash: string | null,
  upstreamAt: string | null,
  writer: number,
  owner: number,
  status: number,
]

const ROW_COLUMNS = `_key, _sequence, _hash, _upstream_at, _writer, _owner, ${STATUS_CODES.live}`
const TOMBSTONE_COLUMNS = 'key, sequence, null, upstream_at, writer_id, owner_id, status'

/** Returns the stored row of each key: the current row, or else the tombstone. */
export function findRows(
  session: TenantSession,
  tables: ReadonlyMap<string, Table>,
  commit: Commit,
): (landing: Landing) => StoredRow | undefined {
  const { connection, tenantId } = session
  const known = new Map<string, RowFinder>()
  for (const table of tables.values()) {
    const keys = [...commit.landings, ...commit.quarantined]
      .filter(({ database }) => database === table.database)
      .map(({ key }) => key)
    const range = keyRangeOf(keys)
    const rows = createLiveFinder(session, table, range)
    const tombstones =
      connection.get(
        'select 1 from tidemark_tombstones where tenant_id = ? and database_id = ? limit 1',
        tenantId,
        table.id,
      ) === undefined
        ? () => undefined
        : createTombstoneFinder(session, table, range)
    const contests = readContests(session, table)
    known.set(table.database, (key) => {
      const row = rows(key) ?? tombstones(key)
      const contestedBy = contests?.get(key)
      return row === undefined || contestedBy === undefined ? row : { ...row, contestedBy }
    })
  }
  return ({ database, key }) => tableOf(known, database)(key)
}

type RowFinder = (key: string) => StoredRow | undefined

function toStoredRow([, sequence, hash, upstreamAt, writer, owner, status]: RowValues): StoredRow {
  const name = required(STATUS_BY_CODE[status], 'A known row status')
  return { sequence, status: name, hash, upstreamAt, writer, owner, contestedBy: null }
}

function toFinder(find: (key: string) => RowValues | undefined): RowFinder {
  return (key) => {
    const row = find(key)
    return row === undefined ? undefined : toStoredRow(row)
  }
}

function createLiveFinder({ connection }: TenantSession, { live }: Table, range: KeyRange | null): RowFinder {
  if (range !== null) {
    const [count = 0, isAscii, packed] =
      connection.tuple<[count: number, isAscii: number | null, packed: string | null]>(
        `select count, length(packed) = octet_length(packed), packed from (select count(*) as count, group_concat(${PACKED_ROW}, '') as packed
         from (select * from ${live} where _key between ? and ? limit ?))`,
        range.min,
        range.max,
        2 * range.count + 1,
      ) ?? []
    if (count <= 2 * range.count && isAscii !== 0) {
      const found = unpackRows(packed ?? '')
      return (key) => found.get(key)
    }
  }
  return toFinder((key) => connection.tuple<RowValues>(`select ${ROW_COLUMNS} from ${live} where _key = ?`, key))
}

/**
 * The rows of a range as one text: reading a thousand rows of six values costs twice as much. The lengths are correct
 * only in ASCII: elsewhere SQLite counts code points, and up to the first NUL.
 */
const PACKED_ROW =
  "concat(length(_hash), ',', length(_key), ',', _sequence, ',', _writer, ',', _owner, ',', _upstream_at, ';', _hash, _key)"
const COMMA = 44

function unpackRows(packed: string): Map<string, StoredRow> {
  const rows = new Map<string, StoredRow>()
  let at = 0
  const readNumber = (): number => {
    let number = 0
    for (let code = packed.charCodeAt(at++); code !== COMMA; code = packed.charCodeAt(at++))
      number = number * 10 + code - 48
    return number
  }
  while (at < packed.length) {
    const [hashLength, keyLength, sequence, writer, owner] = [
      readNumber(),
      readNumber(),
      readNumber(),
      readNumber(),
      readNumber(),
    ]
    const timeEnd = packed.indexOf(';', at)
    const upstreamAt = timeEnd === at ? null : packed.slice(at, timeEnd)
    const hashEnd = timeEnd + 1 + hashLength
    at = hashEnd + keyLength
    const hash = packed.slice(timeEnd + 1, hashEnd)
    rows.set(packed.slice(hashEnd, at), {
      sequence,
      status: 'live',
      hash,
      upstreamAt,
      writer,
      owner,
      contestedBy: null,
    })
  }
  return rows
}

function createTombstoneFinder(
  { connection, tenantId }: TenantSession,
  { id }: Table,
  range: KeyRange | null,
): RowFinder {
  const from = `select ${TOMBSTONE_COLUMNS} from tidemark_tombstones where tenant_id = ? and database_id = ?`
  if (range !== null) {
    const rows = connection.tuples<RowValues>(
      `${from} and key between ? and ? limit ?`,
      tenantId,
      id,
      range.min,
      range.max,
      2 * range.count + 1,
    )
    if (rows.length <= 2 * range.count) {
      const found = new Map(rows.map((row) => [row[0], row]))
      return toFinder((key) => found.get(key))
    }
  }
  return toFinder((key) => connection.tuple<RowValues>(`${from} and key = ?`, tenantId, id, key))
}

/** Returns null when no version of the database is contested, which is the usual case. */
function readContests({ connection, tenantId }: TenantSession, { id }: Table): Map<string, number> | null {
  const rows = connection.all<{ key: string; cycle: number }>(
    'select key, cycle_id as cycle from tidemark_contests where tenant_id = ? and database_id = ?',
    tenantId,
    id,
  )
  return rows.length === 0 ? null : new Map(rows.map(({ key, cycle }) => [key, cycle]))
}

/**
 * Returns the plan for a page without any change, or null. The database concatenates the hashes, times and keys into
 * one text; reading them as a thousand rows would cost four times as much. Keys are included, because among equal
 * records one may have been replaced by another.
 */
export function planUnchanged(
  session: TenantSession,
  tables: ReadonlyMap<string, Table>,
  commit: Commit,
  facts: { owner: number; headSequence: number },
): LandingPlan | null {
  const { landings } = commit
  const [table] = tables.values()
  if (
    table === undefined ||
    tables.size !== 1 ||
    commit.quarantined.length > 0 ||
    landings.some((landing) => landing.type === 'delete')
  )
    return null
  const range = keyRangeOf(landings.map((landing) => landing.key))
  if (range === null || readContests(session, table) !== null) return null

  const found = session.connection.one<{
    count: number
    ours: number
    fingerprint: string | null
    first: number
    last: number
  }>(
    `select count(*) as count, sum(_owner = ?) as ours, group_concat(_hash || coalesce(_upstream_at, '-') || length(_key) || ':' || _key, '') as fingerprint,
       min(_sequence) as first, max(_sequence) as last
     from (select _key, _owner, _hash, _upstream_at, _sequence from ${table.live} where _key between ? and ? order by _key limit ?)`,
    facts.owner,
    range.min,
    range.max,
    range.count + 1,
  )
  // Consecutive in the log as well: the rows are then a single range of seen sequences.
  if (found.count !== range.count || found.ours !== found.count || found.last - found.first + 1 !== found.count)
    return null
  if (found.fingerprint !== fingerprintOf(landings)) return null
  return {
    writes: [],
    touches: [],
    contests: [],
    keysToLookUp: [],
    sightings: [],
    overlapKeys: [],
    headSequence: facts.headSequence,
    seenSequences: Array.from({ length: found.count }, (_, at) => found.first + at),
    counts: { ...createEmptyCounts(), unchanged: found.count },
  }
}

function fingerprintOf(landings: readonly Landing[]): string {
  const sorted = isSorted(landings) ? landings : landings.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  let fingerprint = ''
  for (const landing of sorted)
    if (landing.type === 'upsert')
      fingerprint += `${landing.hash}${landing.upstreamAt ?? '-'}${landing.key.length}:${landing.key}`
  return fingerprint
}

function isSorted(landings: readonly { readonly key: string }[]): boolean {
  let previous: string | null = null
  for (const { key } of landings) {
    if (previous !== null && key < previous) return false
    previous = key
  }
  return true
}
