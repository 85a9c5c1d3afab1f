import type { LogEntry } from './store.ts'

/** What the feed asks of a store: entries above a place, and where the feed stands, all seen at one moment. */
export interface FeedQuery {
  readonly after: number
  /** None at all for 0: only where the feed stands. */
  readonly limit: number
  readonly databases?: readonly string[]
  /** Only entries that a row stands on now: the rows in the order of their last change. */
  readonly liveOnly?: boolean
  /** How many sequences to look through for entries that are wanted; without a filter every entry is. */
  readonly scanMax: number
  /** The entries end once their records have this many bytes together. One entry is always given. */
  readonly bytesMax?: number
}

export interface FeedPage {
  /** The newest sequence. */
  readonly headSequence: number
  readonly headCommittedAt: number
  /** Up to here the log was compacted: what no row stands on is gone, tombstones above all. */
  readonly floor: number
  readonly floorCommittedAt: number
  /**
   * When the entry `after` was committed; null when it is gone, or never was. A store that was set back and went on gives
   * another time to the same sequence, and so tells a place of its former self.
   */
  readonly afterCommittedAt: number | null
  readonly entries: readonly FeedEntry[]
  /** Everything wanted up to here is in `entries`, or was before `after`. */
  readonly scannedSequence: number
  /** When the entry `scanned` was committed; 0 when it is gone, or never was. */
  readonly scannedCommittedAt: number
}

export type FeedEntry = Pick<LogEntry, 'sequence' | 'database' | 'key' | 'action' | 'text' | 'committedAt'>

export interface CompactRequest {
  /** Now, in ms: databases that keep their history longer than the log drop what ended so many days before. Absent: they drop nothing. */
  readonly at?: number
  /** Only what was committed, and cycles that ended, before this time, in ms. */
  readonly before: number
  /** How many sequences to look through, and cycles to forget, at most, so that writers need not wait for long. */
  readonly scanMax: number
}

export interface CompactResult {
  readonly floor: number
  /** Entries of the log. */
  readonly removedEntries: number
  /** Records of cycles. */
  readonly removedCycles: number
  /** There is more to do before the same time. */
  readonly hasMore: boolean
}

/** Seals the cursors of one tenant. */
export interface CursorSecret {
  readonly secret: string
  readonly createdAt: number
}

export interface CursorSecretCandidate extends CursorSecret {
  /** Taken when there is none, or when the newest is older than this. */
  readonly rotateAfterMs: number
  /** An old one is kept this long after its successor came. */
  readonly retainMs: number
}

/** A key of the served side. Only a hash of its secret is kept. */
export interface ApiKey {
  readonly id: string
  readonly tenant: string
  readonly name: string
  /** SHA-256 of the secret, in hex. */
  readonly hash: string
  readonly scopes: readonly string[]
  /** Requests a minute. */
  readonly rateLimit: number
  readonly createdAt: number
  /** Not valid from here on; null when nobody has ended it. */
  readonly endsAt: number | null
}
