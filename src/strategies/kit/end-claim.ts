import { SyncError } from '../../contract/index.ts'

/** Consecutive claims that a list has ended, each contradicting the one before. */
export interface EndClaimCount {
  readonly claims: number
  /** Time of the last claim. */
  readonly at: number
}

export interface EndClaim extends EndClaimCount {
  /** Fingerprint of the last item before the end; '' when the page was empty. */
  readonly mark: string
}

/** Two answers confirm an end only after the same item: a list that grew since, or a wrong end, does not match. */
export function isEndConfirmed(claimed: EndClaim | undefined, mark: string): boolean {
  return claimed?.mark === mark
}

export function isEndClaim(value: unknown): value is EndClaim {
  const { mark, claims, at } = (value ?? {}) as Partial<EndClaim>
  return typeof mark === 'string' && Number.isSafeInteger(claims) && Number.isFinite(at)
}

export function countEndClaim(previous: EndClaimCount | undefined, now: number): EndClaimCount {
  const elapsedMs = previous === undefined ? Number.NaN : now - previous.at
  // The state of a cycle that failed here keeps its claims. They expire, or the sync would fail forever.
  const claims = previous !== undefined && elapsedMs >= 0 && elapsedMs < CLAIM_TTL_MS ? previous.claims + 1 : 1
  if (claims > CLAIMS_MAX) {
    throw new SyncError(
      'SOURCE_UNAVAILABLE',
      `The source ended the list ${claims} times, each time after a different item. The next attempt retries.`,
    )
  }
  return { claims, at: now }
}

const CLAIMS_MAX = 5
const CLAIM_TTL_MS = 10 * 60_000
