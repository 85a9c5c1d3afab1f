/** Why a request for a page cannot be answered; each message says what to do instead. */
export type FeedErrorReason =
  | 'cursor_invalid'
  | 'cursor_unsupported'
  | 'cursor_misplaced'
  | 'cursor_filter'
  | 'cursor_expired'
  | 'time_invalid'
  | 'time_expired'
  | 'type_unknown'

/** The way back: read on from a time, or read everything once more. */
export type Restart = 'updatedSince' | 'backfill'

/** The request is at fault, not the server. */
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

export const RESTART_FROM_TIME = 'Restart with `updatedSince` set to the newest `updatedAt` you have processed, or without a cursor for a fresh backfill.'
export const RESTART_FROM_START = 'Restart without `cursor` and `updatedSince`: a fresh backfill.'
