import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import { createFinding, type Finding, type FaultCode } from './findings.ts'
import type { ObservedChange, ObservedCycle, ObservedPage, Observation, PageRepeat } from './observation.ts'

/** Derives findings from the observed cycles of a sync. */
export function lintObservation(observation: Observation): Finding[] {
  const [first] = observation.cycles
  if (first === undefined) return []
  const failure =
    checkFailure(first) ?? (observation.cycles[1] === undefined ? null : checkFailure(observation.cycles[1]))
  const incremental = observation.mode === 'incremental'
  return [
    ...(failure === null ? [] : [failure]),
    ...checkCycleEnd(observation, first),
    ...checkStateSize(first),
    ...(incremental
      ? [...checkStateCarryover(observation, first), ...checkLag(first), ...checkTieBreak(observation)]
      : []),
    ...checkDeletes(observation),
    ...checkUpstreamTimes(observation),
    ...checkKeys(observation, first),
    ...checkRepeats(observation.repeats),
    ...checkPageSize(first),
    ...checkQuarantine(first),
    ...checkGlobalAccesses(observation),
  ]
}

/** Maps the error code of a page that the engine refused to a finding. */
const FAULT_BY_ERROR_CODE: Readonly<Record<string, FaultCode>> = {
  STATE_INVALID: 'state-not-json',
  STATE_TOO_LARGE: 'state-too-large',
  STATE_MISSING: 'page-malformed',
  PAGE_INVALID: 'page-malformed',
  CURSOR_STALLED: 'state-stuck',
  CURSOR_CYCLE: 'state-stuck',
  EMPTY_PAGES: 'no-end',
}

function checkFailure({ error, failedOnFirstRun, pages }: ObservedCycle): Finding | null {
  // A delta that starts at the anchor of its backfill cannot run alone here; that is not a fault.
  if (error === null || (error.code === 'HISTORY_LOST' && pages.length === 0)) return null
  if (failedOnFirstRun)
    return createFinding('no-first-run', 'The first call, which has no state, failed: it read a property of undefined.')
  return createFinding(
    FAULT_BY_ERROR_CODE[error.code] ?? 'fails',
    `After ${pluralize(pages.length, 'page')}: ${error.code}: ${error.message}`,
  )
}

// ── The end of a cycle ───────────────────────────────────────────────────────────────────────────────────────────────

const EMPTY_PAGES_MAX = 5

function checkCycleEnd({ changesAfterEnd, pagesMax }: Observation, { pages, stopReason }: ObservedCycle): Finding[] {
  const found: Finding[] = []
  const seen = new Set<string>()
  let [fresh, repeated, empty, emptyMost] = [0, 0, 0, 0]
  for (const { changes } of pages) {
    const unseen = changes.filter((change) => !seen.has(changeIdentity(change)))
    for (const change of unseen) seen.add(changeIdentity(change))
    if (unseen.length > 0) [fresh, repeated] = [fresh + 1, 0]
    else if (changes.length > 0) repeated++
    empty = changes.length === 0 ? empty + 1 : 0
    emptyMost = Math.max(emptyMost, empty)
  }
  // Some strategies read a list twice to verify it; more repetitions mean that paging does not end.
  const isEndless = stopReason === 'max_pages' && repeated >= 3 && repeated > fresh + 1
  if (isEndless)
    found.push(
      createFinding(
        'no-end',
        `After ${pluralize(fresh, 'page')} with new records, ${repeated} more pages repeat them and still set hasMore.`,
      ),
    )
  else if (stopReason === 'max_pages')
    found.push(
      createFinding('unfinished', `The cycle continues after ${pluralize(pagesMax, 'page')}, the limit of this check.`),
    )
  if (!isEndless && emptyMost >= EMPTY_PAGES_MAX)
    found.push(createFinding('empty-pages', `${emptyMost} empty pages in a row set hasMore.`))

  const last = pages.at(-1)
  if (last?.hasMore === false && changesAfterEnd !== null) {
    const most = Math.max(...pages.map(({ changes }) => changes.length))
    const missed = changesAfterEnd.filter((change) => change.type === 'upsert' && !seen.has(changeIdentity(change)))
    // A short page is a valid end; later records are new in the source.
    if (missed.length > 0 && last.changes.length >= most)
      found.push(
        createFinding(
          'early-end',
          `The last page sets hasMore to false, but its state leads to ${pluralize(missed.length, 'further record')}.`,
        ),
      )
  }
  return found
}

