import { canonicalInstant, instantMs } from '../values/instant.ts'
import { finding, type Finding, type FaultWord } from './findings.ts'
import type { ObservedChange, ObservedCycle, ObservedPage, Observation, Repeat } from './observation.ts'

/** What is wrong with a sync, by what it was seen doing. */
export function judge(observation: Observation): Finding[] {
  const [first] = observation.cycles
  if (first === undefined) return []
  const failure = failureOf(first) ?? (observation.cycles[1] === undefined ? null : failureOf(observation.cycles[1]))
  const incremental = observation.mode === 'incremental'
  return [
    ...(failure === null ? [] : [failure]),
    ...endOf(observation, first),
    ...stateSize(first),
    ...(incremental ? [...stateOver(observation, first), ...lagOf(first), ...tieBreak(observation)] : []),
    ...deletesOf(observation),
    ...timesOf(observation),
    ...keysOf(observation, first),
    ...repeatsOf(observation.repeats),
    ...sizeOf(first),
    ...quarantineOf(first),
    ...straysOf(observation),
  ]
}

/** What the engine refused, by its code. */
const REFUSALS: Readonly<Record<string, FaultWord>> = {
  STATE_INVALID: 'state-not-json', STATE_TOO_LARGE: 'state-too-large', STATE_MISSING: 'page-malformed', PAGE_INVALID: 'page-malformed',
  CURSOR_STALLED: 'state-stuck', CURSOR_CYCLE: 'state-stuck', EMPTY_PAGES: 'no-end',
}

function failureOf({ error, failedOnFirstRun, pages }: ObservedCycle): Finding | null {
  // A delta may know no place of its own: then it begins where its backfill finds one, and here it cannot be seen at work.
  if (error === null || (error.code === 'HISTORY_LOST' && pages.length === 0)) return null
  if (failedOnFirstRun) return finding('no-first-run', 'The first call, without a state, failed: a member of undefined was read.')
  return finding(REFUSALS[error.code] ?? 'fails', `After ${counted(pages.length, 'page')}: ${error.code}: ${error.message}`)
}

// ── the end of a cycle ───────────────────────────────────────────────────────────────────────────────────────────────

const EMPTY_PAGES_MAX = 5

function endOf({ beyond, pagesMax }: Observation, { pages, stopReason }: ObservedCycle): Finding[] {
  const found: Finding[] = []
  const seen = new Set<string>()
  let [fresh, repeated, empty, emptyMost] = [0, 0, 0, 0]
  for (const { changes } of pages) {
    const news = changes.filter((change) => !seen.has(identity(change)))
    for (const change of news) seen.add(identity(change))
    if (news.length > 0) [fresh, repeated] = [fresh + 1, 0]
    else if (changes.length > 0) repeated++
    empty = changes.length === 0 ? empty + 1 : 0
    emptyMost = Math.max(emptyMost, empty)
  }
  // A list may be read a second time to be sure of it, not more often and not for ever.
  const isEndless = stopReason === 'max_pages' && repeated >= 3 && repeated > fresh + 1
  if (isEndless) found.push(finding('no-end', `${counted(fresh, 'page')} brought something new; the ${repeated} after them repeat it, and say that more follows.`))
  else if (stopReason === 'max_pages') found.push(finding('unfinished', `The cycle goes on after ${counted(pagesMax, 'page')}, which is as far as this check reads.`))
  if (!isEndless && emptyMost >= EMPTY_PAGES_MAX) found.push(finding('empty-pages', `${emptyMost} empty pages in a row say that more follows.`))

  const last = pages.at(-1)
  if (last?.hasMore === false && beyond !== null) {
    const most = Math.max(...pages.map(({ changes }) => changes.length))
    const missed = beyond.filter((change) => change.type === 'upsert' && !seen.has(identity(change)))
    // A short page is an end in any case; what comes then is new in the source.
    if (missed.length > 0 && last.changes.length >= most) found.push(finding('early-end', `The last page says that no more follows, and its state leads to ${counted(missed.length, 'further record')}.`))
  }
  return found
}

// ── the state ────────────────────────────────────────────────────────────────────────────────────────────────────────

const GROWTH_PAGES_MIN = 5
const GROWTH_BYTES_MIN = 8

function stateSize({ pages }: ObservedCycle): Finding[] {
  const sizes = pages.flatMap(({ next }) => (next === null ? [] : [Buffer.byteLength(next)]))
  const steps = sizes.slice(1).map((bytes, index) => bytes - sizes[index]!)
  if (steps.length < GROWTH_PAGES_MIN || steps.some((step) => step < GROWTH_BYTES_MIN)) return []
  return [finding('state-grows', `It grew with every page, from ${sizes[0]} to ${sizes.at(-1)} bytes in ${counted(sizes.length, 'page')}.`)]
}

