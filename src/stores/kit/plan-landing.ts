import type { ChangeAction, Commit, Landing, LandingCounts } from '../../contract/index.ts'
import { compareInstants, instantToMs } from '../../values/instant.ts'
import { resolveLanding, type StoredRow, type Resolution } from './resolve-landing.ts'

/** What a commit will write, decided before anything is written; every store carries out the same plan. */
export interface LandingPlan {
  /** By database and key, whatever the page's order; the sequence is given where the log gets an entry. */
  readonly writes: RowWrite[]
  readonly touches: RowTouch[]
  /** Rows that keep their version, and the cycle to note as the last that contradicted it; null when one agreed. */
  readonly contests: RowContest[]
  /** Contested keys that the source has to be asked for; when there are any, nothing may be written. */
  readonly keysToLookUp: string[]
  /**
   * Sequences of live rows this page proved to be still there without changing them: not to be swept by this cycle, nor by
   * another one under way, whose listing may have passed the row's place when it was not there.
   */
  readonly seenSequences: number[]
  /** Rows of another owner that a replace cycle saw. */
  readonly sightings: Landing[]
  readonly counts: LandingCounts
  /** Keys whose two readings cannot be ordered; when there are any, nothing may be written. */
  readonly overlapKeys: string[]
  /** The tenant's position after the plan is carried out. */
  readonly headSequence: number
}

export interface RowWrite {
  readonly landing: Landing
  /** Null for a tombstone of a key that was never there: no log entry. */
  readonly action: ChangeAction | null
  readonly sequence: number
  readonly row: StoredRow | undefined
}

/** A live row takes the landing's hash; a touched tombstone is `deleted` from now on, also when it was `swept`. */
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
  /** The cycle sweeps at its end, so it must remember what it saw. */
  readonly sweeps: boolean
  /** Of the commit; null for a replay. */
  readonly cycle: number | null
  /** Another owner lists the key of this live row too: then the later source time decides between the two. */
  isShared(landing: Landing, row: StoredRow): boolean
  /** Whether a cycle that contested a row came to its end; one that did not may have missed a later page that agrees. */
  isComplete(cycle: number): boolean
  find(landing: Landing): StoredRow | undefined
  /** Whether a live row holds this record, perhaps with its members in another order. */
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
      // A stale sighting counts too: the source lists the key, whatever version of it we keep.
      if (verdict === 'same' || verdict === 'touch' || verdict === 'stale') seen.push(row.sequence)
      if (facts.sweeps && row.owner !== facts.owner) sightings.push(landing)
    }
  }
  // A record that could not be landed is still listed by the source: its row must not be swept.
  for (const { database, key } of commit.quarantined) {
    if (key === null) continue
    const row = facts.find({ type: 'delete', database, key, upstreamAt: null })
    if (row?.status === 'live') seen.push(row.sequence)
  }
  counts.quarantined = commit.quarantined.length
  return { writes, touches, contests, keysToLookUp: asked, seenSequences: seen, sightings, counts, overlapKeys: overlap, headSequence: position }
}

type ContestOutcome = 'wins' | 'loses' | 'same' | 'open' | 'waits' | 'ask'

/** Decides a contest; see Listing. `open` and `waits` leave it to the next cycle, and the stored version stays until then. */
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

/** Another order of members is no other content. */
function isSameRecord(landing: Landing, row: StoredRow, facts: LandingFacts): boolean {
  return landing.type === 'upsert' && facts.isSame(landing, row)
}

/**
 * The stored time lies in the future, and a later read of the same content has an older one: the stored one was wrong.
 * Left as it is, it would make every change until then look old.
 */
function isStoredTimeInFuture({ upstreamAt }: Landing, row: StoredRow, { at, readAtSequence: readFrom }: Commit): boolean {
  if (upstreamAt === null || row.upstreamAt === null || row.sequence > readFrom) return false
  return upstreamAt < row.upstreamAt && instantToMs(row.upstreamAt) > at
}

/**
 * What is told again while a listing runs counts from now on, or a page that the listing read before would pass for the
 * later read. Where times are told they decide, except between equal ones. So a row is put on record when its time moves
 * on, and when it was written by another sync before the listing began and is told again with the same time.
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
 * By database and key: the feed's order is that of the commits and, within one, of the keys (A9), so that a place in it can
 * be told by either. Most sources list by key, and then nothing has to be sorted.
 */
function sortLandings(landings: readonly Landing[]): readonly Landing[] {
  for (let at = 1; at < landings.length; at++) if (compareLandings(landings[at - 1]!, landings[at]!) > 0) return landings.toSorted(compareLandings)
  return landings
}

function compareLandings(a: Landing, b: Landing): number {
  return a.database === b.database ? compareBytes(a.key, b.key) : compareBytes(a.database, b.database)
}

/** As databases do. JavaScript compares by UTF-16 units, which differs where surrogates meet what lies above them. */
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

/** Sequences as closed ranges: a page that was landed in one go is a single pair. */
export function toSequenceRanges(sequences: readonly number[]): Array<[number, number]> {
  return mergeRanges(sequences.map((sequence) => [sequence, sequence]))
}

/** Sorted, and what touches is one. */
export function mergeRanges(ranges: ReadonlyArray<[number, number]>): Array<[number, number]> {
  const merged: Array<[number, number]> = []
  for (const [first, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = merged.at(-1)
    if (last !== undefined && first <= last[1] + 1) last[1] = Math.max(last[1], end)
    else merged.push([first, end])
  }
  return merged
}

/** The brake of invariant 11: whether so many of the rows that existed when the cycle began may not go without asking. */
export function exceedsDeleteLimit(sweep: { maxShare: number; allowEmpty: boolean }, existed: number, doomed: number): boolean {
  if (doomed === 0) return false
  return doomed >= existed ? !sweep.allowEmpty : doomed > existed * sweep.maxShare
}

/** At most so many of them, the same distance apart: a page that a listing left out is met wherever it lies. */
export function sampleEvenly<Item>(items: readonly Item[], limit: number): Item[] {
  if (items.length <= limit) return [...items]
  return Array.from({ length: limit }, (_, at) => items[Math.floor((at * items.length) / limit)]!)
}

function maxInstant(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return a ?? b
  return a > b ? a : b
}