// ── The state ────────────────────────────────────────────────────────────────────────────────────────────────────────

const GROWTH_PAGES_MIN = 5
const GROWTH_BYTES_MIN = 8

function checkStateSize({ pages }: ObservedCycle): Finding[] {
  const sizes = pages.flatMap(({ nextState }) => (nextState === null ? [] : [Buffer.byteLength(nextState)]))
  const steps = sizes.slice(1).map((bytes, index) => bytes - (sizes[index] ?? 0))
  if (steps.length < GROWTH_PAGES_MIN || steps.some((step) => step < GROWTH_BYTES_MIN)) return []
  return [
    createFinding(
      'state-grows',
      `The state grew with every page, from ${sizes[0]} to ${sizes.at(-1)} bytes in ${pluralize(sizes.length, 'page')}.`,
    ),
  ]
}

/** Compares the start of the second cycle with the first. */
function checkStateCarryover({ cycles }: Observation, { pages, stopReason }: ObservedCycle): Finding[] {
  const last = pages.at(-1)
  if (stopReason !== 'complete' || last === undefined) return []
  if (last.changes.length > 0 && last.nextState === null)
    return [
      createFinding(
        'state-lost',
        `The last page has ${pluralize(last.changes.length, 'change')} but no state for the next cycle.`,
      ),
    ]
  const again = cycles[1]?.pages[0]
  const [head] = pages
  if (again === undefined || head === undefined) return []
  const reread = new Set(again.changes.map(changeIdentity))
  // Re-reading the tail is an overlap; re-reading the head means that the cycle starts over.
  if (isFrontierState(last.nextState)) return []
  const isSure = pages.length > 1 ? head.changes.length >= 2 : head.changes.length >= 10
  if (!isSure || !head.changes.every((change) => reread.has(changeIdentity(change)))) return []
  return [
    createFinding(
      'starts-over',
      `The second cycle begins with the same ${pluralize(head.changes.length, 'change')} as the first.`,
    ),
  ]
}

/** Times this close to the cycle count as without a lag. */
const NOW_TOLERANCE_MS = 1_000

function checkLag({ startedAt, endedAt, pages, committed }: ObservedCycle): Finding[] {
  const isNow = (ms: number): boolean => ms > startedAt - NOW_TOLERANCE_MS && ms <= endedAt + NOW_TOLERANCE_MS
  if (committed !== null && !isFrontierState(committed) && findTimes(JSON.parse(committed)).some(isNow))
    return [createFinding('no-lag', 'The final state of the cycle contains the time of the cycle itself.')]
  const recent = pages
    .flatMap(({ changes }) => changes)
    .filter(({ upstreamAt }) => upstreamAt !== null && isNow(instantToMs(upstreamAt)))
  return recent.length === 0
    ? []
    : [
        createFinding(
          'no-lag',
          `The cycle read ${pluralize(recent.length, 'change')} made less than a second before it started, or later.`,
        ),
      ]
}

