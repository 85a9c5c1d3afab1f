import { SyncError, type Change, type SyncContext } from '../../contract/index.ts'
import { HASH_RANGE, hashText } from './hash.ts'
import { sourceInvalidError, requireMode } from './strategy-errors.ts'

/** A page of a list that is read by position. */
export interface ListAnswer {
  readonly changes: readonly Change[]
  /** How many rows of the list these are, when not one for each change. */
  readonly count?: number
  /** How many rows there are in all, if the source says so. When it says the same on every page and as many were read, one pass is enough. */
  readonly total?: number | null
  /** The source's own word on whether this page is the last. */
  readonly end?: boolean
}

/** What one pass over the list has met so far. */
export interface ListPass {
  /** 1 for the first. */
  readonly number: number
  readonly count: number
  /** Of the keys, in whatever order they came. */
  readonly digest: number
  /** What the source says there is in all; null when it does not say, or said two things. */
  readonly total: number | null
  /** Of the pass before. */
  readonly before?: { readonly count: number; readonly digest: number }
}

export const FIRST_PASS: ListPass = { number: 1, count: 0, digest: 0, total: null }

/**
 * Positions count rows, so a row that is deleted before the position moves another out of sight, and a replace cycle would
 * take that one for deleted. All that was seen in any pass counts as seen, so one more pass heals it.
 */
export function addPageToPass(pass: ListPass, { changes, count = changes.length, total }: ListAnswer): ListPass {
  if (!isCount(count) || (total !== undefined && total !== null && !isCount(total))) throw sourceInvalidError('The count or the total of the list is not a whole number.')
  const digest = changes.reduce((sum, change) => (sum + hashText(`${change.database ?? ''} ${change.key}`)) % HASH_RANGE, pass.digest)
  const isSame = pass.count === 0 || total === pass.total
  return { ...pass, count: pass.count + count, digest, total: isSame ? (total ?? null) : null }
}

/**
 * By the source's own word, or when all it says there is has been read, or at an empty page; a short page says nothing.
 * Where the source's word and its count differ, the count decides: more is read.
 */
export function isLastPage({ changes, count = changes.length, end, total }: ListAnswer, read: number): boolean {
  if (end === true && count > 0 && typeof total === 'number' && read < total) return false
  return end ?? (count === 0 || (typeof total === 'number' && read >= total))
}

/**
 * At the end of a pass: null when the list has held still, else the pass to begin. `lastTotal` is the count of the last page.
 * Two passes agree by all their keys, so ends after different rows do not confirm each other.
 */
export function decideNextPass({ number, count, digest, total, before }: ListPass, lastTotal: number | null | undefined): ListPass | null {
  if (total === count) return null
  const isShort = typeof lastTotal === 'number' && count < lastTotal
  if (!isShort && before !== undefined && before.count === count && before.digest === digest) return null
  if (number >= PASSES_MAX) {
    const reason = isShort ? `each ended before the ${lastTotal} rows that the source counts` : 'no two readings agree: it changes faster than it can be read by position'
    throw new SyncError('CURSOR_REJECTED', `The list was read ${number} times and ${reason}. Nothing was deleted.`)
  }
  return { number: number + 1, count: 0, digest: 0, total: null, before: { count, digest } }
}

export function requireReplaceMode(strategy: string, context: SyncContext): void {
  requireMode(strategy, 'replace', context, 'a row that moves while the list is read by position would be missed for good. Use `keyset`, or make it a replace sync')
}

const PASSES_MAX = 5

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
