import type { IndexLag } from '@tidemark/simulators'
import type { FleetConditions } from '../fleet.ts'
import { RESPONSE_FAULT_KINDS, type FaultKind } from '../fault-injector.ts'
import { RandomStream } from '../random-stream.ts'
import { OPT_IN_STREAMS, VENDOR_STREAMS } from './vendor-streams.ts'
import { VENDOR_WORLD_KINDS, type VendorConditions, type VendorStream, type VendorWorldKind } from './vendor-stream.ts'

export interface VendorWorldConfig extends FleetConditions, VendorConditions {
  readonly stream: VendorStream
  readonly kind: VendorWorldKind
  readonly records: number
  readonly operations: number
  readonly gapMs: number
  /** Share of writes that touch many records at the same time: ties larger than a page. */
  readonly bulkShare: number
  /** How often, within one second, such a write touches all of them. */
  readonly bulkRepeats: number
  readonly deleteShare: number
  /** Constant error of the vendor's Date header. */
  readonly dateSkewMs: number
  /** Replication lag of lists, where they are served by a replica of the vendor's store. */
  readonly replicaBehindMs: number
  /** Once, no sync runs for longer than the vendor keeps its history. */
  readonly hasLongDowntime: boolean
  /** How far the vendor's clock is set back in the middle of the workload. */
  readonly clockBackMs: number
  readonly vendorLatencyMs: readonly [number, number]
  readonly deadlineMs: number
  readonly retriesMax: number
  readonly pagesMax: number
  readonly rates: Readonly<Partial<Record<FaultKind, number>>>
}

export interface VendorSelection {
  /** Only these vendors; all when absent. */
  readonly vendors?: readonly string[] | undefined
  readonly kinds?: readonly VendorWorldKind[] | undefined
  readonly overrides?: Partial<VendorWorldConfig> | undefined
}

/** The faults of a vendor's runners, store and responses. */
export const VENDOR_FAULT_KINDS: readonly FaultKind[] = [
  'crash',
  'freeze',
  'terminate',
  'clock-step',
  'store-busy',
  'store-unavailable',
  'applied-unknown',
  'applied-late',
  'lost-unknown',
  'rate-limited',
  'server-error',
  'truncated',
  'timeout-before',
  'timeout-after',
  'late-answer',
  'short-page',
  'end-flag-early',
  'end-flag-never',
  'empty-page',
  'page-repeated',
  ...RESPONSE_FAULT_KINDS,
]

/** All kinds of worlds: each stream in each mode in which it can be read. */
export function listWorlds({
  vendors,
  kinds,
}: VendorSelection): Array<{ stream: VendorStream; kind: VendorWorldKind }> {
  const streams =
    vendors === undefined
      ? VENDOR_STREAMS
      : [...VENDOR_STREAMS, ...OPT_IN_STREAMS].filter(({ vendor }) => vendors.includes(vendor))
  return streams.flatMap((stream) =>
    VENDOR_WORLD_KINDS.filter(
      (kind) =>
        (kinds === undefined || kinds.includes(kind)) &&
        (kind === 'replace' || 'delta' in stream.source({ pageSize: 1, lag: NO_LAG, limited: false })),
    ).map((kind) => ({ stream, kind })),
  )
}

const NO_LAG: IndexLag = { share: 0, maxMs: 0 }

