import type { ErrorCode, Mode } from '../contract/index.ts'

/** What a sync did in the cycles it was watched. */
export interface Observation {
  readonly sync: string
  readonly mode: Mode
  /** Other syncs of the worker that fill one of its databases. */
  readonly otherWriters: number
  /** Whether one of them, or itself, lists everything and so finds deletions. */
  readonly isSwept: boolean
  readonly pagesMax: number
  readonly cycles: readonly ObservedCycle[]
  readonly repeats: readonly PageRepeat[]
  /** A page beyond the last one, asked for with the state that the last one gave. */
  readonly changesAfterEnd: readonly ObservedChange[] | null
  readonly globalAccesses: readonly GlobalAccess[]
  readonly requests: number
}

export interface ObservedCycle {
  readonly startedAt: number
  readonly endedAt: number
  readonly pages: readonly ObservedPage[]
  readonly stopReason: string
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  /** The very first call failed as code does that does not expect to be without a state. */
  readonly failedOnFirstRun: boolean
  /** Code of the reason → how many records. */
  readonly quarantined: Readonly<Record<string, number>>
  readonly committed: string | null
}

export interface ObservedPage {
  readonly requestedState: string | null
  readonly nextState: string | null
  readonly hasMore: boolean
  readonly changes: readonly ObservedChange[]
}

export interface ObservedChange {
  readonly type: 'upsert' | 'delete'
  readonly key: string
  /** Database and key. */
  readonly rowId: string
  /** The record, as a digest. */
  readonly contentDigest: string
  /** Of the source, canonical. */
  readonly upstreamAt: string | null
}

/** One page, asked for once more with the same state. */
export interface PageRepeat {
  readonly page: number
  readonly first: readonly ObservedChange[]
  readonly second: readonly ObservedChange[]
  /** Only where the first two differ: a source that lives may change once. */
  readonly third: readonly ObservedChange[] | null
}

/** Code of the worker reached for something that the context gives. */
export interface GlobalAccess {
  readonly kind: 'clock' | 'chance' | 'fetch'
  /** File and line. */
  readonly location: string
}
