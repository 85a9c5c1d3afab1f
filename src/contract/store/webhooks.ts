import type {
  Delivery,
  DeliveryReport,
  Webhook,
  WebhookClaim,
  WebhookEdit,
  WebhookCursor,
  WebhookSettings,
} from '../webhooks.ts'
import type { AcquireRequest } from '../store.ts'

/** Webhooks, the claims to deliver them, and pending deliveries. */
export interface WebhookStore {
  /** Oldest first. */
  webhooks(): Promise<Webhook[]>
  /**
   * Adds a webhook at this cursor; for an existing one only the settings change. Audited; `by` defaults to `program`.
   */
  putWebhook(settings: WebhookSettings, cursor: WebhookCursor, by?: string): Promise<void>
  /**
   * Changes the given settings. The cursor and pending deliveries stay, so the new settings apply to every entry after
   * the cursor and to none before it; the deliverer has to claim again. A new URL resets the failure count. Audited.
   * False if there is no such webhook.
   */
  editWebhook(id: string, edit: WebhookEdit, by: { actor: string; at: number }): Promise<boolean>
  /**
   * Compare-and-swap of the secrets: false if they are no longer `replaces`, or if there is no such webhook. Audited.
   */
  rotateWebhook(id: string, secrets: string, by: { actor: string; at: number; replaces: string }): Promise<boolean>
  /** Removes a webhook with all its deliveries. Audited. False if there is no such webhook. */
  removeWebhook(id: string, by: { actor: string; at: number }): Promise<boolean>
  /**
   * Enables a webhook, makes every delivery due, and optionally moves the cursor. Returns the number of failed
   * deliveries to retry; null if there is no such webhook. The deliverer has to claim again. Audited.
   */
  restartWebhook(id: string, request: { actor: string; at: number; cursor?: WebhookCursor }): Promise<number | null>
  /**
   * Disables a webhook with a reason, or enables it (null); pending and failed deliveries stay as they are. False if
   * there is no such webhook. The deliverer has to claim again. Audited.
   */
  setWebhookDisabled(id: string, disabled: string | null, by: { actor: string; at: number }): Promise<boolean>
  /** Like `acquire` for a sync; null if another holder has the claim, or if the webhook is disabled or removed. */
  claimWebhook(id: string, request: AcquireRequest): Promise<(WebhookClaim & { readonly webhook: Webhook }) | null>
  renewWebhook(claim: WebhookClaim, request: { ttlMs: number; at: number }): Promise<boolean>
  releaseWebhook(claim: WebhookClaim): Promise<void>
  /**
   * The secrets to sign the next message with; null if the claim is no longer ours. Read before every message, so that
   * a rotation, an edit, a pause or a removal applies to every message sent after it was acknowledged.
   */
  webhookSecrets(claim: WebhookClaim): Promise<string | null>
  /** False, and nothing is written, if the claim is no longer ours. */
  recordDeliveries(claim: WebhookClaim, note: DeliveryReport): Promise<boolean>
  /** In log order. */
  deliveries(query: { webhook: string; failed: boolean; limit: number }): Promise<Delivery[]>
}
