import {
  SyncError,
  type DestinationPosition,
  type DestinationProgress,
  type DestinationToken,
} from '../../contract/index.ts'

/** The bounds of the log when the position was compared with it. */
export interface LogFacts {
  readonly storeId: string
  /** The epoch of the claim. */
  readonly epoch: number
  readonly headSequence: number
  readonly floor: number
  /** When the sequence of a token was committed; null if unknown. */
  committedAt(sequence: number): Promise<number | null>
}

/** How a database is brought up to date. */
export type Start =
  | { readonly kind: 'follow'; readonly token: DestinationToken; readonly isRestored: boolean }
  /** An unfinished load continues. */
  | { readonly kind: 'resume'; readonly token: DestinationToken }
  | { readonly kind: 'load'; readonly reason: LoadReason; readonly replaces: DestinationToken | null }

/**
 *   - `new`: the destination does not have the database.
 *   - `missing`: it had the database, but no longer does.
 *   - `requested`: an operator requested it.
 *   - `behind`: the log no longer has the changes since the token.
 */
export type LoadReason = 'new' | 'missing' | 'requested' | 'behind'

/**
 * Compares the tokens in the destination with the log. The tokens decide what is applied; the status in the store only
 * shows that a destination went back. Throws if the destination has changes that are not from this log.
 */
export async function decideStart(
  { live, loading }: DestinationPosition,
  log: LogFacts,
  recorded: DestinationProgress | undefined,
  isRequested: boolean,
): Promise<Start> {
  if (isRequested) return { kind: 'load', reason: 'requested', replaces: loading }
  for (const token of [live, loading]) if (token !== null) await checkToken(token, log)
  if (loading !== null) {
    if (loading.sequence >= log.floor) return { kind: 'resume', token: loading }
    return { kind: 'load', reason: 'behind', replaces: loading }
  }
  if (live === null) return { kind: 'load', reason: recorded === undefined ? 'new' : 'missing', replaces: null }
  if (live.sequence < log.floor) return { kind: 'load', reason: 'behind', replaces: null }
  return { kind: 'follow', token: live, isRestored: recorded !== undefined && live.sequence < recorded.sequence }
}

async function checkToken(token: DestinationToken, log: LogFacts): Promise<void> {
  if (token.storeId !== log.storeId)
    throw new SyncError(
      'DESTINATION_FOREIGN',
      `The destination has rows of another store (${token.storeId}; this one is ${log.storeId}). Nothing was changed.`,
    )
  if (token.epoch > log.epoch)
    throw new SyncError(
      'DESTINATION_AHEAD',
      `The destination was written with epoch ${token.epoch}, but this store is at epoch ${log.epoch}. Nothing was changed.`,
    )
  const committedAt = token.sequence > log.headSequence ? null : await log.committedAt(token.sequence)
  const isOtherLog = committedAt !== null && token.committedAt !== 0 && committedAt !== token.committedAt
  if (token.sequence > log.headSequence || isOtherLog)
    throw new SyncError(
      'DESTINATION_AHEAD',
      `The destination has changes up to sequence ${token.sequence} that are not in the log of this store, which ends at ${log.headSequence}. Nothing was changed.`,
    )
}
