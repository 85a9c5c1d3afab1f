import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import { createFinding, type Finding, type FaultCode } from './findings.ts'
import type { ObservedChange, ObservedCycle, ObservedPage, Observation, PageRepeat } from './observation.ts'

/** What is wrong with a sync, by what it was seen doing. */
export function lintObservation(observation: Observation): Finding[] {
  const [first] = observation.cycles
  if (first === undefined) return []
  const failure = checkFailure(first) ?? (observation.cycles[1] === undefined ? null : checkFailure(observation.cycles[1]))
  const incremental = observation.mode === 'incremental'
  return [
    ...(failure === null ? [] : [failure]),
    ...checkCycleEnd(observation, first),
    ...checkStateSize(first),
    ...(incremental ? [...checkStateCarryover(observation, first), ...checkLag(first), ...checkTieBreak(observation)] : []),
    ...checkDeletes(observation),
    ...checkUpstreamTimes(observation),
    ...checkKeys(observation, first),
    ...checkRepeats(observation.repeats),
    ...checkPageSize(first),
    ...checkQuarantine(first),
    ...checkGlobalAccesses(observation),
  ]
}

/** What the engine refused, by its code. */
const FAULT_BY_ERROR_CODE: Readonly<Record<string, FaultCode>> = {
  STATE_INVALID: 'state-not-json', STATE_TOO_LARGE: 'state-too-large', STATE_MISSING: 'page-malformed', PAGE_INVALID: 'page-malformed',
  CURSOR_STALLED: 'state-stuck', CURSOR_CYCLE: 'state-stuck', EMPTY_PAGES: 'no-end',
}

function checkFailure({ error, failedOnFirstRun, pages }: ObservedCycle): Finding | null {
  // A delta may know no place of its own: then it begins where its backfill finds one, and here it cannot be seen at work.
  if (error === null || (error.code === 'HISTORY_LOST' && pages.length === 0)) return null
  if (failedOnFirstRun) return createFinding('no-first-run', 'The first call, without a state, failed: a member of undefined was read.')
  return createFinding(FAULT_BY_ERROR_CODE[error.code] ?? 'fails', `After ${pluralize(pages.length, 'page')}: ${error.code}: ${error.message}`)
}

// ── the end of a cycle ───────────────────────────────────────────────────────────────────────────────────────────────

const EMPTY_PAGES_MAX = 5

function checkCycleEnd({ changesAfterEnd: beyond, pagesMax }: Observation, { pages, stopReason }: ObservedCycle): Finding[] {
  const found: Finding[] = []
  const seen = new Set<string>()
  let [fresh, repeated, empty, emptyMost] = [0, 0, 0, 0]
  for (const { changes } of pages) {
    const news = changes.filter((change) => !seen.has(changeIdentity(change)))
    for (const change of news) seen.add(changeIdentity(change))
    if (news.length > 0) [fresh, repeated] = [fresh + 1, 0]
    else if (changes.length > 0) repeated++
    empty = changes.length === 0 ? empty + 1 : 0
    emptyMost = Math.max(emptyMost, empty)
  }
  // A list may be read a second time to be sure of it, not more often and not for ever.
  const isEndless = stopReason === 'max_pages' && repeated >= 3 && repeated > fresh + 1
  if (isEndless) found.push(createFinding('no-end', `${pluralize(fresh, 'page')} brought something new; the ${repeated} after them repeat it, and say that more follows.`))
  else if (stopReason === 'max_pages') found.push(createFinding('unfinished', `The cycle goes on after ${pluralize(pagesMax, 'page')}, which is as far as this check reads.`))
  if (!isEndless && emptyMost >= EMPTY_PAGES_MAX) found.push(createFinding('empty-pages', `${emptyMost} empty pages in a row say that more follows.`))

  const last = pages.at(-1)
  if (last?.hasMore === false && beyond !== null) {
    const most = Math.max(...pages.map(({ changes }) => changes.length))
    const missed = beyond.filter((change) => change.type === 'upsert' && !seen.has(changeIdentity(change)))
    // A short page is an end in any case; what comes then is new in the source.
    if (missed.length > 0 && last.changes.length >= most) found.push(createFinding('early-end', `The last page says that no more follows, and its state leads to ${pluralize(missed.length, 'further record')}.`))
  }
  return found
}

// ── the state ────────────────────────────────────────────────────────────────────────────────────────────────────────

const GROWTH_PAGES_MIN = 5
const GROWTH_BYTES_MIN = 8

function checkStateSize({ pages }: ObservedCycle): Finding[] {
  const sizes = pages.flatMap(({ nextState: next }) => (next === null ? [] : [Buffer.byteLength(next)]))
  const steps = sizes.slice(1).map((bytes, index) => bytes - sizes[index]!)
  if (steps.length < GROWTH_PAGES_MIN || steps.some((step) => step < GROWTH_BYTES_MIN)) return []
  return [createFinding('state-grows', `It grew with every page, from ${sizes[0]} to ${sizes.at(-1)} bytes in ${pluralize(sizes.length, 'page')}.`)]
}

