import type { AcquireRequest } from '../store.ts'
import type { Verification, VerificationClaim, VerificationReport } from '../verification.ts'

/** Verifications: comparisons of a database with its source. */
export interface VerificationStore {
  /** Null if another holder verifies this database now. Its number is stored with the rows that it repairs. */
  beginVerification(
    database: string,
    request: AcquireRequest & { readonly actor: string },
  ): Promise<VerificationClaim | null>
  /** False if another holder has begun one since. */
  renewVerification(claim: VerificationClaim, request: { ttlMs: number; at: number }): Promise<boolean>
  /** Stores the result; audited. False, and nothing is written, if the claim is no longer ours. */
  endVerification(claim: VerificationClaim, report: VerificationReport): Promise<boolean>
  /** Newest first. */
  verifications(query: {
    readonly database?: string
    /** Only those that ended. */
    readonly ended?: boolean
    readonly limit: number
  }): Promise<Verification[]>
  /** The last one of every database that ended without an error, by database. */
  lastVerifications(): Promise<Verification[]>
}
