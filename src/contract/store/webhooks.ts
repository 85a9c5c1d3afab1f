import type { Delivery, DeliveryReport, Webhook, WebhookClaim, WebhookEdit, WebhookCursor, WebhookSettings } from '../webhooks.ts'
import type { AcquireRequest } from '../store.ts'

/** Webhooks, the claims to deliver them, and deliveries that wait. */
export interface WebhookStore {
  /** Oldest first. */
  webhooks(): Promise<Webhook[]>
  /** Adds it at this place; of one that is there the settings are changed, and where it stands is left alone. Audited; `by` defaults to `program`. */
  putWebhook(settings: WebhookSettings, place: WebhookCursor, by?: string): Promise<void>
  /**
   * Changes what is given of its settings. Its place and what waits stay, so that everything after its place is judged by the
   * new ones and nothing before it: whoever delivers has to claim anew. At a new URL earlier failures no longer count. Audited.
   * False when there is none.
   */
  editWebhook(id: string, edit: WebhookEdit, by: { actor: string; at: number }): Promise<boolean>
  /** Replaces its secrets and nothing else, if they still are `replaces`; false when they are not, or there is none. Audited. */
  rotateWebhook(id: string, secrets: string, by: { actor: string; at: number; replaces: string }): Promise<boolean>
  /** With all its deliveries. Audited. False when there is none. */
  removeWebhook(id: string, by: { actor: string; at: number }): Promise<boolean>
  /** Enables it, makes every delivery due, and goes back or on to a place. How many dead ones are tried again; null without such a webhook. Whoever delivers has to claim anew. Audited. */
  restartWebhook(id: string, request: { actor: string; at: number; place?: WebhookCursor }): Promise<number | null>
  /** Stops it for a reason, or lets it go on (null); what waits and what was given up stay as they are. False when there is none. Whoever delivers has to claim anew. Audited. */
  setWebhookDisabled(id: string, disabled: string | null, by: { actor: string; at: number }): Promise<boolean>
  /** As `acquire` does for a sync; null when somebody else has it, or it is disabled or gone. */
  claimWebhook(id: string, request: AcquireRequest): Promise<(WebhookClaim & { readonly webhook: Webhook }) | null>
  renewWebhook(claim: WebhookClaim, request: { ttlMs: number; at: number }): Promise<boolean>
  releaseWebhook(claim: WebhookClaim): Promise<void>
  /**
   * The secrets to sign the next message with; null when the claim is no longer ours. Read before every message, so that a
   * rotation, an edit, a pause or a removal holds for every message sent after it was acknowledged.
   */
  webhookSecrets(claim: WebhookClaim): Promise<string | null>
  /** False, and nothing written, when the claim is no longer ours. */
  recordDeliveries(claim: WebhookClaim, note: DeliveryReport): Promise<boolean>
  /** In the order of the log. */
  deliveries(query: { webhook: string; dead: boolean; limit: number }): Promise<Delivery[]>
}