/** From one cycle to the next. */
function checkStateCarryover({ cycles }: Observation, { pages, stopReason }: ObservedCycle): Finding[] {
  const last = pages.at(-1)
  if (stopReason !== 'complete' || last === undefined) return []
  if (last.changes.length > 0 && last.nextState === null) return [createFinding('state-lost', `The last page brought ${pluralize(last.changes.length, 'change')} and no state for the next cycle.`)]
  const again = cycles[1]?.pages[0]
  const [head] = pages
  if (again === undefined || head === undefined) return []
  const reread = new Set(again.changes.map(changeIdentity))
  // A tail that is read again is an overlap; the head is a beginning.
  if (isFrontierState(last.nextState)) return []
  const isSure = pages.length > 1 ? head.changes.length >= 2 : head.changes.length >= 10
  if (!isSure || !head.changes.every((change) => reread.has(changeIdentity(change)))) return []
  return [createFinding('starts-over', `The second cycle begins with the same ${pluralize(head.changes.length, 'change')} as the first.`)]
}

/** How close to now counts as now: less than any lag worth having. */
const NOW_TOLERANCE_MS = 1_000

function checkLag({ startedAt, endedAt, pages, committed }: ObservedCycle): Finding[] {
  const isNow = (ms: number): boolean => ms > startedAt - NOW_TOLERANCE_MS && ms <= endedAt + NOW_TOLERANCE_MS
  if (committed !== null && !isFrontierState(committed) && findTimes(JSON.parse(committed)).some(isNow)) return [createFinding('no-lag', 'The state that the cycle ends with holds the time of the cycle itself.')]
  const young = pages.flatMap(({ changes }) => changes).filter(({ upstreamAt: at }) => at !== null && isNow(instantToMs(at)))
  return young.length === 0 ? [] : [createFinding('no-lag', `${pluralize(young.length, 'change')} of less than a second before the cycle began, or since, ${young.length === 1 ? 'was' : 'were'} read.`)]
}

function checkTieBreak({ cycles }: Observation): Finding[] {
  const pages = cycles.flatMap((cycle) => cycle.pages)
  for (const [index, page] of pages.entries()) {
    const following = pages[index + 1]
    const last = page.changes.at(-1)
    if (following === undefined || following.changes.length === 0 || last?.upstreamAt == null || page.nextState === null) continue
    const state: unknown = JSON.parse(page.nextState)
    const ms = instantToMs(last.upstreamAt)
    // Only the time of the last record is kept, and the next page begins above it.
    if (!findTimes(state).includes(ms) || findTexts(state).includes(last.key) || following.changes.some(({ upstreamAt: at }) => at === last.upstreamAt)) continue
    const ties = page.changes.filter(({ upstreamAt: at }) => at === last.upstreamAt).length
    return ties > 1
      ? [createFinding('no-tie-break', `A page ends with ${ties} records of one time, its state keeps only that time, and the next page begins above it.`, 'error')]
      : [createFinding('no-tie-break', 'The state keeps only the time of the last record, and the next page begins above it.')]
  }
  return []
}

/** The state of `frontier`: its place is items, its times are notes, and every cycle begins at the top. */
function isFrontierState(state: string | null): boolean {
  const members: unknown = state === null ? null : JSON.parse(state)
  return typeof members === 'object' && members !== null && 'anchors' in members && 'tailComplete' in members
}

/** Every moment in a state, in milliseconds. What a strategy keeps of a rate limit is none of a position. */
function findTimes(value: unknown): number[] {
  if (typeof value === 'string') {
    const instant = canonicalizeInstant(value)
    return instant === null ? [] : [instantToMs(instant)]
  }
  if (typeof value === 'number') return value > 1e12 && value < 4e12 ? [value] : value > 1e9 && value < 4e9 ? [value * 1_000] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => (name === 'pace' ? [] : findTimes(member)))
}

function findTexts(value: unknown): string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(findTexts) : []
}

// ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function checkDeletes({ mode, isSwept, cycles }: Observation): Finding[] {
  const changes = cycles.flatMap(({ pages }) => pages.flatMap((page) => page.changes))
  if (mode === 'replace' || isSwept || changes.some(({ type }) => type === 'delete')) return []
  return [createFinding('missing-deletes', 'Nothing tells what was deleted: no replace sync fills the database, no deletion was read, and the worker speaks of none.')]
}

function checkUpstreamTimes({ otherWriters, cycles }: Observation): Finding[] {
  const changes = cycles.flatMap(({ pages }) => pages.flatMap((page) => page.changes))
  const bare = changes.filter(({ upstreamAt: at }) => at === null).length
  // Such lists mostly tell no times, and each reading of them is later than the one before.
  if (otherWriters === 0 || bare === 0 || cycles.some(({ pages }) => pages.some(({ nextState: next }) => isFrontierState(next)))) return []
  return [createFinding('no-upstream-time', `${bare} of ${pluralize(changes.length, 'change')} ${changes.length === 1 ? 'has' : 'have'} no time of the source, and ${pluralize(otherWriters, 'other sync')} ${otherWriters === 1 ? 'fills' : 'fill'} the same database.`)]
}

