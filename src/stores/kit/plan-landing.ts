import type { ChangeAction, Commit, Landing, LandingCounts } from '../../contract/index.ts'
import { compareInstants, instantToMs } from '../../values/instant.ts'
import { resolveLanding, type StoredRow, type Resolution } from './resolve-landing.ts'

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

export interface RowContest {
  readonly landing: Landing
  readonly contestedBy: number | null
}

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

export function planLanding(commit: Commit, facts: LandingFacts): LandingPlan {
  const writes: RowWrite[] = []
  const touches: RowTouch[] = []
  const seen: number[] = []
  const sightings: Landing[] = []
  const overlap: string[] = []
  const contests: RowContest[] = []
  const asked: string[] = []
  const counts = createEmptyCounts()
  const read = {
    writer: facts.writer, readFrom: commit.readAtSequence, upstreamToleranceMs: commit.upstreamToleranceMs,
    isListing: facts.sweeps && commit.listing !== undefined,
  }
  const resolve = createContestResolver(commit, facts)
  let position = facts.headSequence

  for (const landing of sortLandings(commit.landings)) {
    const row = facts.find(landing)
    let verdict = resolveLanding(landing, row, read)
    if (verdict === 'overlap' && commit.isHistoricalLog === true) verdict = 'stale'
    if (verdict === 'update' && isSameRecord(landing, row!, facts)) verdict = 'touch'
    if (mustRelog(verdict, landing, row, commit, facts.writer)) verdict = toRelogResolution(verdict, landing)
    if (verdict === 'contest') {
      const resolution = resolve(landing, row!)
      if (resolution === 'ask') asked.push(landing.key)
      if (resolution === 'open') contests.push({ landing, contestedBy: facts.cycle })
      if (resolution === 'loses' && row!.contestedBy !== null) contests.push({ landing, contestedBy: null })
      verdict = resolution === 'wins' ? resolveWonContest(landing, row!) : resolution === 'same' ? 'touch' : 'stale'
    }
    switch (verdict) {
      case 'create':
        writes.push({ landing, action: 'created', sequence: ++position, row })
        counts.created++
        break
      case 'update':
        writes.push({ landing, action: 'updated', sequence: ++position, row })
        counts.updated++
        break
      case 'delete':
        writes.push({ landing, action: 'deleted', sequence: ++position, row })
        counts.deleted++
        break
      case 'bury':
        writes.push({ landing, action: null, sequence: position, row })
        counts.missing++
        break
      case 'touch':
        touches.push({ landing, upstreamAt: maxInstant(landing.upstreamAt, row!.upstreamAt) })
        if (landing.type === 'upsert') counts.unchanged++
        else counts.missing++
        break
      case 'same':
        if (read.isListing && isStoredTimeInFuture(landing, row!, commit)) touches.push({ landing, upstreamAt: landing.upstreamAt })
        else if (row!.contestedBy !== null) contests.push({ landing, contestedBy: null })
        counts.unchanged++
        break
      case 'stale':
        counts.stale++
        break
      case 'gone':
        if (row!.contestedBy !== null) contests.push({ landing, contestedBy: null })
        counts.missing++
        break
      case 'overlap':
        overlap.push(landing.key)
        break
      default:
        verdict satisfies never
    }
    if (landing.type === 'upsert' && row?.status === 'live') {
      // A stale row counts as seen too: the source lists the key, whichever version is stored.
      if (verdict === 'same' || verdict === 'touch' || verdict === 'stale') seen.push(row.sequence)
      if (facts.sweeps && row.owner !== facts.owner) sightings.push(landing)
    }
  }
  // A quarantined record is still listed by the source, so its row must not be swept.
  for (const { database, key } of commit.quarantined) {
    if (key === null) continue
    const row = facts.find({ type: 'delete', database, key, upstreamAt: null })
    if (row?.status === 'live') seen.push(row.sequence)
  }
  counts.quarantined = commit.quarantined.length
  return { writes, touches, contests, keysToLookUp: asked, seenSequences: seen, sightings, counts, overlapKeys: overlap, headSequence: position }
}

type ContestOutcome = 'wins' | 'loses' | 'same' | 'open' | 'waits' | 'ask'

