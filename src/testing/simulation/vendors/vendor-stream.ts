import type { Execute, JsonObject, SyncContext } from '../../../contract/index.ts'
import type { PacerOptions } from '../../../worker/worker.ts'
import type { Fields, SimulatorPorts } from '../../simulators/kit/simulator.ts'
import type { IndexLag } from '../../simulators/kit/versioned-records.ts'
import type { VendorSimulator } from '../../simulators/kit/vendor-simulator.ts'
import type { RandomStream } from '../random-stream.ts'

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
  /** How long the vendor keeps events and deleted records, where it does not keep them for ever. */
  readonly retentionMs?: number
  /** Its delta falls back to windows of time, which takes more pages. */
  readonly readsWindows?: boolean
  /** Its delta follows a log of changes, in the order of their times. */
  readonly readsLog?: boolean
  /** Its lists may be served by a copy of its store that is behind. */
  readonly hasReplicas?: boolean
  open(ports: SimulatorPorts, conditions: VendorConditions): VendorSimulator
  source(conditions: VendorConditions): VendorSource
  /** For a vendor that counts requests, and needs many for one page. */
  readonly pacer?: PacerOptions
  /** What must be there before the first record: a team, a repository. */
  prepare?(simulator: VendorSimulator): void
  /** Where a new record belongs, and stays. */
  parentFields?(simulator: VendorSimulator, chance: RandomStream): Fields
  /** The fields of the nth write. */
  fields(n: number, chance: RandomStream): Fields
  /** Which write made this row. */
  writeNumberOf(row: JsonObject): number
  /** How finely the vendor shows when a record was modified. */
  granularityMs(conditions: VendorConditions): number
  /** The row that a record of the simulator becomes. */
  rowOf(record: Fields, simulator: VendorSimulator): Fields
  readonly keyField: string
  /** Which lies this request may be told: what the vendor's documents warn of, and what its readers can tell. */
  supportsFault(fault: ResponseFault, request: VendorRequest): boolean
  /** The same answer without its rows, for `empty-page`. */
  withoutRows?(body: Fields): Fields
  /** Where the vendor counts all rows: a member of the body, or a header. For `wrong-total`. */
  readonly total?: { readonly member: string } | { readonly header: string } | { readonly path: readonly string[] }
  /** Which answer `page-repeated` gives again: the last on the same path, or that only if it is the page before. */
  readonly repeats?: 'page-before'
  /** The token that names a place, where this request has one. */
  tokenOf(request: VendorRequest): string | null
}

export interface VendorConditions {
  readonly pageSize: number
  readonly lag: IndexLag
  /** Whether the vendor counts requests. */
  readonly limited: boolean
}

export type VendorSource =
  | { readonly mode: 'replace'; readonly execute: Execute<any> }
  | {
      readonly backfill: Execute<any>
      readonly delta: Execute<any>
      readonly anchor: (context: SyncContext) => Promise<any>
      readonly guarantee: DeltaGuarantee
    }

/** What a delta alone may be asked for. */
export interface DeltaGuarantee {
  /** How far below its clock it stays. */
  readonly windowMs: number
  /** What its first cycle begins with: all there is, so much of the past, or nothing but what comes after it. */
  readonly startsFrom: 'first' | { readonly lookBackMs: number } | 'anchor'
  /** Of a complete cycle, by the state it leaves: what it has told of. */
  reports(state: any): { readonly changes: boolean; readonly deletes: boolean }
  /** How many cycles tell of everything. */
  readonly cyclesPerRound: number
}

export type ResponseFault =
  | 'end-flag-early' | 'end-flag-never' | 'short-page' | 'partial-answer'
  /** No rows, status 200, though there are some. */
  | 'empty-page'
  /** The answer to the request before, on the same path. */
  | 'page-repeated'
  /** The count of all rows is too high, too low or missing. */
  | 'wrong-total'
  /** An earlier answer to the same request, as old as the vendor's lag allows. */
  | 'cached-page'
  /** The same for a page of a list inside an object, while the object itself is read as it is. */
  | 'cached-nested-page'
  /** The order that was asked for is not kept. */
  | 'unsorted'
  /** The Date header is hours off, or missing. */
  | 'wrong-date'

export interface VendorRequest {
  readonly url: URL
  readonly body: string
}
