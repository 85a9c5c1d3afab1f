import { SyncError, type Change } from '../../contract/index.ts'
import { countEndClaim, isEndConfirmed, type EndClaim } from './end-claim.ts'
import { hashText } from './hash.ts'

/** How far a listing has come; kept in the state between its pages. */
export interface ListTally {
  /** Rows on the largest page before. */
  readonly size: number
  /** Rows on all pages before; only where the source counts. A number that grows with every page would hide a loop from the engine. */
  readonly seen?: number
  /** The source has claimed the end on this page, and is asked for it again. */
  readonly claimed?: EndClaim
  /** It is asked again because the source counts more rows. */
  readonly isShort?: true
}

export const INITIAL_TALLY: ListTally = { size: 0, seen: 0 }

/** One page of a listing, as far as its end is concerned. */
export interface ListPageSummary {
  readonly count: number
  /** Tells the last row from others; '' without one. */
  readonly mark: string
  /** The source says that nothing follows. */
  readonly isLast: boolean
  /** How many rows there are in all, where the source counts them. */
  readonly total?: number | null | undefined
  /** How many rows make a full page. */
  readonly limit?: number | undefined
  /** Whether a list of one page is confirmed: nothing led to that page, so it may be the last one of another reading. */
  readonly confirms?: boolean | undefined
}

/**
 * next   the page that follows is read
 * again  the same page is asked for once more
 * end    the listing is complete
 */
export type ListStep = { readonly kind: 'next' | 'again'; readonly tally: ListTally } | { readonly kind: 'end' }

/** The mark of a page whose rows become these changes. */
export function fingerprintLastRow(changes: readonly Change[]): string {
  const last = changes.at(-1)
  return last === undefined ? '' : String(hashText(`${last.database ?? ''} ${last.key}`))
}

/**
 * A listing that ends too early makes the sweep delete rows that exist, so its end needs evidence. The end is confirmed by a
 * second answer when the page is empty, when it is full (pages in the middle are), when it is the only one and the list asks for
 * that, or when the source counts more rows than were read. Such an answer after another row is a first claim again.
 * A count that still says more ends the cycle with an error, and the listing is read from the start.
 * Rows deleted meanwhile are no contradiction: the count of the last page no longer has them.
 */
export function decideListStep(tally: ListTally, { count, mark, isLast, total, limit, confirms }: ListPageSummary, now: number): ListStep {
  const seen = typeof total === 'number' && tally.seen !== undefined ? tally.seen + count : undefined
  if (seen !== undefined && seen > 2 * total! + LOOP_ROWS_MARGIN) throw new SyncError('CURSOR_CYCLE', `The list gave ${seen} rows, and the source counts ${total}: its pages go in a circle.`)
  if (!isLast) return { kind: 'next', tally: { size: Math.max(tally.size, count), ...(seen !== undefined && { seen }) } }
  const isShort = seen !== undefined && seen < total!
  const isFull = count >= (limit ?? Number.POSITIVE_INFINITY) || (tally.size > 0 && count >= tally.size)
  const isOnly = confirms === true && tally.size === 0 && (seen === undefined || seen !== total)
  const { isShort: _, claimed, ...before } = tally
  if (isShort && claimed !== undefined) {
    const found = `The list ended after ${seen} rows, and the source counts ${total}.`
    throw new SyncError('CURSOR_REJECTED', `${found} Nothing was deleted; the list is read from the start.`)
  }
  if ((count === 0 || isFull || isShort || isOnly) && !isEndConfirmed(claimed, mark)) {
    const again = { mark, ...countEndClaim(claimed, now) }
    return { kind: 'again', tally: { ...before, claimed: again, ...(isShort && { isShort }) } }
  }
  return { kind: 'end' }
}

/** So many rows more than twice the count: no list changes so fast while it is read. */
const LOOP_ROWS_MARGIN = 10_000

export function isListTally(value: unknown): value is ListTally {
  const { size, seen = 0 } = (value ?? {}) as Partial<ListTally>
  return Number.isSafeInteger(size) && Number.isSafeInteger(seen)
}
