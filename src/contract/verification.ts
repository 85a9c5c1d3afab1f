import type { ErrorCode } from './errors.ts'
import type { Change, SyncContext } from './page.ts'

/**
 * The comparison of a copy with its source. `SourceChecks` is what a stream can be asked for it, a `Verification` the
 * stored result.
 */

/** Keys in the order of their UTF-8 bytes: above `after`, up to and including `upTo`. Null for no bound. */
export interface KeyRange {
  readonly after: string | null
  readonly upTo: string | null
}

/** Facts about the records of a key range, computed by the source. */
export interface RangeSummary {
  readonly count: number
  /** The sum, modulo 2^64, of the digests of the records; see RecordSummaries.fields. Absent if it cannot be computed. */
  readonly digest?: bigint
}

/** The summaries of ranges, in their order. */
export interface RecordSummaries {
  /**
   * The fields that the digests are made of, in this order; empty if the source only counts. A record is written as one
   * text: for each field `n` if it is null or absent, else `t`, the number of its characters, a colon and its text, which
   * is a string as it is, an integer in decimal, or `true` or `false`. The digest is the first 64 bits of the MD5 of that
   * text in UTF-8.
   */
  readonly fields: readonly string[]
  /** Some fields are not part of the digests, because their text differs between systems. */
  readonly isPartial?: boolean
  readonly ranges: readonly RangeSummary[]
}

/** A page of the records of a key range, in key order. */
export interface KeyPage {
  readonly changes: readonly Change[]
  /** More records of the range follow. */
  readonly hasMore: boolean
}

/** A page of keys, in key order. */
export interface KeyList {
  /** The source's time of the record, if it is known: a record with another time than the copy is read. */
  readonly keys: ReadonlyArray<{ readonly key: string; readonly upstreamUpdatedAt?: string }>
  readonly hasMore: boolean
}

/** The questions that compare a stream with its copy. Every member is optional: the verifier uses the strongest. */
export interface SourceChecks {
  /**
   * Counts the records of each range, and computes the sum of their digests over the fields whose text is the same
   * everywhere, except `ignore`. One query per range. Null if this stream cannot, such as for a composite key.
   */
  readonly summarize?: (
    ranges: readonly KeyRange[],
    options: { readonly ignore: readonly string[] },
    context: SyncContext,
  ) => Promise<RecordSummaries | null>
  /** Reads the records of a key range, in key order. */
  readonly read?: (range: KeyRange, context: SyncContext) => Promise<KeyPage>
  /** Reads the records of these keys in one request; a key without a record is absent. Without it, `lookup` is used. */
  readonly find?: (keys: readonly string[], context: SyncContext) => Promise<readonly Change[]>
  /** Lists the keys of a range, in key order: cheaper than their records. */
  readonly listKeys?: (range: KeyRange, context: SyncContext) => Promise<KeyList>
  /** Fields that the source computes when it is read. Differences in them are counted, and are no differences. */
  readonly ignore?: readonly string[]
}

/**
 * How a verification compared the copy with the source.
 *
 *   digests  counts and digests of key ranges, then the records of those that differ
 *   keys     a listing of the keys and times, then the records of those that differ
 *   listing  a listing of all records
 *   range    the records of a range of the source's times
 *   sample   single records of the copy
 */
export type VerificationMethod = 'digests' | 'keys' | 'listing' | 'range' | 'sample'

/**
 *   missing  the source has the record, the copy does not
 *   stale    the copy has another version
 *   extra    the copy has a record that the source does not have
 */
export type DifferenceKind = 'missing' | 'stale' | 'extra'

/** A row that differs from the source. */
export interface Difference {
  readonly key: string
  readonly kind: DifferenceKind
  /**
   * Whether the copy has to contain it: a cycle has completed since that must have read it. The others may be changes
   * since the last cycle.
   */
  readonly isSettled: boolean
  /** When a verification first saw this difference. */
  readonly since: number
  /** Identifies the source's version; null for `extra`. */
  readonly digest: string | null
  /** The source's time of its version, and that of the copy. */
  readonly upstreamAt: string | null
  readonly copyUpstreamAt: string | null
  readonly isRepaired: boolean
  readonly cause: DifferenceCause
}

/**
 * The likely reason of a difference.
 *
 *   late          the source showed the version later than the sync's lag allows
 *   skipped       the time of the version is before the tidemark, and no cycle returned it
 *   noTime        the record changed without a new time
 *   noDelete      the source's changes do not report the deletion
 *   wrongDelete   the copy deleted a record that the source has
 *   ahead         the copy has a later time than the source
 *   recent        it may be a change since the last cycle
 */
export type DifferenceCause = 'late' | 'skipped' | 'noTime' | 'noDelete' | 'wrongDelete' | 'ahead' | 'recent'

/** The result of a verification. */
export interface VerificationReport {
  /** `worker/sync` of every sync that was asked. */
  readonly syncs: readonly string[]
  readonly method: VerificationMethod
  /** The start of the range of times, for the method `range`. */
  readonly sinceTime: string | null
  readonly endedAt: number
  /** Rows of the copy and records of the source that were compared. */
  readonly rows: number
  readonly requests: number
  /** The number of settled differences by kind. */
  readonly differences: Readonly<Record<DifferenceKind, number>>
  /** Differences that may be changes since the last cycle. */
  readonly unsettled: number
  /** Rows that differ only in ignored fields. */
  readonly ignored: number
  /** Rows that changed while they were compared, and were equal when they were compared again. */
  readonly moved: number
  readonly repaired: number
  /** Why not everything was compared, such as `budget`; null if everything was. */
  readonly incomplete: VerificationGap | null
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  /** The first of them, settled ones first. */
  readonly found: readonly Difference[]
}

/**
 *   budget   the request budget was used up
 *   fields   the digests leave out fields whose text differs between systems, and nothing else was compared
 *   deletes  the source cannot list all records, so extra rows were not looked for
 *   sample   only a sample was compared
 *   range    only a range of times was compared
 *   moved    rows changed whenever they were compared
 *   limit    more rows differ than one verification handles
 */
export type VerificationGap = 'budget' | 'fields' | 'deletes' | 'sample' | 'range' | 'moved' | 'limit'

/** A verification of a database, as it is stored. */
export interface Verification {
  /** Counts up from 1 per tenant. */
  readonly id: number
  readonly database: string
  readonly actor: string
  readonly startedAt: number
  /** The holder while it runs, or after a crash; null once it has ended. */
  readonly heldBy: string | null
  /** Null while it runs, or if its process crashed. */
  readonly report: VerificationReport | null
}

/** The right to record the result of a verification. */
export interface VerificationClaim {
  readonly id: number
  readonly database: string
  readonly holder: string
}
