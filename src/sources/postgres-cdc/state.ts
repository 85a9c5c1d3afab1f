import { SyncError } from '../../contract/index.ts'
import { parseLsn, type Lsn } from './lsn.ts'

/** Where following the log stands. */
export interface CdcState {
  /** Everything that was committed before it is landed. */
  readonly lsn: string
  /** The columns each table had when its rows were last read whole. */
  readonly columns: Readonly<Record<string, string>>
  /** Within a cycle: up to where it reads. */
  readonly until?: string
  /** Within a transaction larger than a page: where it commits, and how many of its changes are landed. */
  readonly transaction?: { readonly commitLsn: string; readonly done: number }
  /** How often in a row the server had nothing to send yet. */
  readonly quiet?: number
  /** Tables whose columns changed, to be read whole before the cycle ends; the first up to the key `after`. */
  readonly reread?: readonly string[]
  readonly after?: readonly string[]
}

/** Where reading all tables stands: the key of the last row read. */
export interface SnapshotState {
  readonly table: string
  readonly after: readonly string[] | null
}

export function checkState(state: CdcState | undefined): asserts state is CdcState {
  if (state === undefined) throw new SyncError('HISTORY_LOST', 'There is no position in the log yet: it is taken when the backfill begins.')
  parseLsn(state.lsn)
  if (state.until !== undefined) parseLsn(state.until)
  if (state.transaction !== undefined) {
    parseLsn(state.transaction.commitLsn)
    if (!Number.isSafeInteger(state.transaction.done)) throw stateRejectedError('`transaction`')
  }
  if (typeof state.columns !== 'object' || state.columns === null) throw stateRejectedError('`columns`')
  if (state.reread !== undefined && !(Array.isArray(state.reread) && state.reread.length > 0)) throw stateRejectedError('`reread`')
  if (state.after !== undefined && !Array.isArray(state.after)) throw stateRejectedError('`after`')
}

function stateRejectedError(what: string): SyncError {
  return new SyncError('CURSOR_REJECTED', `The stored state is not one of this source: ${what} is not what it writes there.`)
}

/**
 * What is landed for sure when a page is asked for. The engine reads a page ahead while the one before it is being landed:
 * the state it asks with may never become durable. The one it asked with before that is.
 */
export class DurableLsnTracker {
  #cycle = -1
  #requested: Lsn = 0n
  #durable: Lsn = 0n

  /** With every call, what it was asked with. Gives what may be acknowledged. */
  track(cycle: number, lsn: Lsn): Lsn {
    if (cycle !== this.#cycle) {
      // The first page of a cycle is asked for with what the store holds.
      this.#cycle = cycle
      this.#durable = lsn
    } else if (lsn > this.#requested) this.#durable = this.#requested
    else if (lsn < this.#durable) this.#durable = lsn
    this.#requested = lsn
    return this.#durable
  }
}
