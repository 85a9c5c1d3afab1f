import type { DeleteMode, Mode } from '../../contract/index.ts'
import type { SourceContract } from './adversarial-source.ts'
import { FAULT_KINDS, type FaultKind } from './fault-injector.ts'
import { RandomStream } from './random-stream.ts'

/**
 * replace  one listing                          pair    a listing and a delta, one owner, concurrent
 * delta    one keyset delta, checked on its own owners  two listings with different owners, one database
 * lie      a listing that omits most rows
 */
export const WORLD_KINDS = ['replace', 'delta', 'pair', 'owners', 'lie'] as const
/** A kind of simulated world: its syncs, and the mistakes of its source. */
export type WorldKind = (typeof WORLD_KINDS)[number]

/** The properties of one simulated world, drawn from its seed. */
export interface WorldConfig extends SourceContract {
  readonly kind: WorldKind
  /** Maximum error of the runners' clocks; `usesSourceTime` is for worlds where it exceeds this. */
  readonly runnerSkewMs: number
  readonly usesSourceTime: boolean
  readonly deletions: 'none' | 'inline' | 'apart'
  /** Whether listings show the timestamp of each record. */
  readonly stamped: boolean
  readonly records: number
  readonly operations: number
  readonly gapMs: number
  /** Share of writes that touch many records at the same time: ties larger than a page. */
  readonly bulkShare: number
  /** Share of writes that delete; deleted records are recreated as often as there are any. */
  readonly deleteShare: number
  /** Share of writes that no database can store. */
  readonly unstorableShare: number
  readonly runners: number
  readonly runnerGapMs: number
  readonly sourceLatencyMs: readonly [number, number]
  /** Latency of listings or of the delta; `sourceLatencyMs` when absent. */
  readonly responseLatencyMs?: Readonly<Partial<Record<Mode, readonly [number, number]>>>
  readonly storeLatencyMs: readonly [number, number]
  readonly leaseTtlMs: number
  readonly deadlineMs: number
  readonly retriesMax: number
  readonly pagesMax: number
  /** How much longer than the window the world is idle before the last cycles begin. */
  readonly restMs: number
  /** `some`: fewer than the delete limit allows, so that only lookups detect it. */
  readonly omission: 'none' | 'some' | 'most' | 'all'
  /** Share of writes with an earlier time than the record had: the source's clock is wrong. For listings alone. */
  readonly backStampShare: number
  /** The source supports lookups of one record. */
  readonly lookup: boolean
  /**
   * How a delete treats its row; hard when absent, as the seeds draw it. `changing`: every other process run has the
   * other setting.
   */
  readonly deletes?: DeleteMode | 'changing'
  readonly rates: Readonly<Partial<Record<FaultKind, number>>>
}

/** A world's conditions, drawn from a wide range: many different worlds find more than a thousand similar ones. */
export function drawConfig(seed: number, kind?: WorldKind, overrides: Partial<WorldConfig> = {}): WorldConfig {
  const chance = new RandomStream(seed, 'config')
  const any = chance.pick(KIND_WEIGHTS)
  const drawn = kind ?? any
  const config: WorldConfig = {
    kind: drawn,
    lagMs: chance.pick([0, 0, 500, 3_000, 20_000]),
    skewMs: chance.pick([0, 0, 0, 300, 2_000]),
    granularityMs: chance.pick([1, 1, 1_000, 1_000, 10_000]),
    pageSize: chance.int(2, 12),
    emptyPages: chance.chance(0.5),
    shuffled: chance.chance(0.3),
    monotonic: true,
    plain: chance.chance(0.15),
    runnerSkewMs: chance.pick([0, 0, 500, 5_000]),
    usesSourceTime: chance.chance(0.3),
    deletions: chance.pick(['none', 'inline', 'apart']),
    // A listing without timestamps beside a delta with them has directed tests of its own.
    stamped: chance.chance(0.75) || drawn === 'pair',
    records: chance.chance(0.3) ? chance.int(2, 6) : chance.int(3, 40),
    deleteShare: chance.pick([0.15, 0.15, 0.4]),
    operations: chance.int(10, 50),
    gapMs: chance.pick([500, 3_000, 15_000]),
    bulkShare: chance.pick([0, 0.05, 0.2]),
    unstorableShare: chance.pick([0, 0, 0.05]),
    runners: chance.int(1, 3),
    runnerGapMs: chance.pick([500, 3_000, 10_000]),
    sourceLatencyMs: chance.pick([
      [2, 30],
      [20, 400],
      [50, 3_000],
      [500, 12_000],
    ]),
    storeLatencyMs: chance.pick([
      [1, 5],
      [5, 100],
      [50, 4_000],
    ]),
    leaseTtlMs: chance.pick([2_000, 10_000]),
    deadlineMs: chance.pick([15_000, 60_000]),
    retriesMax: chance.int(1, 5),
    pagesMax: chance.pick([3, 100_000, 100_000]),
    restMs: 0,
    omission: drawn === 'lie' ? chance.pick(['most', 'all']) : 'none',
    backStampShare: 0,
    lookup: false,
    rates: { ...drawRates(chance), ...(drawn === 'lie' && { 'listing-lie': 0.6 }) },
  }
  // A change without a log entry leaves no sequence of when it was read: a tombstone whose time rises, a row found
  // unchanged. Where two syncs overlap, timestamps alone must then decide.
  const told = {
    ...(drawn === 'pair' && config.deletions !== 'none' && { skewMs: 0 }),
    ...(config.plain && { stamped: true }),
  }
  const behind = chance.chance(0.15) && (drawn === 'pair' || drawn === 'replace')
  return { ...config, ...told, ...(behind && LAGGING_REPLICA), ...overrides }
}

/** Listings from a lagging replica: only distinct timestamps reveal which of two versions is newer. */
const LAGGING_REPLICA = {
  monotonic: false,
  lagMs: 3_000,
  skewMs: 0,
  granularityMs: 1,
  stamped: true,
  plain: false,
} as const

const KIND_WEIGHTS: readonly WorldKind[] = ['replace', 'delta', 'delta', 'pair', 'pair', 'pair', 'owners', 'lie']

const PROCESS_FAULTS: ReadonlySet<FaultKind> = new Set(['crash', 'freeze', 'terminate', 'clock-step'])

function drawRates(chance: RandomStream): Partial<Record<FaultKind, number>> {
  const rates: Partial<Record<FaultKind, number>> = {}
  const store = chance.pick([0, 0.1, 0.3])
  const source = chance.pick([0, 0.1, 0.4])
  const page = chance.pick([0, 0.1, 0.4])
  const process = chance.pick([0, 0.01, 0.05])
  for (const kind of FAULT_KINDS) {
    if (kind === 'listing-lie') continue
    const on = chance.chance(0.7)
    const share = PROCESS_FAULTS.has(kind)
      ? process / 3
      : kind.startsWith('store-') || kind.endsWith('-unknown') || kind === 'applied-late'
        ? store / 3
        : PAGE_FAULTS.has(kind)
          ? page / 4
          : source / 4
    if (on && share > 0) rates[kind] = share
  }
  return rates
}

const PAGE_FAULTS: ReadonlySet<FaultKind> = new Set([
  'page-repeated',
  'rows-duplicated',
  'short-page',
  'empty-page',
  'end-flag-early',
  'end-flag-never',
])