/** A world's conditions, drawn from a wide range. */
export function drawVendorConfig(seed: number, choice: VendorSelection = {}): VendorWorldConfig {
  const chance = new RandomStream(seed, 'vendor config')
  const { stream, kind } = chance.pick(listWorlds(choice))
  const gapMs = chance.pick([500, 3_000, 15_000])
  const isBig = new RandomStream(seed, 'vendor size').chance(0.02)
  const extra = new RandomStream(seed, 'vendor conditions')
  const config: VendorWorldConfig = {
    stream,
    kind,
    pageSize: chance.int(2, 8) * (isBig ? 10 : 1),
    lag: chance.pick([
      NO_LAG,
      { share: 0.3, maxMs: Math.ceil(stream.lagMaxMs / 3) },
      { share: 0.3, maxMs: stream.lagMaxMs },
    ]),
    limited: chance.chance(0.3),
    records: Math.min(chance.int(1, 20) * (isBig ? 12 : 1), stream.recordsMax ?? Infinity),
    operations: chance.int(5, 20),
    gapMs,
    bulkShare: chance.pick([0, 0.1, 0.3]),
    bulkRepeats: extra.pick([1, 1, 3]),
    deleteShare: chance.pick([0.1, 0.1, 0.4]),
    dateSkewMs: extra.pick([0, 0, 0, -3_600_000, 3_600_000, 20_000]),
    replicaBehindMs: extra.chance(0.4) && stream.hasReplicas === true ? Math.floor(stream.lagMaxMs / 3) : 0,
    hasLongDowntime: kind === 'pair' && stream.retentionMs !== undefined && extra.chance(0.2),
    // A delta alone cannot repair a write with an older timestamp.
    clockBackMs: kind === 'delta' ? 0 : extra.pick([0, 0, 0, 0, 3_000, 60_000]),
    runners: chance.int(1, 2),
    // A few cycles for every write, or a few writes for every cycle: more of either adds no coverage.
    runnerGapMs: chance.pick([Math.ceil(gapMs / 3), gapMs, 2 * gapMs]),
    runnerSkewMs: chance.pick([0, 0, 500, 5_000]),
    vendorLatencyMs: chance.pick([
      [2, 30],
      [20, 400],
      [50, 3_000],
    ]),
    storeLatencyMs: chance.pick([
      [1, 5],
      [5, 100],
      [50, 2_000],
    ]),
    leaseTtlMs: chance.pick([2_000, 10_000]),
    deadlineMs: chance.pick([15_000, 60_000]),
    retriesMax: chance.int(1, 5),
    pagesMax: chance.pick([3, 100_000, 100_000]),
    // There are few nested pages, and fewer that are requested twice within the lag.
    rates: {
      ...drawRates(chance),
      'cached-nested-page': new RandomStream(seed, 'vendor nested pages').pick([0, 0, 0.2, 0.6]),
    },
  }
  // A lagging replica shows a late write later still. Both together stay within the lag that the source declares.
  const replicaBehindMs = Math.min(config.replicaBehindMs, stream.lagMaxMs - config.lag.maxMs)
  // A runner corrects its clock by the Date header. Where that is wrong too, the error of the clock adds to the lag.
  const isDateWrong = config.dateSkewMs !== 0 || (config.rates['wrong-date'] ?? 0) > 0
  const skewMaxMs = isDateWrong ? Math.max(0, stream.lagMaxMs - config.lag.maxMs - replicaBehindMs) : Infinity
  return { ...config, replicaBehindMs, runnerSkewMs: Math.min(config.runnerSkewMs, skewMaxMs), ...choice.overrides }
}

function drawRates(chance: RandomStream): Partial<Record<FaultKind, number>> {
  const rates: Partial<Record<FaultKind, number>> = {}
  const shares = {
    process: chance.pick([0, 0.01, 0.05]) / 3,
    store: chance.pick([0, 0.1, 0.3]) / 3,
    line: chance.pick([0, 0.1, 0.4]) / 5,
    answer: chance.pick([0, 0.1, 0.4]) / 7,
  }
  for (const kind of VENDOR_FAULT_KINDS) {
    const on = chance.chance(0.7)
    const share = shares[FAULT_GROUPS[kind] ?? 'answer']
    if (on && share > 0) rates[kind] = share
  }
  return rates
}

const FAULT_GROUPS: Partial<Record<FaultKind, 'process' | 'store' | 'line'>> = {
  crash: 'process',
  freeze: 'process',
  terminate: 'process',
  'clock-step': 'process',
  'store-busy': 'store',
  'store-unavailable': 'store',
  'applied-unknown': 'store',
  'applied-late': 'store',
  'lost-unknown': 'store',
  'rate-limited': 'line',
  'server-error': 'line',
  truncated: 'line',
  'timeout-before': 'line',
  'timeout-after': 'line',
  'late-answer': 'line',
}