/** From one cycle to the next. */
function stateOver({ cycles }: Observation, { pages, stopReason }: ObservedCycle): Finding[] {
  const last = pages.at(-1)
  if (stopReason !== 'complete' || last === undefined) return []
  if (last.changes.length > 0 && last.next === null) return [finding('state-lost', `The last page brought ${counted(last.changes.length, 'change')} and no state for the next cycle.`)]
  const again = cycles[1]?.pages[0]
  const [head] = pages
  if (again === undefined || head === undefined) return []
  const reread = new Set(again.changes.map(identity))
  // A tail that is read again is an overlap; the head is a beginning.
  if (isFrontier(last.next)) return []
  const isSure = pages.length > 1 ? head.changes.length >= 2 : head.changes.length >= 10
  if (!isSure || !head.changes.every((change) => reread.has(identity(change)))) return []
  return [finding('starts-over', `The second cycle begins with the same ${counted(head.changes.length, 'change')} as the first.`)]
}

/** How close to now counts as now: less than any lag worth having. */
const NOW_MS = 1_000

function lagOf({ startedAt, endedAt, pages, committed }: ObservedCycle): Finding[] {
  const isNow = (ms: number): boolean => ms > startedAt - NOW_MS && ms <= endedAt + NOW_MS
  if (committed !== null && !isFrontier(committed) && timesIn(JSON.parse(committed)).some(isNow)) return [finding('no-lag', 'The state that the cycle ends with holds the time of the cycle itself.')]
  const young = pages.flatMap(({ changes }) => changes).filter(({ at }) => at !== null && isNow(instantMs(at)))
  return young.length === 0 ? [] : [finding('no-lag', `${counted(young.length, 'change')} of less than a second before the cycle began, or since, ${young.length === 1 ? 'was' : 'were'} read.`)]
}

function tieBreak({ cycles }: Observation): Finding[] {
  const pages = cycles.flatMap((cycle) => cycle.pages)
  for (const [index, page] of pages.entries()) {
    const following = pages[index + 1]
    const last = page.changes.at(-1)
    if (following === undefined || following.changes.length === 0 || last?.at == null || page.next === null) continue
    const state: unknown = JSON.parse(page.next)
    const ms = instantMs(last.at)
    // Only the time of the last record is kept, and the next page begins above it.
    if (!timesIn(state).includes(ms) || textsIn(state).includes(last.key) || following.changes.some(({ at }) => at === last.at)) continue
    const ties = page.changes.filter(({ at }) => at === last.at).length
    return ties > 1
      ? [finding('no-tie-break', `A page ends with ${ties} records of one time, its state keeps only that time, and the next page begins above it.`, 'error')]
      : [finding('no-tie-break', 'The state keeps only the time of the last record, and the next page begins above it.')]
  }
  return []
}

/** The state of `frontier`: its place is items, its times are notes, and every cycle begins at the top. */
function isFrontier(state: string | null): boolean {
  const members: unknown = state === null ? null : JSON.parse(state)
  return typeof members === 'object' && members !== null && 'anchors' in members && 'tailComplete' in members
}

/** Every moment in a state, in milliseconds. What a strategy keeps of a rate limit is none of a position. */
function timesIn(value: unknown): number[] {
  if (typeof value === 'string') {
    const instant = canonicalInstant(value)
    return instant === null ? [] : [instantMs(instant)]
  }
  if (typeof value === 'number') return value > 1e12 && value < 4e12 ? [value] : value > 1e9 && value < 4e9 ? [value * 1_000] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => (name === 'pace' ? [] : timesIn(member)))
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

// ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function deletesOf({ mode, isSwept, cycles }: Observation): Finding[] {
  const changes = cycles.flatMap(({ pages }) => pages.flatMap((page) => page.changes))
  if (mode === 'replace' || isSwept || changes.some(({ type }) => type === 'delete')) return []
  return [finding('missing-deletes', 'Nothing tells what was deleted: no replace sync fills the database, no deletion was read, and the worker speaks of none.')]
}

function timesOf({ otherWriters, cycles }: Observation): Finding[] {
  const changes = cycles.flatMap(({ pages }) => pages.flatMap((page) => page.changes))
  const bare = changes.filter(({ at }) => at === null).length
  // Such lists mostly tell no times, and each reading of them is later than the one before.
  if (otherWriters === 0 || bare === 0 || cycles.some(({ pages }) => pages.some(({ next }) => isFrontier(next)))) return []
  return [finding('no-upstream-time', `${bare} of ${counted(changes.length, 'change')} ${changes.length === 1 ? 'has' : 'have'} no time of the source, and ${counted(otherWriters, 'other sync')} ${otherWriters === 1 ? 'fills' : 'fill'} the same database.`)]
}

