import type { Checkpoint, Lease, SyncRef } from '../checkpoint.ts'
import type { LeaseAcquired, AcquireRequest, BeginRequest, BeginResult, CycleReport, LeaseHeld } from '../store.ts'

/** Leases, cycles and checkpoints. */
export interface LeaseStore {
  /**
   * Takes the sync if nobody holds it, or its holder's time is over. The epoch grows with every acquire. Throws
   * STATE_ROLLED_BACK as `read` does, and so does `begin`.
   */
  acquire(ref: SyncRef, request: AcquireRequest): Promise<LeaseAcquired | LeaseHeld>
  /** False when the lease is no longer ours. */
  renew(lease: Lease, request: { ttlMs: number; at: number }): Promise<boolean>
  /**
   * Ends the lease and, with a report, closes the cycle's record: pages and counts were added up by the commits, so that
   * a crash loses none; retries and waiting are added here. Does nothing for a stale lease.
   */
  release(lease: Lease, report?: CycleReport): Promise<void>
  /** Starts a cycle, or takes up the unfinished one. Legal only with a valid lease; null when it is not. */
  beginCycle(lease: Lease, request: BeginRequest): Promise<BeginResult | null>
  /**
   * Of a sync that never ran: version 0 and nothing else. Throws STATE_ROLLED_BACK when the row contradicts the audit log or
   * the record of cycles; with `forRepair` it is then shown at the version of the audit log, and without a state.
   */
  readCheckpoint(ref: SyncRef, options?: { forRepair?: boolean }): Promise<Checkpoint>
}
