import type { VendorWorldConfig } from '../../src/testing/simulation/vendors/vendor-config.ts'
import type { VendorWorldKind } from '../../src/testing/simulation/vendors/vendor.ts'
import type { Mutant } from './mutants.ts'

/** A bug of the first connectors, planted back in a copy of the compiled code. */
export interface VendorMutant extends Pick<Mutant, 'name' | 'patches' | 'seeds'> {
  readonly vendors: readonly string[]
  readonly kinds: readonly VendorWorldKind[]
  readonly overrides?: Partial<VendorWorldConfig>
}

const KEYSET = 'strategies/keyset.js'
const EVENTS = 'strategies/event-feed.js'
const SEARCH = 'strategies/search.js'

/** Ties larger than a page, rows that show late, and answers that take their time. */
const TIED: Partial<VendorWorldConfig> = { pageSize: 3, records: 12, operations: 25, bulkShare: 0.3, gapMs: 15_000 }
const LATE: Partial<VendorWorldConfig> = { lag: { share: 0.6, maxMs: 9_000 }, vendorLatencyMs: [50, 3_000], operations: 40, records: 10, gapMs: 3_000, runnerGapMs: 500, rates: {} }

export const VENDOR_MUTANTS: readonly VendorMutant[] = [
  {
    name: 'D1 Salesforce: a short page is the end, whatever `done` says',
    patches: [{ file: 'sources/salesforce/source.js', find: 'end: isDone && records.length < limit,', replace: 'end: records.length < limit,' }],
    vendors: ['salesforce'], kinds: ['replace'], overrides: { pageSize: 4, records: 20, rates: { 'short-page': 0.2 } }, seeds: 40,
  },
  {
    name: 'D2 Salesforce: everything is read and the cursor capped by the clock afterwards, with the id of the newest row',
    patches: [
      { file: KEYSET, find: 'until: bounded ? isoOf(pinnedMs) : undefined,', replace: 'until: undefined,' },
      { file: KEYSET, find: 'const safe = bounded ? items.filter(({ instant }) => instant <= instantOfMs(untilMs)) : items;', replace: 'const safe = items;' },
      { file: KEYSET, find: 'endState(state, later(last, frontier, compareIds), bounded)', replace: '((capMs) => endState(state, last && instantMs(canonicalInstant(last.timestamp)) > capMs ? { timestamp: isoOf(capMs), id: last.id } : last, bounded))(context.clock.now() - lagMs)' },
    ],
    vendors: ['salesforce'], kinds: ['delta'], overrides: { ...LATE, lag: { share: 0.6, maxMs: 14_000 } }, seeds: 60,
  },
  {
    name: 'D3 Stripe: the next cursor is the last event of a page, which is the oldest',
    patches: [{ file: EVENTS, find: 'stateAt(safe.at(-1))', replace: 'stateAt(safe[0])' }],
    vendors: ['stripe'], kinds: ['delta', 'pair'], overrides: { pageSize: 8, records: 20, bulkShare: 0.5, gapMs: 15_000, operations: 25 }, seeds: 40,
  },
  {
    name: 'D4 Stripe: events are applied as they come, the newest first, and without their time',
    patches: [
      { file: EVENTS, find: 'changes: safe.flatMap(', replace: 'changes: safe.toReversed().flatMap(' },
      { file: EVENTS, find: 'if (change.upstreamUpdatedAt !== undefined)\n        return change;', replace: 'return { ...change, upstreamUpdatedAt: undefined };' },
    ],
    vendors: ['stripe'], kinds: ['delta', 'pair'], overrides: { pageSize: 8, records: 4, operations: 25, gapMs: 3_000 }, seeds: 40,
  },
  {
    name: 'D5 Stripe: without any event yet, an empty id is kept as the anchor',
    patches: [{ file: 'sources/stripe/source.js', find: '?? { cursor: null };', replace: "?? { cursor: '', cursorTime: isoOf(0) };" }],
    vendors: ['stripe'], kinds: ['delta', 'pair'], overrides: { records: 0, gapMs: 15_000 }, seeds: 40,
  },
  {
    name: 'D6 HubSpot: a tie is entered at the last id of a page that is sorted by time',
    patches: [{ file: SEARCH, find: 'isDeadlock ? deadlock(newestMs, untilMs, widthMs)', replace: 'isDeadlock ? { ...deadlock(newestMs, untilMs, widthMs), lastId: safe.at(-1).id }' }],
    vendors: ['hubspot'], kinds: ['delta', 'pair'], overrides: TIED, seeds: 40,
  },
  {
    name: 'D7 HubSpot: of an empty page the maximum becomes the cursor',
    patches: [{ file: SEARCH, find: 'times.reduce((most, ms) => Math.max(most, ms), cursorMs)', replace: 'Math.max(...times)' }],
    vendors: ['hubspot'], kinds: ['delta', 'pair'], seeds: 40,
  },
  {
    name: 'D8 HubSpot: the search has no upper end, and the cursor passes what is not indexed yet',
    patches: [
      { file: SEARCH, find: 'Math.min(state.untilMs, cursorMs + (widthMs ?? Number.POSITIVE_INFINITY))', replace: 'cursorMs + (widthMs ?? 1e12)' },
      { file: SEARCH, find: 'asked.filter(({ modifiedMs }) => modifiedMs <= untilMs)', replace: 'asked' },
    ],
    vendors: ['hubspot'], kinds: ['delta', 'pair'], overrides: LATE, seeds: 60,
  },
  {
    name: 'D9 ServiceNow: the phase of no state is asked for',
    patches: [{ file: 'strategies/flip-flop.js', find: "state ?? { phase: 'delta' }", replace: 'state' }],
    vendors: ['servicenow', 'hubspot'], kinds: ['delta'], seeds: 20,
  },
  {
    name: 'D11 HubSpot: the last id is sent as the page of a search',
    patches: [
      { file: 'sources/hubspot/source.js', find: "[filter('hs_object_id', 'GT', afterId)]", replace: '[]' },
      { file: 'sources/hubspot/source.js', find: 'filterGroups: [', replace: '...(afterId !== undefined && { after: afterId }), filterGroups: [' },
    ],
    vendors: ['hubspot'], kinds: ['delta', 'pair'], overrides: TIED, seeds: 40,
  },
  {
    name: 'D12 Salesforce: an empty page takes the cursor to the end of the buffer, though the query ended before',
    patches: [{ file: KEYSET, find: 'const last = safe.at(-1)?.place ?? after;', replace: "const last = safe.at(-1)?.place ?? (bounded && end ? { timestamp: isoOf(context.clock.now() - lagMs), id: '' } : after);" }],
    vendors: ['salesforce'], kinds: ['delta'], overrides: { ...LATE, records: 2, lag: { share: 0.6, maxMs: 14_000 } }, seeds: 60,
  },
]
