import type { Fields, IndexLag, SimulatorPorts, VendorSimulator } from '@tidemark/simulators'
import type { Execute, JsonObject, SyncContext } from '../../../contract/index.ts'
import type { PacerOptions } from '../../../worker/worker.ts'
import type { RandomStream } from '../random-stream.ts'

/**
 * replace  the listing alone, swept after each cycle
 * delta    the vendor's reported changes alone, checked for what the vendor can report
 * pair     both over one table, as `worker.track` declares them
 */
export const VENDOR_WORLD_KINDS = ['replace', 'delta', 'pair'] as const
export type VendorWorldKind = (typeof VENDOR_WORLD_KINDS)[number]

/** One stream of a vendor: its simulated API, the source that reads it, and the guarantees of that source. */
export interface VendorStream {
  readonly vendor: string
  readonly name: string
  /** The record type in the simulator. */
  readonly type: string
  /** The longest visibility delay of a write that the source tolerates without losing it. */
  readonly lagMaxMs: number
  /** How long the vendor keeps events and deleted records, where it expires them. */
  readonly retentionMs?: number
  /** Its delta falls back to time windows, which takes more pages. */
  readonly readsWindows?: boolean
  /** Its delta follows a log of changes, in timestamp order. */
  readonly readsLog?: boolean
  /** The largest number of records in a world. */
  readonly recordsMax?: number
  /** Its lists may be served by a lagging replica. */
  readonly hasReplicas?: boolean
  open(ports: SimulatorPorts, conditions: VendorConditions): VendorSimulator
  source(conditions: VendorConditions): VendorSource
  /** For a vendor that limits requests, and needs many for one page. */
  readonly pacer?: PacerOptions
  /** Prerequisites of the first record: a team, a repository. */
  prepare?(simulator: VendorSimulator): void
  /** The parent of a new record, which never changes. */
  parentFields?(simulator: VendorSimulator, chance: RandomStream): Fields
  /** The fields of the nth write. */
  fields(n: number, chance: RandomStream): Fields
  /** The write that produced this row. */
  writeNumberOf(row: JsonObject): number
  /** Granularity of the modification time the vendor shows. */
  granularityMs(conditions: VendorConditions): number
  /** The row that a simulator record becomes. */
  rowOf(record: Fields, simulator: VendorSimulator): Fields
  readonly keyField: string
  /** The false responses this request may get: those the vendor's documentation warns of and its readers can detect. */
  supportsFault(fault: ResponseFault, request: VendorRequest): boolean
  /** The same response without its rows, for `empty-page`. */
  withoutRows?(body: Fields): Fields
  /** Location of the total row count: a field of the body, or a header. For `wrong-total`. */
  readonly total?: { readonly member: string } | { readonly header: string } | { readonly path: readonly string[] }
  /** Which response `page-repeated` repeats: the last on the same path, or that only if it is the page before. */
  readonly repeats?: 'page-before'
  /** The cursor token of this request, if it has one. */
  tokenOf(request: VendorRequest): string | null
}

export interface VendorConditions {
  readonly pageSize: number
  readonly lag: IndexLag
  /** Whether the vendor limits requests. */
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

/** The guarantees of a delta alone. */
export interface DeltaGuarantee {
  /** How far it stays behind the clock. */
  readonly windowMs: number
  /** Scope of its first cycle: everything, part of the past, or only later changes. */
  readonly startsFrom: 'first' | { readonly lookBackMs: number } | 'anchor'
  /** The time up to which a complete cycle has reported, by the state it leaves. */
  reports(state: any): { readonly changes: boolean; readonly deletes: boolean }
  /** How many cycles it takes to report everything. */
  readonly cyclesPerRound: number
}

export type ResponseFault =
  | 'end-flag-early'
  | 'end-flag-never'
  | 'short-page'
  | 'partial-answer'
  /** No rows, status 200, though there are some. */
  | 'empty-page'
  /** The response to the previous request on the same path. */
  | 'page-repeated'
  /** The total row count is too high, too low or missing. */
  | 'wrong-total'
  /** An earlier response to the same request, as old as the vendor's lag allows. */
  | 'cached-page'
  /** The same for a page of a nested list, while the object itself is current. */
  | 'cached-nested-page'
  /** The requested order is not kept. */
  | 'unsorted'
  /** The Date header is hours off, or missing. */
  | 'wrong-date'

export interface VendorRequest {
  readonly url: URL
  readonly body: string
}
