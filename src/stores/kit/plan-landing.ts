import type { ChangeAction, Commit, Landing, LandingCounts } from '../../contract/index.ts'
import { compareInstants, instantToMs } from '../../values/instant.ts'
import { resolveLanding, type StoredRow, type Resolution } from './resolve-landing.ts'
import { required } from '../../values/required.ts'

/** The writes of one commit, decided before any of them is made; every store executes the same plan. */
export interface LandingPlan {
  /**
   * Ordered by database and key, regardless of the page's order; `sequence` is assigned where the log gets an entry.
   */
  readonly writes: RowWrite[]
  readonly touches: RowTouch[]
  /** Rows that keep their version, with the last cycle that contradicted it; null when a cycle agreed. */
  readonly contests: RowContest[]
  /** Contested keys that must be looked up at the source. If there are any, nothing may be written. */
  readonly keysToLookUp: string[]
  /**
   * Sequences of live rows that this page confirmed without changing them. Neither this cycle nor a concurrent one may
   * sweep them: the other listing may have passed the key before the row existed.
   */
  readonly seenSequences: number[]
  /** Rows of another owner that a replace cycle returned. */
  readonly sightings: Landing[]
  readonly counts: LandingCounts
  /** Keys whose two reads cannot be ordered. If there are any, nothing may be written. */
  readonly overlapKeys: string[]
  /** The tenant's head sequence after the plan is executed. */
  readonly headSequence: number
}

/** A version to write. */
export interface RowWrite {
  readonly landing: Landing
  /** Null for a tombstone of an unknown key: no log entry. */
  readonly action: ChangeAction | null
  readonly sequence: number
  readonly row: StoredRow | undefined
}

/** A live row takes the landing's hash; a touched tombstone becomes `deleted`, even if it was `swept`. */
export interface RowTouch {
  readonly landing: Landing
  readonly upstreamAt: string | null
}

/** A stored version that a listing contradicts, with the cycle that did so; null ends the contest. */
export interface RowContest {
  readonly landing: Landing
  readonly contestedBy: number | null
}

/** The facts that `planLanding` needs besides the commit. */
export interface LandingFacts {
  readonly writer: number
  readonly owner: number
  readonly headSequence: number
  /** The cycle sweeps at its end, so it must record the rows it saw. */
  readonly sweeps: boolean
  /** The commit's cycle; null for a replay. */
  readonly cycle: number | null
  /** True when another owner also lists the key of this live row: the later source time decides between the two. */
  isShared(landing: Landing, row: StoredRow): boolean
  /** True when a cycle that contested a row completed; an incomplete one may have missed a later page that agrees. */
  isComplete(cycle: number): boolean
  find(landing: Landing): StoredRow | undefined
  /** True when a live row holds this record, possibly with its fields in another order. */
  isSame(landing: Extract<Landing, { type: 'upsert' }>, row: StoredRow): boolean
}

