import type { LogEntry } from './store.ts'

/** A read of the feed: entries above a sequence, and the head of the log, in one consistent snapshot. */
export interface FeedQuery {
  readonly after: number
  /** 0 returns no entries, only the head of the log. */
  readonly limit: number
  readonly databases?: readonly string[]
  /** Returns only the current version of each row, in the order of their last change. */
  readonly liveOnly?: boolean
  /** The number of sequences to scan for matching entries; without a filter every entry matches. */
  readonly scanMax: number
  /** The page ends once its records reach this many bytes. It always holds at least one entry. */
  readonly bytesMax?: number
}

/** A page of the change log, with the bounds of the log at the time of the read. */
export interface FeedPage {
  /** The newest sequence. */
  readonly headSequence: number
  readonly headCommittedAt: number
  /** The log is compacted up to this sequence: superseded entries and tombstones below it are deleted. */
  readonly floor: number
  readonly floorCommittedAt: number
  /**
   * When the entry `after` was committed; null if it is compacted away or never existed. A store that was restored from
   * a backup assigns another time to the same sequence, which exposes a cursor from before the restore.
   */
  readonly afterCommittedAt: number | null
  readonly entries: readonly FeedEntry[]
  /** Every matching entry up to this sequence is in `entries`, or is not above `after`. */
  readonly scannedSequence: number
  /** When the entry `scannedSequence` was committed; 0 if it is compacted away or never existed. */
  readonly scannedCommittedAt: number
}

/** A log entry as the feed serves it. */
export type FeedEntry = Pick<LogEntry, 'sequence' | 'database' | 'key' | 'action' | 'text' | 'committedAt'>

/** Limits of one compaction step of the change log. */
export interface CompactRequest {
  /**
   * The current time, in ms. Databases with a history longer than the log drop versions that ended before their
   * retention. If absent, they drop nothing.
   */
  readonly at?: number
  /** Only entries committed, and cycles ended, before this time, in ms. */
  readonly before: number
  /** The maximum number of sequences to scan and of cycles to delete, so that writers do not wait long. */
  readonly scanMax: number
}

/** The effect of one compaction step. */
export interface CompactResult {
  readonly floor: number
  /** Deleted log entries. */
  readonly removedEntries: number
  /** Deleted cycle records. */
  readonly removedCycles: number
  /** More remains to be compacted before the same time. */
  readonly hasMore: boolean
}

/** Encrypts the cursors of one tenant. */
export interface CursorSecret {
  readonly secret: string
  readonly createdAt: number
}

/** A new secret for signing cursors, and the rule that decides whether it is stored. */
export interface CursorSecretCandidate extends CursorSecret {
  /** The candidate is stored if there is no secret, or if the newest is older than this. */
  readonly rotateAfterMs: number
  /** An old secret is kept for this long after its replacement. */
  readonly retainMs: number
}

/** An API key. Only the hash of its secret is stored. */
export interface ApiKey {
  readonly id: string
  readonly tenant: string
  readonly name: string
  /** SHA-256 of the secret, in hex. */
  readonly hash: string
  readonly scopes: readonly string[]
  /** Requests per minute. */
  readonly rateLimit: number
  readonly createdAt: number
  /** The key is invalid from this time on; null if it is not revoked. */
  readonly endsAt: number | null
}
