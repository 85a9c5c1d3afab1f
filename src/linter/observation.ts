import type { Change, ErrorCode, Mode } from '../contract/index.ts'

/** The observed behaviour of a sync. */
export interface Observation {
  readonly sync: string
  readonly mode: Mode
  /** The number of other syncs of the worker that write to its databases. */
  readonly otherWriters: number
  /** Whether deletions are detected, by this sync or by another one that reads everything. */
  readonly isSwept: boolean
  readonly pagesMax: number
  readonly cycles: readonly ObservedCycle[]
  readonly repeats: readonly PageRepeat[]
  /** The page after the last one, read with the final state. */
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
  /** The first call failed like code that does not expect a missing state. */
  readonly failedOnFirstRun: boolean
  /** Number of records by reason code. */
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
  readonly type: Change['type']
  readonly key: string
  /** Database and key. */
  readonly rowId: string
  readonly contentDigest: string
  /** The source's timestamp in canonical form. */
  readonly upstreamAt: string | null
}

/** One page, read again with the same state. */
export interface PageRepeat {
  readonly page: number
  readonly first: readonly ObservedChange[]
  readonly second: readonly ObservedChange[]
  /** Read only if the first two differ, because a live source may change once. */
  readonly third: readonly ObservedChange[] | null
}

/** Worker code used a global instead of the context. */
export interface GlobalAccess {
  readonly kind: 'clock' | 'chance' | 'fetch'
  /** File and line. */
  readonly location: string
}