/** Resolves every landing of a commit against the stored rows. A store only carries out the plan. */
export function planLanding(commit: Commit, facts: LandingFacts): LandingPlan {
  const writes: RowWrite[] = []
  const touches: RowTouch[] = []
  const seenSequences: number[] = []
  const sightings: Landing[] = []
  const overlapKeys: string[] = []
  const contests: RowContest[] = []
  const keysToLookUp: string[] = []
  const counts = createEmptyCounts()
  const read = {
    writer: facts.writer,
    readFrom: commit.readAtSequence,
    upstreamToleranceMs: commit.upstreamToleranceMs,
    // The records of a repair are the source's current ones, and those of changed rules the stored ones.
    isListing:
      (facts.sweeps || commit.transition.kind === 'repair' || commit.transition.kind === 'columns') &&
      commit.listing !== undefined,
  }
  const resolveContest = createContestResolver(commit, facts)
  let { headSequence } = facts

  for (const landing of sortLandings(commit.landings)) {
    const row = facts.find(landing)
    let resolution = resolveLanding(landing, row, read)
    if (resolution === 'overlap' && commit.isHistoricalLog === true) resolution = 'stale'
    if (resolution === 'update' && row !== undefined && isSameRecord(landing, row, facts)) resolution = 'touch'
    if (mustRelog(resolution, landing, row, commit, facts.writer)) resolution = toRelogResolution(resolution, landing)
    if (resolution === 'contest') {
      const contested = required(row, 'The contested row')
      const outcome = resolveContest(landing, contested)
      if (outcome === 'ask') keysToLookUp.push(landing.key)
      if (outcome === 'open') contests.push({ landing, contestedBy: facts.cycle })
      if (outcome === 'loses' && contested.contestedBy !== null) contests.push({ landing, contestedBy: null })
      resolution = outcome === 'wins' ? resolveWonContest(landing, contested) : outcome === 'same' ? 'touch' : 'stale'
    }
    switch (resolution) {
      case 'create':
        writes.push({ landing, action: 'created', sequence: ++headSequence, row })
        counts.created++
        break
      case 'update':
        writes.push({ landing, action: 'updated', sequence: ++headSequence, row })
        counts.updated++
        break
      case 'delete':
        writes.push({ landing, action: 'deleted', sequence: ++headSequence, row })
        counts.deleted++
        break
      case 'tombstone':
        writes.push({ landing, action: null, sequence: headSequence, row })
        counts.missing++
        break
      case 'touch':
        touches.push({ landing, upstreamAt: maxInstant(landing.upstreamAt, row?.upstreamAt ?? null) })
        if (landing.type === 'upsert') counts.unchanged++
        else counts.missing++
        break
      case 'same':
        if (read.isListing && isStoredTimeInFuture(landing, row, commit))
          touches.push({ landing, upstreamAt: landing.upstreamAt })
        else if (isContested(row)) contests.push({ landing, contestedBy: null })
        counts.unchanged++
        break
      case 'stale':
        counts.stale++
        break
      case 'gone':
        if (isContested(row)) contests.push({ landing, contestedBy: null })
        counts.missing++
        break
      case 'overlap':
        overlapKeys.push(landing.key)
        break
      default:
        resolution satisfies never
    }
    if (landing.type === 'upsert' && row?.status === 'live') {
      // A stale row counts as seen too: the source lists the key, whichever version is stored.
      if (resolution === 'same' || resolution === 'touch' || resolution === 'stale') seenSequences.push(row.sequence)
      if (facts.sweeps && row.owner !== facts.owner) sightings.push(landing)
    }
  }
  // A quarantined record is still listed by the source, so its row must not be swept.
  for (const { database, key } of commit.quarantined) {
    if (key === null) continue
    const row = facts.find({ type: 'delete', database, key, upstreamAt: null })
    if (row?.status === 'live') seenSequences.push(row.sequence)
  }
  counts.quarantined = commit.quarantined.length
  return { writes, touches, contests, keysToLookUp, seenSequences, sightings, counts, overlapKeys, headSequence }
}

/**
 * True for a page of a listing that finds every row as it is. Only its checkpoint and the rows that it saw are written,
 * so a store need not wait for the disk: after a power cut the page is read again, and no reader has seen anything of it.
 * The states of other cycles may acknowledge what was read, and must be durable.
 */
export function mayBeUndone(
  { writes, touches, contests, counts }: LandingPlan,
  commit: Commit,
  sweeps: boolean,
): boolean {
  return (
    sweeps &&
    commit.transition.kind === 'continue' &&
    writes.length + touches.length + contests.length + counts.quarantined === 0
  )
}

type ContestOutcome = 'wins' | 'loses' | 'same' | 'open' | 'waits' | 'ask'

/**
 * Resolves a contest; see ListingContext. `open` and `waits` leave it to the next cycle, and the stored version stays
 * until then.
 */
function createContestResolver(
  { listing }: Commit,
  facts: LandingFacts,
): (landing: Landing, row: StoredRow) => ContestOutcome {
  const settledSequence = listing?.settledSequence ?? -1
  const answers = listing?.lookupAnswers
  const confirmed = new Set(answers?.confirmed)
  const refuted = new Set(answers?.refuted)
  return (landing, row) => {
    if (row.status === 'live' && isSameRecord(landing, row, facts)) return 'same'
    if (row.status === 'live' && facts.isShared(landing, row)) return 'loses'
    if (listing?.lookupDatabase === landing.database) return 'ask'
    if (answers?.database === landing.database) {
      if (confirmed.has(landing.key)) return 'wins'
      if (refuted.has(landing.key)) return 'loses'
    }
    if (row.contestedBy === null || row.contestedBy === facts.cycle || !facts.isComplete(row.contestedBy)) return 'open'
    return row.sequence <= settledSequence ? 'wins' : 'waits'
  }
}

function resolveWonContest({ type }: Landing, { status }: StoredRow): 'create' | 'update' | 'delete' {
  if (type === 'delete') return 'delete'
  return status === 'live' ? 'update' : 'create'
}

/** Records that differ only in the order of their fields are equal. */
function isSameRecord(landing: Landing, row: StoredRow, facts: LandingFacts): boolean {
  return landing.type === 'upsert' && facts.isSame(landing, row)
}

/**
 * The stored time is in the future, and a later read of the same content has an older one, so the stored time was
 * wrong. Keeping it would make every change until then look old.
 */
function isStoredTimeInFuture(
  { upstreamAt }: Landing,
  row: StoredRow | undefined,
  { at, readAtSequence }: Commit,
): boolean {
  if (upstreamAt === null || row === undefined || row.upstreamAt === null || row.sequence > readAtSequence) return false
  return upstreamAt < row.upstreamAt && instantToMs(row.upstreamAt) > at
}

