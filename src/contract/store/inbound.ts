import type { InboundClaim, InboundMessage, PendingInboundMessage } from '../webhooks.ts'

/** Messages that vendors sent, each processed once. */
export interface InboundStore {
  /** Takes a message before anything is done about it: `new` for one alone, for all others it is `busy` or `done`. Of an erased tenant it throws TENANT_ERASED. */
  claimInbound(message: InboundMessage, claim: InboundClaim): Promise<'new' | 'busy' | 'done'>
  /** Of one source, those that nobody has claimed since a time. */
  pendingInbound(query: { source: string; before: number; limit: number }): Promise<PendingInboundMessage[]>
  /** Done, or to be sent again: then it is as if it had never come. */
  settleInbound(message: InboundMessage, settled: { done: boolean; at: number }): Promise<void>
}
