import type { VendorWorldConfig } from '../../src/testing/simulation/vendors/vendor-config.ts'
import type { VendorWorldKind } from '../../src/testing/simulation/vendors/vendor-stream.ts'
import type { Mutant } from './mutants.ts'

/** A bug of the first connectors, planted back in a copy of the compiled code. */
export interface VendorMutant extends Pick<Mutant, 'name' | 'patches' | 'seeds' | 'foundBy'> {
  readonly vendors: readonly string[]
  readonly kinds: readonly VendorWorldKind[]
  readonly overrides?: Partial<VendorWorldConfig>
}

const KEYSET = 'strategies/keyset.js'
const EVENTS = 'strategies/event-feed.js'
const SEARCH = 'strategies/search.js'
const PAUSES = 'engine/account-pauses.js'

/** Ties larger than a page, rows that become visible late, and slow responses. */
const TIED: Partial<VendorWorldConfig> = { pageSize: 3, records: 12, operations: 25, bulkShare: 0.3, gapMs: 15_000 }
const LATE: Partial<VendorWorldConfig> = {
  lag: { share: 0.6, maxMs: 9_000 },
  vendorLatencyMs: [50, 3_000],
  operations: 40,
  records: 10,
  gapMs: 3_000,
  runnerGapMs: 500,
  rates: {},
}

/** Refusals that ask for a pause, of seconds and of minutes. */
const PAUSED: Partial<VendorWorldConfig> = {
  runnerSkewMs: 0,
  records: 12,
  pageSize: 3,
  rates: { 'rate-limited': 0.15 },
}

