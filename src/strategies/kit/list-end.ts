import { SyncError, type Change } from '../../contract/index.ts'
import { countEndClaim, isEndConfirmed, type EndClaim } from './end-claim.ts'
import { hashText } from './hash.ts'

/** Progress of a listing; kept in the state between its pages. */
export interface ListTally {
  /** Rows on the largest previous page. */
  readonly size: number
  /**
   * Rows on all previous pages; only if the source counts. A number that grows with every page would hide a loop from
   * the engine.
   */
  readonly seen?: number
  /** The source claimed the end on this page, and the page is requested again. */
  readonly claimed?: EndClaim
  /** The page is requested again because the source counts more rows. */
  readonly isShort?: true
}

export const INITIAL_TALLY: ListTally = { size: 0, seen: 0 }

/** One page of a listing, reduced to what decides its end. */
export interface ListPageSummary {
  readonly count: number
  /** Identifies the last row; '' for an empty page. */
  readonly mark: string
  /** The source reports that nothing follows. */
  readonly isLast: boolean
  /** Total rows, if the source counts them. */
  readonly total?: number | null | undefined
  /** Rows on a full page. */
  readonly limit?: number | undefined
  /** Whether a single-page list is confirmed: no cursor led to the page, so it may be the last page of another read. */
  readonly confirms?: boolean | undefined
}

/**
 * next   read the following page
 * again  request the same page once more
 * end    the listing is complete
 */
export type ListStep = { readonly kind: 'next' | 'again'; readonly tally: ListTally } | { readonly kind: 'end' }

/** Identifies a page by its last change. */
export function fingerprintLastRow(changes: readonly Change[]): string {
  const last = changes.at(-1)
  return last === undefined ? '' : String(hashText(`${last.database ?? ''} ${last.key}`))
}

/**
 * A listing that ends too early makes the sweep delete existing rows, so its end needs evidence. A second answer must
 * confirm the end when the page is empty, when it is full (like any page in the middle), when it is the only page and
 * `confirms` is set, or when the source counts more rows than were read. A second answer that ends after another row is
 * a new first claim. If the count is still higher, the cycle fails and the listing is read from the start. Rows deleted
 * meanwhile do not contradict the count: the last page's count excludes them.
 */
export function decideListStep(
  tally: ListTally,
  { count, mark, isLast, total, limit, confirms }: ListPageSummary,
  now: number,
): ListStep {
  const counted =
    typeof total === 'number' && tally.seen !== undefined ? { seen: tally.seen + count, total } : undefined
  if (counted !== undefined && counted.seen > 2 * counted.total + LOOP_ROWS_MARGIN) {
    throw new SyncError(
      'CURSOR_CYCLE',
      `The list returned ${counted.seen} rows, but the source counts ${counted.total}: its pages repeat.`,
    )
  }
  if (!isLast)
    return {
      kind: 'next',
      tally: { size: Math.max(tally.size, count), ...(counted !== undefined && { seen: counted.seen }) },
    }
  const isShort = counted !== undefined && counted.seen < counted.total
  const isFull = count >= (limit ?? Number.POSITIVE_INFINITY) || (tally.size > 0 && count >= tally.size)
  const isOnly = confirms === true && tally.size === 0 && (counted === undefined || counted.seen !== counted.total)
  const { isShort: _, claimed, ...previous } = tally
  if (isShort && claimed !== undefined) {
    const found = `The list ended after ${counted.seen} rows, but the source counts ${counted.total}.`
    throw new SyncError('CURSOR_REJECTED', `${found} Nothing was deleted; the list will be read again from the start.`)
  }
  if ((count === 0 || isFull || isShort || isOnly) && !isEndConfirmed(claimed, mark)) {
    const again = { mark, ...countEndClaim(claimed, now) }
    return { kind: 'again', tally: { ...previous, claimed: again, ...(isShort && { isShort }) } }
  }
  return { kind: 'end' }
}

/** A list cannot grow to twice its count plus this margin while it is read. */
const LOOP_ROWS_MARGIN = 10_000

export function isListTally(value: unknown): value is ListTally {
  const { size, seen = 0 } = (value ?? {}) as Partial<ListTally>
  return Number.isSafeInteger(size) && Number.isSafeInteger(seen)
}
