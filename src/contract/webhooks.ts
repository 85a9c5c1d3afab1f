import type { DestinationEvent } from './destinations.ts'
import type { ChangeAction } from './store.ts'

/** An outbound webhook: the URL that changes are sent to. */
export interface WebhookSettings {
  readonly id: string
  readonly url: string
  /** Null for all, including databases created later. */
  readonly databases: readonly string[] | null
  /** Null for every change. Events of destinations are sent only if they are named. */
  readonly actions: readonly WebhookAction[] | null
  /** Lifted restrictions: `http`, `private` addresses, another `port`. */
  readonly allow: readonly WebhookAllowance[]
  /** JSON text; see webhooks/secrets.ts. */
  readonly secrets: string
  readonly createdAt: number
}

/** The messages of a webhook: changes of rows, and events of destinations. */
export type WebhookAction = ChangeAction | DestinationEvent['kind']

/** A message that is no change of a row. */
export interface WebhookMessage {
  readonly messageId: string
  readonly action: DestinationEvent['kind']
  /** Messages of one resource type and key are sent in order. */
  readonly resourceType: string
  readonly key: string
  readonly body: string
  readonly at: number
}

/** The settings that can be changed later; absent ones stay. */
export type WebhookEdit = Partial<Pick<WebhookSettings, 'url' | 'databases' | 'actions' | 'allow'>>

/** A kind of address that a webhook may use although it is refused by default. */
export type WebhookAllowance = 'http' | 'private' | 'port'

/** A sequence in the log, and the compaction floor when it was read; see FeedPage. */
export interface WebhookCursor {
  /** Everything up to this sequence was delivered, or is a pending delivery. */
  readonly sequence: number
  readonly floor: number
}

/** The delivery progress of a webhook: its cursor, failures and next attempt. */
export interface WebhookProgress extends WebhookCursor {
  /** Distinct deliveries that failed since the last success. */
  readonly failureStreak: number
  /** Nothing is sent before this time. */
  readonly retryAt: number | null
  readonly succeededAt: number | null
  readonly failedAt: number | null
  /** The status of the last attempt; null if there was no response. */
  readonly lastStatus: number | null
  readonly lastResponse: string | null
  /** Why the webhook is disabled; null while it is enabled. */
  readonly disabledReason: string | null
}

/** A webhook with its settings, progress and pending deliveries. */
export interface Webhook extends WebhookSettings, WebhookProgress {
  readonly waiting: number
  readonly failed: number
  /** When the next pending delivery is due; null if none is pending. */
  readonly dueAt: number | null
  /** The holder of the delivery claim; null if there is none. */
  readonly heldBy: string | null
}

/** The right to deliver to one webhook. A claim with a newer epoch fences it off. */
export interface WebhookClaim {
  readonly id: string
  readonly epoch: number
}

/** A change that could not be delivered yet. It stores its own body, because the log may be compacted meanwhile. */
export interface Delivery {
  /** Negative for a message that is no change. */
  readonly sequence: number
  readonly messageId: string
  readonly database: string
  readonly key: string
  readonly body: string
  readonly attempts: number
  /** The time of the first attempt; null before it. */
  readonly firstAt: number | null
  readonly nextAt: number
  /** The delivery has failed permanently, and is retried only on request. */
  readonly failed: boolean
  readonly lastStatus: number | null
  readonly lastResponse: string | null
}

/** The result of one delivery round; written atomically. */
export interface DeliveryReport {
  readonly progress: WebhookProgress
  /** Sequences of pending deliveries that succeeded. */
  readonly delivered: readonly number[]
  /** New failures, and pending deliveries that failed again. */
  readonly undelivered: readonly Delivery[]
}

/** A message that a vendor sent to an inbound webhook. */
export interface InboundMessage {
  /** The webhook and its worker. */
  readonly source: string
  readonly id: string
}

/** A claim of one process on an inbound message, so that it is processed once. */
export interface InboundClaim {
  readonly at: number
  /** The data needed to process the message later; stored until it is done. */
  readonly payload?: string
  /** How long an earlier claim stays valid. */
  readonly claimTtlMs: number
  /** Messages of this source settled before this time are deleted. */
  readonly purgeBefore: number
}

/** A stored message that is not processed yet. */
export interface PendingInboundMessage {
  readonly id: string
  readonly payload: string
}
