/** Reason why a feed request is rejected; each message includes the remedy. */
export type FeedErrorReason =
  | 'cursor_invalid'
  | 'cursor_unsupported'
  | 'cursor_misplaced'
  | 'cursor_filter'
  | 'cursor_expired'
  | 'time_invalid'
  | 'time_expired'
  | 'type_unknown'

/** How to recover: continue from a time, or read everything again. */
export type Restart = 'updatedSince' | 'backfill'

/** A fault of the request, not of the server. */
export class FeedError extends Error {
  override readonly name = 'FeedError'
  readonly reason: FeedErrorReason
  readonly restart: Restart | null

  constructor(reason: FeedErrorReason, message: string, restart: Restart | null = null) {
    super(message)
    this.reason = reason
    this.restart = restart
  }
}

export const RESTART_FROM_TIME =
  'Restart with `updatedSince` set to the newest `updatedAt` you have processed, or without a cursor for a fresh backfill.'
export const RESTART_FROM_START = 'Restart without `cursor` and `updatedSince` for a fresh backfill.'
