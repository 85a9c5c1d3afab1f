import type { Commit, Landing } from '../../contract/index.ts'
import type { StoredRow } from '../kit/judge.ts'
import { noCounts, type LandingPlan } from '../kit/plan-landing.ts'
import type { Session } from './connection.ts'
import { STATUS_OF } from './encoding.ts'

/**
 * Looking up the rows that a page is about. A call per row costs more than landing it, and most pages lie side by side in
 * the table: a first load where nothing is, a re-reading where the same keys are. So the stretch from a page's smallest
 * key to its largest is read at once, as long as it holds not many more rows than the page.
 */

interface Stretch {
  readonly least: string
  readonly most: string
  readonly count: number
}

type RowValues = [key: string, position: number, status: number, hash: string | null, upstreamAt: string | null, writer: number, owner: number]

const COLUMNS = 'key, position, status, hash, upstream_at, writer_id, owner_id'

export function findRows(session: Session, databases: ReadonlyMap<string, number>, commit: Commit): (landing: Landing) => StoredRow | undefined {
  const { connection, tenantId, base } = session
  const known = new Map<string, ReadonlyMap<string, RowValues>>()
  for (const [name, id] of databases) {
    const stretch = stretchOf([...commit.landings, ...commit.quarantined].filter((item) => item.database === name).map((item) => item.key))
    if (stretch === null) continue
    const rows = connection.prepareArrays(
      `select ${COLUMNS} from tidemark_rows where tenant_id = ? and database_id = ? and key between ? and ? limit ?`,
    ).all(tenantId, id, stretch.least, stretch.most, 2 * stretch.count + 1) as unknown as RowValues[]
    if (rows.length <= 2 * stretch.count) known.set(name, new Map(rows.map((row) => [row[0], row])))
  }
  const one = connection.prepareArrays(`select ${COLUMNS} from tidemark_rows where tenant_id = ? and database_id = ? and key = ?`)
  return ({ database, key }) => {
    const rows = known.get(database)
    const row = rows === undefined ? (one.get(tenantId, databases.get(database)!, key) as unknown as RowValues | undefined) : rows.get(key)
    if (row === undefined) return undefined
    const [, position, status, hash, upstreamAt, writer, owner] = row
    return { sequence: position - base, status: STATUS_OF[status]!, hash, upstreamAt, writer, owner }
  }
}

/**
 * The plan for a page of which nothing has changed, or null. The database strings the page's hashes, times and keys
 * together and hands over one text; were it a thousand rows, reading them would cost four times as much. The keys too: of
 * records that are all alike, one may have gone and another come.
 */
export function planUnchanged(
  session: Session, databases: ReadonlyMap<string, number>, commit: Commit, facts: { owner: number; position: number },
): LandingPlan | null {
  const { landings } = commit
  const [database] = databases.keys()
  if (databases.size !== 1 || commit.quarantined.length > 0 || landings.some((landing) => landing.type === 'delete')) return null
  const stretch = stretchOf(landings.map((landing) => landing.key))
  if (stretch === null) return null

  const found = session.connection.get<{ count: number; ours: number; stamps: string | null; first: number; last: number }>(
    `select count(*) as count, sum(status = 0 and owner_id = ?) as ours, group_concat(hash || coalesce(upstream_at, '-') || length(key) || ':' || key, '') as stamps,
       min(position) as first, max(position) as last
     from (select key, status, owner_id, hash, upstream_at, position from tidemark_rows
       where tenant_id = ? and database_id = ? and key between ? and ? order by key limit ?)`,
    facts.owner, session.tenantId, databases.get(database!)!, stretch.least, stretch.most, stretch.count + 1,
  )!
  // Side by side in the log as well: then they are one range of what the cycle saw, and need not be told one by one.
  if (found.count !== stretch.count || found.ours !== found.count || found.last - found.first + 1 !== found.count) return null
  if (found.stamps !== stampsOf(landings)) return null
  const first = found.first - session.base
  return {
    writes: [], touches: [], sightings: [], overlap: [], position: facts.position,
    seen: Array.from({ length: found.count }, (_, at) => first + at),
    counts: { ...noCounts(), unchanged: found.count },
  }
}

function stampsOf(landings: readonly Landing[]): string {
  const sorted = isSorted(landings) ? landings : landings.toSorted((a, b) => (a.key < b.key ? -1 : 1))
  let stamps = ''
  for (const landing of sorted) if (landing.type === 'upsert') stamps += `${landing.hash}${landing.upstreamAt ?? '-'}${landing.key.length}:${landing.key}`
  return stamps
}

/** Null when the keys cannot be taken as a stretch: too few, or JavaScript and SQLite would order them differently. */
function stretchOf(keys: ReadonlyArray<string | null>): Stretch | null {
  if (keys.length < 2) return null
  let [least, most] = [keys[0] ?? '', keys[0] ?? '']
  for (const key of keys) {
    // One orders by UTF-16 units, the other by bytes; they agree below the surrogates.
    if (key === null || BEYOND.test(key)) return null
    if (key < least) least = key
    else if (key > most) most = key
  }
  return { least, most, count: keys.length }
}

const BEYOND = /[\ud800-\uffff]/

export function isSorted(landings: readonly { readonly key: string }[]): boolean {
  for (let at = 1; at < landings.length; at++) if (landings[at]!.key < landings[at - 1]!.key) return false
  return true
}