function checkTieBreak({ cycles }: Observation): Finding[] {
  const pages = cycles.flatMap((cycle) => cycle.pages)
  for (const [index, page] of pages.entries()) {
    const following = pages[index + 1]
    const last = page.changes.at(-1)
    if (
      following === undefined ||
      following.changes.length === 0 ||
      last?.upstreamAt == null ||
      page.nextState === null
    )
      continue
    const state: unknown = JSON.parse(page.nextState)
    const ms = instantToMs(last.upstreamAt)
    // The state keeps only the time of the last record, and the next page starts after it.
    if (
      !findTimes(state).includes(ms) ||
      findTexts(state).includes(last.key) ||
      following.changes.some(({ upstreamAt: at }) => at === last.upstreamAt)
    )
      continue
    const ties = page.changes.filter(({ upstreamAt: at }) => at === last.upstreamAt).length
    return ties > 1
      ? [
          createFinding(
            'no-tie-break',
            `A page ends with ${ties} records with the same timestamp, but its state keeps only the timestamp and the next page starts after it.`,
            'error',
          ),
        ]
      : [
          createFinding(
            'no-tie-break',
            'The state keeps only the timestamp of the last record, and the next page starts after it.',
          ),
        ]
  }
  return []
}

/** Whether this is a `frontier` state: it holds items, its times are informational, and every cycle starts at the top. */
function isFrontierState(state: string | null): boolean {
  const value: unknown = state === null ? null : JSON.parse(state)
  return typeof value === 'object' && value !== null && 'anchors' in value && 'tailComplete' in value
}

/** Every timestamp in a state, in milliseconds. Rate-limit data of a strategy (`pace`) is not part of the cursor. */
function findTimes(value: unknown): number[] {
  if (typeof value === 'string') {
    const instant = canonicalizeInstant(value)
    return instant === null ? [] : [instantToMs(instant)]
  }
  if (typeof value === 'number')
    return value > 1e12 && value < 4e12 ? [value] : value > 1e9 && value < 4e9 ? [value * 1_000] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => (name === 'pace' ? [] : findTimes(field)))
}

function findTexts(value: unknown): string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(findTexts) : []
}

// ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function checkDeletes({ mode, isSwept, cycles }: Observation): Finding[] {
  const changes = cycles.flatMap(({ pages }) => pages.flatMap((page) => page.changes))
  if (mode === 'replace' || isSwept || changes.some(({ type }) => type === 'delete')) return []
  return [
    createFinding(
      'missing-deletes',
      'Deletions are not detected: no replace sync writes to the database, no deletion was read, and the worker code creates none.',
    ),
  ]
}

function checkUpstreamTimes({ otherWriters, cycles }: Observation): Finding[] {
  const changes = cycles.flatMap(({ pages }) => pages.flatMap((page) => page.changes))
  const untimed = changes.filter(({ upstreamAt }) => upstreamAt === null).length
  // Frontier lists usually have no timestamps, and each read is newer than the previous one.
  if (
    otherWriters === 0 ||
    untimed === 0 ||
    cycles.some(({ pages }) => pages.some(({ nextState }) => isFrontierState(nextState)))
  )
    return []
  return [
    createFinding(
      'no-upstream-time',
      `${untimed} of ${pluralize(changes.length, 'change')} ${changes.length === 1 ? 'has' : 'have'} no upstreamUpdatedAt, and ${pluralize(otherWriters, 'other sync')} ${otherWriters === 1 ? 'writes' : 'write'} to the same database.`,
    ),
  ]
}

function checkKeys({ mode }: Observation, { pages }: ObservedCycle): Finding[] {
  let clashing = 0
  for (const { changes } of pages) {
    const contents = new Map<string, ObservedChange>()
    for (const change of changes) {
      const other = contents.get(change.rowId)
      // Two successive versions of one record are not duplicates: a change log may contain both.
      const isVersion =
        mode === 'incremental' &&
        (other?.upstreamAt !== change.upstreamAt || change.upstreamAt === null || other?.type !== change.type)
      if (other !== undefined && other.contentDigest !== change.contentDigest && !isVersion) clashing++
      contents.set(change.rowId, change)
    }
  }
  // Between pages a few records may have changed in the source.
  const digests = new Map<string, string>()
  let changed = 0
  for (const { changes } of mode === 'replace' ? pages : []) {
    for (const { rowId, contentDigest } of changes)
      if (digests.has(rowId) && digests.get(rowId) !== contentDigest) changed++
    for (const { rowId, contentDigest } of changes) digests.set(rowId, contentDigest)
  }
  if (clashing === 0 && changed < 3) return []
  return [
    createFinding(
      'key-not-unique',
      `${pluralize(clashing + changed, 'record')} had the same key as a different record in the same cycle.`,
    ),
  ]
}

