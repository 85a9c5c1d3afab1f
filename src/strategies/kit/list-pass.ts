import { SyncError, type Change, type SyncContext } from '../../contract/index.ts'
import { HASH_RANGE, hashText } from './hash.ts'
import { sourceInvalidError, requireMode } from './strategy-errors.ts'

/** A page of a list read by offset or page number. */
export interface ListAnswer {
  readonly changes: readonly Change[]
  /** Number of list rows, if it differs from the number of changes. */
  readonly count?: number
  /**
   * Total rows, if the source reports it. When every page reports the same total and as many rows were read, one pass
   * is enough.
   */
  readonly total?: number | null
  /** Whether the source reports this page as the last. */
  readonly end?: boolean
}

/** Totals of one pass over the list so far. */
export interface ListPass {
  /** 1 for the first. */
  readonly number: number
  readonly count: number
  /** Order-independent digest of the keys. */
  readonly digest: number
  /** The source's total; null when it reports none, or reported two different ones. */
  readonly total: number | null
  /** Totals of the previous pass. */
  readonly before?: { readonly count: number; readonly digest: number }
}

export const FIRST_PASS: ListPass = { number: 1, count: 0, digest: 0, total: null }

/**
 * Offsets count rows, so deleting a row before the offset shifts another out of view, and a replace cycle would treat
 * that row as deleted. Rows seen in any pass count as seen, so one more pass repairs it.
 */
export function addPageToPass(pass: ListPass, { changes, count = changes.length, total }: ListAnswer): ListPass {
  if (!isCount(count) || (total !== undefined && total !== null && !isCount(total)))
    throw sourceInvalidError('The `count` or `total` of a list page is not a whole number.')
  const digest = changes.reduce(
    (sum, change) => (sum + hashText(`${change.database ?? ''} ${change.key}`)) % HASH_RANGE,
    pass.digest,
  )
  const isSame = pass.count === 0 || total === pass.total
  return { ...pass, count: pass.count + count, digest, total: isSame ? (total ?? null) : null }
}

/**
 * A page is last if the source says so, if the total has been read, or if it is empty; a short page proves nothing. If
 * `end` and `total` disagree, the total decides and reading continues.
 */
export function isLastPage({ changes, count = changes.length, end, total }: ListAnswer, read: number): boolean {
  if (end === true && count > 0 && typeof total === 'number' && read < total) return false
  return end ?? (count === 0 || (typeof total === 'number' && read >= total))
}

/**
 * Returns null when the list did not change during the pass, otherwise the next pass. `lastTotal` is the total of the
 * last page. Two passes agree only by all their keys, so ends after different rows do not confirm each other.
 */
export function decideNextPass(
  { number, count, digest, total, before }: ListPass,
  lastTotal: number | null | undefined,
): ListPass | null {
  if (total === count) return null
  const isShort = typeof lastTotal === 'number' && count < lastTotal
  if (!isShort && before !== undefined && before.count === count && before.digest === digest) return null
  if (number >= PASSES_MAX) {
    const reason = isShort
      ? `each pass ended before the ${lastTotal} rows that the source counts`
      : 'no two passes agree: it changes faster than it can be read by offset'
    throw new SyncError('CURSOR_REJECTED', `The list was read ${number} times and ${reason}. Nothing was deleted.`)
  }
  return { number: number + 1, count: 0, digest: 0, total: null, before: { count, digest } }
}

export function requireReplaceMode(strategy: string, context: SyncContext): void {
  requireMode(
    strategy,
    'replace',
    context,
    'a row that shifts while the list is read by offset would be missed for good. Use `keyset`, or make it a replace sync',
  )
}

const PASSES_MAX = 5

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
