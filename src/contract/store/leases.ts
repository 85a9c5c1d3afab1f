import type { Checkpoint, Lease, SyncRef } from '../checkpoint.ts'
import type { LeaseAcquired, AcquireRequest, BeginRequest, BeginResult, CycleReport, LeaseHeld } from '../store.ts'

/** Leases, cycles and checkpoints. */
export interface LeaseStore {
  /**
   * Acquires the lease of a sync if it is free or expired. The epoch increases with every acquire. Throws
   * STATE_ROLLED_BACK as `readCheckpoint` does, and so does `beginCycle`.
   */
  acquire(ref: SyncRef, request: AcquireRequest): Promise<LeaseAcquired | LeaseHeld>
  /** False if the lease is no longer ours. */
  renew(lease: Lease, request: { ttlMs: number; at: number }): Promise<boolean>
  /**
   * Ends the lease and, with a report, closes the cycle's record. The commits have already added pages and counts, so
   * that a crash loses none; retries and waits are added here. Does nothing for a lease with an old epoch.
   */
  release(lease: Lease, report?: CycleReport): Promise<void>
  /** Starts a cycle, or resumes the unfinished one. Legal only with a valid lease; returns null without one. */
  beginCycle(lease: Lease, request: BeginRequest): Promise<BeginResult | null>
  /**
   * For a sync that never ran: version 0 and nothing else. Throws STATE_ROLLED_BACK if the row contradicts the audit
   * log or the cycle records; with `forRepair` it returns the audit log's version instead, without a state.
   */
  readCheckpoint(ref: SyncRef, options?: { forRepair?: boolean }): Promise<Checkpoint>
}