function checkRepeats(repeats: readonly PageRepeat[]): Finding[] {
  for (const { page, first, second, third } of repeats) {
    if (third === null || isSamePage(second, third)) continue
    const keys = (changes: readonly ObservedChange[]): string =>
      changes
        .map(({ rowId }) => rowId)
        .toSorted()
        .join('\n')
    const contents = (changes: readonly ObservedChange[]): string =>
      changes
        .map(({ contentDigest }) => contentDigest)
        .toSorted()
        .join('\n')
    const repeated = `Page ${page} was read three times with the same state`
    if (contents(first) === contents(second) && keys(first) !== keys(second))
      return [createFinding('key-unstable', `${repeated}, and its records had different keys.`)]
    if (keys(first) === keys(second) && keys(second) === keys(third))
      return [createFinding('record-volatile', `${repeated}, and the content of its records differed each time.`)]
    return [createFinding('page-unstable', `${repeated}, and its records differed each time.`)]
  }
  return []
}

/** Ignores records with the timestamp of the page boundary: the source may return ties in any order. */
export function isSamePage(a: readonly ObservedChange[], b: readonly ObservedChange[]): boolean {
  const borders = new Set([a.at(-1)?.upstreamAt, b.at(-1)?.upstreamAt])
  const settled = (changes: readonly ObservedChange[]): string =>
    changes
      .filter(({ upstreamAt: at }) => at === null || !borders.has(at))
      .map(changeIdentity)
      .toSorted()
      .join('\n')
  return a.length === b.length && settled(a) === settled(b)
}

const PAGE_CHANGES_MAX = 1_000

function checkPageSize({ pages }: ObservedCycle): Finding[] {
  const largest = Math.max(0, ...pages.map(({ changes }: ObservedPage) => changes.length))
  return largest > PAGE_CHANGES_MAX
    ? [
        createFinding(
          'page-too-large',
          `A page has ${largest} changes; the recommended maximum is ${PAGE_CHANGES_MAX}.`,
        ),
      ]
    : []
}

function checkQuarantine({ quarantined, pages }: ObservedCycle): Finding[] {
  const codes = Object.entries(quarantined)
  if (codes.length === 0) return []
  const count = codes.reduce((sum, [, records]) => sum + records, 0)
  const all = pages.reduce((sum, { changes }) => sum + changes.length, 0)
  return [
    createFinding(
      'quarantined',
      `${count} of ${pluralize(all, 'change')} would be quarantined: ${codes.map(([code, records]) => `${code} ×${records}`).join(', ')}.`,
      count >= all ? 'error' : 'warning',
    ),
  ]
}

function checkGlobalAccesses({ globalAccesses, cycles, requests }: Observation): Finding[] {
  const faults = {
    clock: ['reads-wall-clock', 'The worker reads the system clock'],
    chance: ['reads-chance', 'The worker uses Math.random'],
    fetch: ['unpaced-request', 'The worker bypasses context.fetch'],
  } as const
  const found = Object.entries(faults).flatMap(([kind, [code, seen]]) => {
    const locations = [
      ...new Set(globalAccesses.filter((access) => access.kind === kind).map(({ location }) => location)),
    ]
    return locations.length === 0 ? [] : [createFinding(code, `${seen} in ${locations.slice(0, 3).join(', ')}.`)]
  })
  const isEmpty = cycles.every(
    ({ pages, error }) => error === null && pages.every(({ changes }) => changes.length === 0),
  )
  return isEmpty
    ? [...found, createFinding('nothing-read', `${pluralize(requests, 'request')} returned no changes.`)]
    : found
}

function changeIdentity({ type, rowId, contentDigest }: ObservedChange): string {
  return `${type} ${rowId} ${contentDigest}`
}

function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
