import type { DestinationClaim, DestinationReport, DestinationSignal, DestinationStatus } from '../destinations.ts'
import type { AcquireRequest } from '../store.ts'

/** Destinations: their claims, their status, and requests of operators. */
export interface DestinationStore {
  /** The identity of this tenant of this store. The candidate is stored if it has none; it never changes. */
  storeId(candidate: string): Promise<string>
  /** In order of name. */
  destinations(): Promise<DestinationStatus[]>
  /**
   * Like `acquire` for a sync, and adds the destination on first use; null if another holder has the claim, or if it is
   * paused. The epoch is above every earlier one, and above `epochMin`.
   */
  claimDestination(
    name: string,
    request: AcquireRequest & { readonly epochMin?: number },
  ): Promise<(DestinationClaim & { readonly status: DestinationStatus }) | null>
  /** False if the claim is no longer ours, or if the destination is paused. */
  renewDestination(claim: DestinationClaim, request: { ttlMs: number; at: number }): Promise<boolean>
  releaseDestination(claim: DestinationClaim): Promise<void>
  /** False, and nothing is written, if the claim is no longer ours. */
  recordDestination(claim: DestinationClaim, report: DestinationReport): Promise<boolean>
  /** Audited, except `run`. `resync` adds to earlier requests. Adds the destination if it is unknown. */
  signalDestination(name: string, signal: DestinationSignal, by: { actor: string; at: number }): Promise<void>
  /** Forgets a destination; its rows stay where they are. Its epochs are never used again. Audited. False if unknown. */
  removeDestination(name: string, by: { actor: string; at: number }): Promise<boolean>
}
