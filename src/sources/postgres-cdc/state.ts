import { SyncError } from '../../contract/index.ts'
import { parseLsn, type Lsn } from './lsn.ts'

/** Progress of following the log. */
export interface CdcState {
  /** Every transaction that ended before this LSN is committed. */
  readonly lsn: string
  /** Digest of each table's columns when its rows were last read in full. */
  readonly columns: Readonly<Record<string, string>>
  /** Within a cycle: its upper bound. */
  readonly until?: string
  /** Within a transaction larger than a page: its commit LSN, and how many of its changes are committed. */
  readonly transaction?: { readonly commitLsn: string; readonly done: number }
  /** Consecutive pages without data from the server. */
  readonly quiet?: number
  /** Tables whose columns changed, re-read before the cycle ends; `after` is the last key read of the first one. */
  readonly reread?: readonly string[]
  readonly after?: readonly string[]
}

/** Progress of the snapshot: the key of the last row read. */
export interface SnapshotState {
  readonly table: string
  readonly after: readonly string[] | null
}

export function checkState(state: CdcState | undefined): asserts state is CdcState {
  if (state === undefined)
    throw new SyncError('HISTORY_LOST', 'There is no stored LSN yet: it is captured when the backfill begins.')
  parseLsn(state.lsn)
  if (state.until !== undefined) parseLsn(state.until)
  if (state.transaction !== undefined) {
    parseLsn(state.transaction.commitLsn)
    if (!Number.isSafeInteger(state.transaction.done)) throw stateRejectedError('`transaction`')
  }
  if (typeof state.columns !== 'object' || state.columns === null) throw stateRejectedError('`columns`')
  if (state.reread !== undefined && !(Array.isArray(state.reread) && state.reread.length > 0))
    throw stateRejectedError('`reread`')
  if (state.after !== undefined && !Array.isArray(state.after)) throw stateRejectedError('`after`')
}

function stateRejectedError(what: string): SyncError {
  return new SyncError('CURSOR_REJECTED', `The stored state does not belong to this source: ${what} is invalid.`)
}

/**
 * Determines which LSN is durable when a page is requested. The engine reads one page ahead while the previous page
 * commits, so the state of a request may never become durable, but the state of the request before it is.
 */
export class DurableLsnTracker {
  #cycle = -1
  #requested: Lsn = 0n
  #durable: Lsn = 0n

  /** Call it with the LSN of every request. Returns the LSN that may be acknowledged. */
  track(cycle: number, lsn: Lsn): Lsn {
    if (cycle !== this.#cycle) {
      // The first page of a cycle is requested with the stored state.
      this.#cycle = cycle
      this.#durable = lsn
    } else if (lsn > this.#requested) this.#durable = this.#requested
    else if (lsn < this.#durable) this.#durable = lsn
    this.#requested = lsn
    return this.#durable
  }
}