/**
 * A change that is repeated while a listing runs must get a new sequence, or a page that the listing read earlier would
 * count as the later read. Source times decide where they exist, except between equal ones. So a row is logged again
 * when its time advances, and when another sync wrote it before the listing began and the same time is repeated.
 */
function mustRelog(
  resolution: Resolution,
  landing: Landing,
  row: StoredRow | undefined,
  commit: Commit,
  writer: number,
): boolean {
  const { forceLogSince, upstreamToleranceMs } = commit
  if (forceLogSince === undefined) return false
  if (landing.upstreamAt === null) return !(row?.writer === writer && row.sequence > forceLogSince)
  if (landing.type === 'delete') return false
  if (resolution === 'touch') return true
  if (resolution !== 'same' || row === undefined || row.upstreamAt === null) return false
  if (compareInstants(landing.upstreamAt, row.upstreamAt, upstreamToleranceMs) !== 0) return false
  return landing.upstreamAt !== row.upstreamAt || (row.writer !== writer && row.sequence <= forceLogSince)
}

function toRelogResolution(resolution: Resolution, { type }: Landing): Resolution {
  if (type === 'upsert') return resolution === 'same' || resolution === 'touch' ? 'update' : resolution
  return resolution === 'gone' || resolution === 'tombstone' || resolution === 'touch' ? 'delete' : resolution
}

/**
 * Sorted by database and key: the feed's order is that of the commits and, within one, of the keys (A9), so either
 * identifies a cursor. Most sources list by key, and then no sort is needed.
 */
function sortLandings(landings: readonly Landing[]): readonly Landing[] {
  let previous: Landing | null = null
  for (const landing of landings) {
    if (previous !== null && compareLandings(previous, landing) > 0) return landings.toSorted(compareLandings)
    previous = landing
  }
  return landings
}

function compareLandings(a: Landing, b: Landing): number {
  return a.database === b.database ? compareBytes(a.key, b.key) : compareBytes(a.database, b.database)
}

/**
 * Compares like a database does. JavaScript compares UTF-16 units, which differs for surrogate pairs against code
 * points above them.
 */
function compareBytes(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  let at = 0
  while (at < length && a.charCodeAt(at) === b.charCodeAt(at)) at++
  if (at === length) return a.length - b.length
  const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)]
  return isSurrogate(x) === isSurrogate(y) ? x - y : isSurrogate(x) ? 1 : -1
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff
}

/** Returns counts of zero. */
export function createEmptyCounts(): LandingCounts {
  return { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
}

/** Merges sequences into closed ranges: a page that was landed in one commit is a single pair. */
export function toSequenceRanges(sequences: readonly number[]): Array<[number, number]> {
  const ranges: Array<[number, number]> = []
  let last: [number, number] | undefined
  for (const sequence of sequences.toSorted((a, b) => a - b)) {
    if (last !== undefined && sequence <= last[1] + 1) last[1] = sequence
    else ranges.push((last = [sequence, sequence]))
  }
  return ranges
}

/** Sorts the ranges, and merges those that touch. */
export function mergeRanges(ranges: ReadonlyArray<[number, number]>): Array<[number, number]> {
  const merged: Array<[number, number]> = []
  for (const [first, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = merged.at(-1)
    if (last !== undefined && first <= last[1] + 1) last[1] = Math.max(last[1], end)
    else merged.push([first, end])
  }
  return merged
}

/**
 * Invariant 11: true when the sweep would delete more of the rows that existed at the start of the cycle than the limit
 * allows.
 */
export function exceedsDeleteLimit(
  sweep: { maxShare: number; allowEmpty: boolean },
  existed: number,
  toDelete: number,
): boolean {
  if (toDelete === 0) return false
  return toDelete >= existed ? !sweep.allowEmpty : toDelete > existed * sweep.maxShare
}

/** Number of rows at the start of the cycle from which on the limit allows these deletes: no need to count further. */
export function countToAllowDeletes({ maxShare }: { maxShare: number }, toDelete: number): number {
  return Math.min(Math.max(toDelete, Math.ceil(toDelete / maxShare)) + 1, Number.MAX_SAFE_INTEGER)
}

/**
 * Picks at most `limit` items at equal distances, so that a page missing from a listing is represented wherever it was.
 */
export function sampleEvenly<Item>(items: readonly Item[], limit: number): Item[] {
  if (items.length <= limit) return [...items]
  return Array.from({ length: limit }, (_, at) =>
    required(items[Math.floor((at * items.length) / limit)], 'A sampled item'),
  )
}

function isContested(row: StoredRow | undefined): boolean {
  return (row?.contestedBy ?? null) !== null
}

function maxInstant(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return a > b ? a : b
}