/**
 * Resolves a contest; see ListingContext. `open` and `waits` leave it to the next cycle, and the stored version stays
 * until then.
 */
function createContestResolver({ listing }: Commit, facts: LandingFacts): (landing: Landing, row: StoredRow) => ContestOutcome {
  const answers = listing?.lookupAnswers
  const confirmed = new Set(answers?.confirmed)
  const refuted = new Set(answers?.refuted)
  return (landing, row) => {
    if (row.status === 'live' && isSameRecord(landing, row, facts)) return 'same'
    if (row.status === 'live' && facts.isShared(landing, row)) return 'loses'
    if (listing!.lookupDatabase === landing.database) return 'ask'
    if (answers?.database === landing.database) {
      if (confirmed.has(landing.key)) return 'wins'
      if (refuted.has(landing.key)) return 'loses'
    }
    if (row.contestedBy === null || row.contestedBy === facts.cycle || !facts.isComplete(row.contestedBy)) return 'open'
    return row.sequence <= listing!.settledSequence ? 'wins' : 'waits'
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
function isStoredTimeInFuture({ upstreamAt }: Landing, row: StoredRow, { at, readAtSequence: readFrom }: Commit): boolean {
  if (upstreamAt === null || row.upstreamAt === null || row.sequence > readFrom) return false
  return upstreamAt < row.upstreamAt && instantToMs(row.upstreamAt) > at
}

/**
 * A change that is repeated while a listing runs must get a new sequence, or a page that the listing read earlier would
 * count as the later read. Source times decide where they exist, except between equal ones. So a row is logged again
 * when its time advances, and when another sync wrote it before the listing began and the same time is repeated.
 */
function mustRelog(verdict: Resolution, landing: Landing, row: StoredRow | undefined, commit: Commit, writer: number): boolean {
  const { forceLogSince: restateSince, upstreamToleranceMs } = commit
  if (restateSince === undefined) return false
  if (landing.upstreamAt === null) return !(row?.writer === writer && row.sequence > restateSince)
  if (landing.type === 'delete') return false
  if (verdict === 'touch') return true
  if (verdict !== 'same' || row!.upstreamAt === null) return false
  if (compareInstants(landing.upstreamAt, row!.upstreamAt, upstreamToleranceMs) !== 0) return false
  return landing.upstreamAt !== row!.upstreamAt || (row!.writer !== writer && row!.sequence <= restateSince)
}

function toRelogResolution(verdict: Resolution, { type }: Landing): Resolution {
  if (type === 'upsert') return verdict === 'same' || verdict === 'touch' ? 'update' : verdict
  return verdict === 'gone' || verdict === 'bury' || verdict === 'touch' ? 'delete' : verdict
}

/**
 * Sorted by database and key: the feed's order is that of the commits and, within one, of the keys (A9), so either
 * identifies a cursor. Most sources list by key, and then no sort is needed.
 */
function sortLandings(landings: readonly Landing[]): readonly Landing[] {
  for (let at = 1; at < landings.length; at++) if (compareLandings(landings[at - 1]!, landings[at]!) > 0) return landings.toSorted(compareLandings)
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

export function createEmptyCounts(): LandingCounts {
  return { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
}

/** Merges sequences into closed ranges: a page that was landed in one commit is a single pair. */
export function toSequenceRanges(sequences: readonly number[]): Array<[number, number]> {
  return mergeRanges(sequences.map((sequence) => [sequence, sequence]))
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
export function exceedsDeleteLimit(sweep: { maxShare: number; allowEmpty: boolean }, existed: number, doomed: number): boolean {
  if (doomed === 0) return false
  return doomed >= existed ? !sweep.allowEmpty : doomed > existed * sweep.maxShare
}

/**
 * Picks at most `limit` items at equal distances, so that a page missing from a listing is represented wherever it was.
 */
export function sampleEvenly<Item>(items: readonly Item[], limit: number): Item[] {
  if (items.length <= limit) return [...items]
  return Array.from({ length: limit }, (_, at) => items[Math.floor((at * items.length) / limit)]!)
}

function maxInstant(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return a > b ? a : b
}
