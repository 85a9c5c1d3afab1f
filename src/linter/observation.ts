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
  readonly repeats: readonly Repeat[]
  /** A page beyond the last one, asked for with the state that the last one gave. */
  readonly beyond: readonly ObservedChange[] | null
  readonly strays: readonly Stray[]
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
  readonly asked: string | null
  readonly next: string | null
  readonly hasMore: boolean
  readonly changes: readonly ObservedChange[]
}

export interface ObservedChange {
  readonly type: 'upsert' | 'delete'
  readonly key: string
  /** Database and key. */
  readonly place: string
  /** The record, as a digest. */
  readonly content: string
  /** Of the source, canonical. */
  readonly at: string | null
}

/** One page, asked for once more with the same state. */
export interface Repeat {
  readonly page: number
  readonly first: readonly ObservedChange[]
  readonly second: readonly ObservedChange[]
  /** Only where the first two differ: a source that lives may change once. */
  readonly third: readonly ObservedChange[] | null
}

/** Code of the worker reached for something that the context gives. */
export interface Stray {
  readonly what: 'clock' | 'chance' | 'fetch'
  /** File and line. */
  readonly where: string
}