function checkKeys({ mode }: Observation, { pages }: ObservedCycle): Finding[] {
  let clashing = 0
  for (const { changes } of pages) {
    const contents = new Map<string, ObservedChange>()
    for (const change of changes) {
      const other = contents.get(change.rowId)
      // Two versions of one record, one after the other, are no namesakes: a log may tell both.
      const isVersion = mode === 'incremental' && (other?.upstreamAt !== change.upstreamAt || change.upstreamAt === null || other?.type !== change.type)
      if (other !== undefined && other.contentDigest !== change.contentDigest && !isVersion) clashing++
      contents.set(change.rowId, change)
    }
  }
  // Over pages a record may have changed meanwhile; not many of them.
  const before = new Map<string, string>()
  let over = 0
  for (const { changes } of mode === 'replace' ? pages : []) {
    for (const { rowId: place, contentDigest: content } of changes) if (before.has(place) && before.get(place) !== content) over++
    for (const { rowId: place, contentDigest: content } of changes) before.set(place, content)
  }
  if (clashing === 0 && over < 3) return []
  return [createFinding('key-not-unique', `${pluralize(clashing + over, 'record')} had the key of another one with other content in the same cycle.`)]
}

function checkRepeats(repeats: readonly PageRepeat[]): Finding[] {
  for (const { page, first, second, third } of repeats) {
    if (third === null || isSamePage(second, third)) continue
    const keys = (changes: readonly ObservedChange[]): string => changes.map(({ rowId: place }) => place).toSorted().join('\n')
    const contents = (changes: readonly ObservedChange[]): string => changes.map(({ contentDigest: content }) => content).toSorted().join('\n')
    const asked = `Page ${page} was asked for three times with one state`
    if (contents(first) === contents(second) && keys(first) !== keys(second)) return [createFinding('key-unstable', `${asked}, and the same records came under other keys.`)]
    if (keys(first) === keys(second) && keys(second) === keys(third)) return [createFinding('record-volatile', `${asked}, and the same records came with other content each time.`)]
    return [createFinding('page-unstable', `${asked}, and was another one each time.`)]
  }
  return []
}

/** Which of several records of one time are on a page, and in what order, is the source's affair; some strategies are made for that. */
export function isSamePage(a: readonly ObservedChange[], b: readonly ObservedChange[]): boolean {
  const borders = new Set([a.at(-1)?.upstreamAt, b.at(-1)?.upstreamAt])
  const settled = (changes: readonly ObservedChange[]): string => changes.filter(({ upstreamAt: at }) => at === null || !borders.has(at)).map(changeIdentity).toSorted().join('\n')
  return a.length === b.length && settled(a) === settled(b)
}

const PAGE_CHANGES_MAX = 1_000

function checkPageSize({ pages }: ObservedCycle): Finding[] {
  const most = Math.max(0, ...pages.map(({ changes }: ObservedPage) => changes.length))
  return most > PAGE_CHANGES_MAX ? [createFinding('page-too-large', `A page has ${most} changes; more than ${PAGE_CHANGES_MAX} are a lot.`)] : []
}

function checkQuarantine({ quarantined, pages }: ObservedCycle): Finding[] {
  const codes = Object.entries(quarantined)
  if (codes.length === 0) return []
  const count = codes.reduce((sum, [, records]) => sum + records, 0)
  const all = pages.reduce((sum, { changes }) => sum + changes.length, 0)
  return [createFinding('quarantined', `${count} of ${pluralize(all, 'change')} would not be landed: ${codes.map(([code, records]) => `${code} ×${records}`).join(', ')}.`, count >= all ? 'error' : 'warning')]
}

function checkGlobalAccesses({ globalAccesses: strays, cycles, requests }: Observation): Finding[] {
  const words = { clock: ['reads-wall-clock', 'The clock of the machine is read'], chance: ['reads-chance', 'Chance is taken from the machine'], fetch: ['unpaced-request', 'A request is made past the engine'] } as const
  const found = Object.entries(words).flatMap(([what, [word, seen]]) => {
    const places = [...new Set(strays.filter((stray) => stray.kind === what).map(({ location: where }) => where))]
    return places.length === 0 ? [] : [createFinding(word, `${seen} in ${places.slice(0, 3).join(', ')}.`)]
  })
  const isBare = cycles.every(({ pages, error }) => error === null && pages.every(({ changes }) => changes.length === 0))
  return isBare ? [...found, createFinding('nothing-read', `No change came in ${pluralize(requests, 'request')}.`)] : found
}

function changeIdentity({ type, rowId: place, contentDigest: content }: ObservedChange): string {
  return `${type} ${place} ${content}`
}

function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