function keysOf({ mode }: Observation, { pages }: ObservedCycle): Finding[] {
  let clashing = 0
  for (const { changes } of pages) {
    const contents = new Map<string, ObservedChange>()
    for (const change of changes) {
      const other = contents.get(change.place)
      // Two versions of one record, one after the other, are no namesakes: a log may tell both.
      const isVersion = mode === 'incremental' && (other?.at !== change.at || change.at === null || other?.type !== change.type)
      if (other !== undefined && other.content !== change.content && !isVersion) clashing++
      contents.set(change.place, change)
    }
  }
  // Over pages a record may have changed meanwhile; not many of them.
  const before = new Map<string, string>()
  let over = 0
  for (const { changes } of mode === 'replace' ? pages : []) {
    for (const { place, content } of changes) if (before.has(place) && before.get(place) !== content) over++
    for (const { place, content } of changes) before.set(place, content)
  }
  if (clashing === 0 && over < 3) return []
  return [finding('key-not-unique', `${counted(clashing + over, 'record')} had the key of another one with other content in the same cycle.`)]
}

function repeatsOf(repeats: readonly Repeat[]): Finding[] {
  for (const { page, first, second, third } of repeats) {
    if (third === null || same(second, third)) continue
    const keys = (changes: readonly ObservedChange[]): string => changes.map(({ place }) => place).toSorted().join('\n')
    const contents = (changes: readonly ObservedChange[]): string => changes.map(({ content }) => content).toSorted().join('\n')
    const asked = `Page ${page} was asked for three times with one state`
    if (contents(first) === contents(second) && keys(first) !== keys(second)) return [finding('key-unstable', `${asked}, and the same records came under other keys.`)]
    if (keys(first) === keys(second) && keys(second) === keys(third)) return [finding('record-volatile', `${asked}, and the same records came with other content each time.`)]
    return [finding('page-unstable', `${asked}, and was another one each time.`)]
  }
  return []
}

/** Which of several records of one time are on a page, and in what order, is the source's affair; some strategies are made for that. */
export function same(a: readonly ObservedChange[], b: readonly ObservedChange[]): boolean {
  const borders = new Set([a.at(-1)?.at, b.at(-1)?.at])
  const settled = (changes: readonly ObservedChange[]): string => changes.filter(({ at }) => at === null || !borders.has(at)).map(identity).toSorted().join('\n')
  return a.length === b.length && settled(a) === settled(b)
}

const PAGE_CHANGES_MAX = 1_000

function sizeOf({ pages }: ObservedCycle): Finding[] {
  const most = Math.max(0, ...pages.map(({ changes }: ObservedPage) => changes.length))
  return most > PAGE_CHANGES_MAX ? [finding('page-too-large', `A page has ${most} changes; more than ${PAGE_CHANGES_MAX} are a lot.`)] : []
}

function quarantineOf({ quarantined, pages }: ObservedCycle): Finding[] {
  const codes = Object.entries(quarantined)
  if (codes.length === 0) return []
  const count = codes.reduce((sum, [, records]) => sum + records, 0)
  const all = pages.reduce((sum, { changes }) => sum + changes.length, 0)
  return [finding('quarantined', `${count} of ${counted(all, 'change')} would not be landed: ${codes.map(([code, records]) => `${code} ×${records}`).join(', ')}.`, count >= all ? 'error' : 'warning')]
}

function straysOf({ strays, cycles, requests }: Observation): Finding[] {
  const words = { clock: ['reads-wall-clock', 'The clock of the machine is read'], chance: ['reads-chance', 'Chance is taken from the machine'], fetch: ['unpaced-request', 'A request is made past the engine'] } as const
  const found = Object.entries(words).flatMap(([what, [word, seen]]) => {
    const places = [...new Set(strays.filter((stray) => stray.what === what).map(({ where }) => where))]
    return places.length === 0 ? [] : [finding(word, `${seen} in ${places.slice(0, 3).join(', ')}.`)]
  })
  const isBare = cycles.every(({ pages, error }) => error === null && pages.every(({ changes }) => changes.length === 0))
  return isBare ? [...found, finding('nothing-read', `No change came in ${counted(requests, 'request')}.`)] : found
}

function identity({ type, place, content }: ObservedChange): string {
  return `${type} ${place} ${content}`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
