import { SyncError } from '../../contract/index.ts'

/** Ends of a list that answers in a row have claimed, none of which agrees with the one before. */
export interface EndClaimCount {
  readonly claims: number
  /** When the last one was made. */
  readonly at: number
}

export interface EndClaim extends EndClaimCount {
  /** Of the last item above the end; '' when the page was empty. */
  readonly mark: string
}

/** Two answers confirm an end after the same item. A true end of a list that grew since and a wrong one do not. */
export function isEndConfirmed(claimed: EndClaim | undefined, mark: string): boolean {
  return claimed?.mark === mark
}

export function countEndClaim(before: EndClaimCount | undefined, now: number): EndClaimCount {
  const passedMs = before === undefined ? Number.NaN : now - before.at
  // The state of a cycle that failed here has all its claims. They do not count for ever, or it would fail for ever.
  const claims = passedMs >= 0 && passedMs < CLAIM_TTL_MS ? before!.claims + 1 : 1
  if (claims > CLAIMS_MAX) {
    throw new SyncError('SOURCE_UNAVAILABLE', `The source ended the list ${claims} times, each time after another item.`)
  }
  return { claims, at: now }
}

const CLAIMS_MAX = 5
const CLAIM_TTL_MS = 10 * 60_000
