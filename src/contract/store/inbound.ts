import type { InboundClaim, InboundMessage, PendingInboundMessage } from '../webhooks.ts'

/** Inbound messages from vendors, each processed exactly once. */
export interface InboundStore {
  /**
   * Claims a message before it is processed: exactly one caller gets `new`, all others `busy` or `done`. Throws
   * TENANT_ERASED for an erased tenant.
   */
  claimInbound(message: InboundMessage, claim: InboundClaim): Promise<'new' | 'busy' | 'done'>
  /** Messages of one source without a claim since a time. */
  pendingInbound(query: { source: string; before: number; limit: number }): Promise<PendingInboundMessage[]>
  /** Marks a message as done, or releases it so that it can be sent again. */
  settleInbound(message: InboundMessage, settled: { done: boolean; at: number }): Promise<void>
}
