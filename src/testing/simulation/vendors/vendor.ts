import type { Execute, JsonObject, SyncContext } from '../../../contract/index.ts'
import type { PacerOptions } from '../../../config/worker.ts'
import type { Fields, SimulatorPorts } from '../../simulators/kit/simulator.ts'
import type { Lag } from '../../simulators/kit/truth-table.ts'
import type { VendorSimulator } from '../../simulators/kit/vendor-simulator.ts'
import type { Stream } from '../random.ts'

/**
 * replace  the listing alone, swept after each cycle
 * delta    what the vendor tells of changes alone, judged on what it can tell
 * pair     both over one table, as `worker.track` declares them
 */
export const VENDOR_WORLD_KINDS = ['replace', 'delta', 'pair'] as const
export type VendorWorldKind = (typeof VENDOR_WORLD_KINDS)[number]

/** One stream of a vendor: its API as a simulator plays it, the source that reads it, and what that source promises. */
export interface VendorStream {
  readonly vendor: string
  readonly name: string
  /** In the simulator. */
  readonly type: string
  /** The longest that a write may take to show without the source losing it. */
  readonly lagMaxMs: number
  open(ports: SimulatorPorts, conditions: VendorConditions): VendorSimulator
  source(conditions: VendorConditions): VendorSource
  /** For a vendor that counts requests, and needs many for one page. */
  readonly pacer?: PacerOptions
  /** What must be there before the first record: a team, a repository. */
  prepare?(simulator: VendorSimulator): void
  /** Where a new record belongs, and stays. */
  home?(simulator: VendorSimulator, chance: Stream): Fields
  /** The fields of the nth write. */
  fields(n: number, chance: Stream): Fields
  /** Which write made this row. */
  writeOf(row: JsonObject): number
  /** The row that a record of the simulator becomes. */
  rowOf(record: Fields, simulator: VendorSimulator): Fields
  readonly keyField: string
  /** Which lies this request may be told: what the vendor's documents warn of, and what its readers can tell. */
  suffers(fault: AnswerFault, request: AnswerRequest): boolean
  /** The token that names a place, where this request has one. */
  tokenOf(request: AnswerRequest): string | null
}

export interface VendorConditions {
  readonly pageSize: number
  readonly lag: Lag
  /** Whether the vendor counts requests. */
  readonly limited: boolean
}

export type VendorSource =
  | { readonly mode: 'replace'; readonly execute: Execute<any> }
  | {
      readonly backfill: Execute<any>
      readonly delta: Execute<any>
      readonly anchor: (context: SyncContext) => Promise<any>
      readonly promise: DeltaPromise
    }

/** What a delta alone may be asked for. */
export interface DeltaPromise {
  /** How far below its clock it stays. */
  readonly windowMs: number
  /** What its first cycle begins with: all there is, so much of the past, or nothing but what comes after it. */
  readonly begins: 'first' | { readonly lookBackMs: number } | 'anchor'
  /** Of a complete cycle, by the state it leaves: what it has told of. */
  tells(state: any): { readonly changes: boolean; readonly deletes: boolean }
  /**
   * What it tells is as things were, and a reading of things as they are, by a listing or by the delta itself where an event was cut,
   * says only from when on it is right. So what happened while it was under way may take its rows back for a while, until the delta
   * has come to the present.
   */
  readonly tellsPast?: true
  /** How many cycles tell of everything. */
  readonly cyclesPerRound: number
}

export type AnswerFault = 'end-flag-early' | 'end-flag-never' | 'short-page' | 'partial-answer'

export interface AnswerRequest {
  readonly url: URL
  readonly body: string
}