export const VENDOR_MUTANTS: readonly VendorMutant[] = [
  {
    name: 'D1 Salesforce: a short page is the end, whatever the value of `done`',
    patches: [
      {
        file: 'sources/salesforce/source.js',
        find: 'end: isDone && !isLocated && records.length < limit,',
        replace: 'end: records.length < limit,',
      },
    ],
    vendors: ['salesforce'],
    kinds: ['replace'],
    overrides: { pageSize: 4, records: 20, rates: { 'short-page': 0.4 } },
    seeds: 40,
    foundBy: 1,
  },
  {
    name: 'D2 Salesforce: everything is read and the cursor capped by the clock afterwards, with the id of the newest row',
    patches: [
      { file: KEYSET, find: 'until: bounded ? formatIso(pinnedMs) : undefined,', replace: 'until: undefined,' },
      {
        file: KEYSET,
        find: 'const safe = bounded ? items.filter(({ instant }) => instant <= msToInstant(untilMs)) : items;',
        replace: 'const safe = items;',
      },
      {
        file: KEYSET,
        find: 'buildEndState(laterKeysetCursor(last, frontier, compareIds), bounded ? untilMs : null)',
        replace:
          '((capMs) => buildEndState(last && instantToMs(canonicalizeInstant(last.timestamp)) > capMs ? { timestamp: formatIso(capMs), id: last.id } : last, bounded ? untilMs : null))(context.clock.now() - lagMs)',
      },
    ],
    vendors: ['salesforce'],
    kinds: ['delta'],
    overrides: { ...LATE, lag: { share: 0.6, maxMs: 14_000 } },
    seeds: 60,
    foundBy: 3,
  },
  {
    name: 'D3 Stripe: the next cursor is the last event of a page, which is the oldest',
    patches: [{ file: EVENTS, find: 'toEventFeedCursor(last)', replace: 'toEventFeedCursor(safe[0])' }],
    vendors: ['stripe'],
    kinds: ['delta', 'pair'],
    overrides: { pageSize: 8, records: 20, bulkShare: 0.5, gapMs: 15_000, operations: 25 },
    seeds: 40,
    foundBy: 1,
  },
  {
    name: 'D4 Stripe: events are applied in list order, the newest first, and without their time',
    patches: [
      { file: EVENTS, find: 'events: safe.map(', replace: 'events: safe.toReversed().map(' },
      {
        file: 'sources/stripe/event-scan.js',
        find: 'upstreamUpdatedAt: formatOrderedTime(created, kind), asOf',
        replace: 'upstreamUpdatedAt: undefined, asOf: undefined',
      },
    ],
    vendors: ['stripe'],
    kinds: ['delta', 'pair'],
    overrides: { pageSize: 8, records: 4, operations: 25, gapMs: 3_000 },
    seeds: 40,
    foundBy: 1,
  },
  {
    name: 'D5 Stripe: before the first event, an empty id is kept as the anchor',
    patches: [
      {
        file: EVENTS,
        find: 'if (isMissing(event)) return { cursor: null };',
        replace: "if (isMissing(event)) return { cursor: '', cursorTime: '1970-01-01T00:00:00.000Z' };",
      },
    ],
    vendors: ['stripe'],
    kinds: ['delta', 'pair'],
    overrides: { records: 0, gapMs: 15_000 },
    seeds: 40,
    foundBy: 3,
  },
  {
    name: 'Stripe: an event is taken for newer than a row that the backfill listed',
    patches: [{ file: 'stores/kit/resolve-landing.js', find: "asOf === 'event' || ", replace: '' }],
    vendors: ['stripe'],
    kinds: ['pair'],
    overrides: { pageSize: 8, records: 8, operations: 25, gapMs: 3_000 },
    seeds: 60,
    foundBy: 2,
  },
  {
    name: 'Stripe: an object in its current version is reverted by events that the log shows later',
    patches: [
      {
        file: 'sources/stripe/event-scan.js',
        find: 'objectReads.isAmbiguous(id, created) || unordered.has(id) || hasTruncatedList',
        replace: 'unordered.has(id) || hasTruncatedList',
      },
    ],
    vendors: ['stripe'],
    kinds: ['delta'],
    overrides: { ...TIED, gapMs: 3_000 },
    seeds: 60,
    foundBy: 10,
  },
  {
    name: 'Stripe: of two events of one second on two pages the one on the later page wins',
    patches: [
      {
        file: 'sources/stripe/event-scan.js',
        find: `if (created === this.#options.previousPageSecond)
            return true;`,
        replace: '',
      },
    ],
    vendors: ['stripe'],
    kinds: ['delta'],
    overrides: { ...TIED, bulkShare: 0.6, gapMs: 500 },
    seeds: 60,
    foundBy: 1,
  },
  {
    name: 'Stripe: a cached page of a nested list is joined to a newer version of the object',
    patches: [
      {
        file: 'sources/stripe/nested-objects.js',
        find: 'last !== undefined && !isSameVersion(last, body.data[0])',
        replace: 'false',
      },
    ],
    vendors: ['stripe'],
    kinds: ['replace', 'delta', 'pair'],
    seeds: 60,
    foundBy: 3,
    overrides: {
      vendorLatencyMs: [2, 30],
      records: 6,
      operations: 30,
      gapMs: 3_000,
      runnerGapMs: 1_000,
      rates: { 'cached-nested-page': 0.5 },
    },
  },
  {
    name: 'D6 HubSpot: a tie is entered at the last id of a page that is sorted by time',
    patches: [
      {
        file: SEARCH,
        find: 'enterDeadlock({ ...current, cursorMs: newestMs })',
        replace: '{ ...enterDeadlock({ ...current, cursorMs: newestMs }), lastId: safe.at(-1).id }',
      },
    ],
    vendors: ['hubspot'],
    kinds: ['delta', 'pair'],
    overrides: TIED,
    seeds: 40,
    foundBy: 2,
  },
  {
    name: 'D7 HubSpot: the maximum of an empty page becomes the cursor',
    patches: [
      {
        file: SEARCH,
        find: 'safe.reduce((most, { modifiedMs }) => Math.max(most, modifiedMs), cursorMs)',
        replace: 'Math.max(...safe.map(({ modifiedMs }) => modifiedMs))',
      },
    ],
    vendors: ['hubspot'],
    kinds: ['delta', 'pair'],
    seeds: 40,
    foundBy: 1,
  },
  {
    name: 'D8 HubSpot: the search has no upper bound, and the cursor passes records that are not indexed yet',
    patches: [
      {
        file: SEARCH,
        find: 'Math.min(state.untilMs, cursorMs + (widthMs ?? Number.POSITIVE_INFINITY))',
        replace: 'cursorMs + (widthMs ?? 1e12)',
      },
      { file: SEARCH, find: 'inWindow.filter(({ modifiedMs }) => modifiedMs <= untilMs)', replace: 'inWindow' },
    ],
    vendors: ['hubspot'],
    kinds: ['delta', 'pair'],
    overrides: LATE,
    seeds: 60,
    foundBy: 37,
  },
  {
    name: 'D9 ServiceNow: the streams of a missing state are read',
    patches: [
      {
        file: 'strategies/streams.js',
        find: 'stored === undefined ? { states: {} } : readState(stored)',
        replace: 'readState(stored)',
      },
    ],
    vendors: ['servicenow', 'hubspot'],
    kinds: ['delta'],
    seeds: 20,
    foundBy: 1,
  },
  {
    name: 'D11 HubSpot: the last id is sent as the page of a search',
    patches: [
      { file: 'sources/hubspot/source.js', find: "[filter('hs_object_id', 'GT', afterId)]", replace: '[]' },
      {
        file: 'sources/hubspot/source.js',
        find: 'filterGroups: [',
        replace: '...(afterId !== undefined && { after: afterId }), filterGroups: [',
      },
    ],
    vendors: ['hubspot'],
    kinds: ['delta', 'pair'],
    overrides: TIED,
    seeds: 40,
    foundBy: 1,
  },
  {
    name: 'D12 Salesforce: an empty page moves the cursor to the end of the buffer, though the query ended before',
    patches: [
      {
        file: KEYSET,
        find: 'const last = pickAgreedCursor(safe.at(-1)?.cursor, isAtEnd, first, compareIds) ?? after;',
        replace:
          "const last = pickAgreedCursor(safe.at(-1)?.cursor, isAtEnd, first, compareIds) ?? (bounded && end ? { timestamp: formatIso(context.clock.now() - lagMs), id: '' } : after);",
      },
    ],
    vendors: ['salesforce'],
    kinds: ['delta'],
    overrides: { ...LATE, records: 2, lag: { share: 0.6, maxMs: 14_000 } },
    seeds: 60,
    foundBy: 3,
  },
  // ── bugs that only one of the oracles O16 to O19 detects
  // ────────────────────────────────────────────────────────────
  {
    name: 'O16: a delta claims to be complete up to its start, not up to the end of its reads',
    patches: [
      {
        file: 'engine/cycle-tidemark.js',
        find: 'if (page.stated !== undefined)\n            return page.stated;',
        replace: 'if (page.stated !== undefined)\n            return startedAt;',
      },
    ],
    vendors: ['hubspot', 'salesforce'],
    kinds: ['delta'],
    overrides: LATE,
    seeds: 40,
    foundBy: 2,
  },
  {
    name: 'O17: a listing never wins against a later time',
    patches: [
      {
        file: 'stores/kit/resolve-landing.js',
        find: "return read.isListing && row.sequence <= read.readFrom ? 'contest' : 'stale';",
        replace: "return 'stale';",
      },
    ],
    vendors: ['hubspot', 'salesforce'],
    kinds: ['replace'],
    seeds: 20,
    foundBy: 1,
  },
  pauseMutant('a pause is not checked', 'if (ms <= 0)\n                return;', 'return;'),
  pauseMutant(
    'a stored pause is ignored by other processes',
    'const stored = pauses.filter(',
    'const stored = [].filter(',
  ),
  pauseMutant(
    'a pause is kept by the process alone',
    'await this.#store.recordPause({ worker: this.#worker, pacers: this.#pacers, origin, ms, at: now })',
    'await Promise.resolve()',
  ),
  pauseMutant(
    'a pause is stored for another worker',
    'recordPause({ worker: this.#worker,',
    'recordPause({ worker: `${this.#worker} of another account`,',
  ),
  pauseMutant(
    'a pause is stored for another origin',
    'pacers: this.#pacers, origin, ms, at: now }',
    "pacers: this.#pacers, origin: 'https://another.test', ms, at: now }",
  ),
  {
    ...pauseMutant('a stored pause never ends', '', ''),
    patches: [
      { file: PAUSES, find: 'ms: pause.until - now }', replace: 'ms: Math.max(60_000, pause.until - now) }' },
      { file: 'stores/kit/roles/pacing.js', find: 'p.until_at > n.now order', replace: 'p.until_at > 0 * n.now order' },
    ],
  },
  {
    name: 'O19: the delta of a pair is healthy whatever its backfill lacks',
    patches: [
      {
        file: 'runner/health.js',
        find: 'const hasLostChanges = backfill !== null && backfill.backfillNeeded !== null;',
        replace: 'backfill = null; const hasLostChanges = false;',
      },
    ],
    vendors: ['hubspot', 'salesforce'],
    kinds: ['pair'],
    seeds: 40,
    foundBy: 4,
  },
]

/** O18: bugs in the handling of announced pauses. */
function pauseMutant(name: string, find: string, replace: string): VendorMutant {
  return {
    name: `O18: ${name}`,
    patches: [{ file: PAUSES, find, replace }],
    vendors: ['hubspot', 'servicenow'],
    kinds: ['replace'],
    overrides: PAUSED,
    seeds: 40,
    foundBy: 12,
  }
}
