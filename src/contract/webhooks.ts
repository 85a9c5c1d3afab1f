import type { ChangeAction } from './store.ts'

/** Where changes are sent to. */
export interface WebhookSettings {
  readonly id: string
  readonly url: string
  /** Null for all, also those that are yet to come. */
  readonly databases: readonly string[] | null
  readonly actions: readonly ChangeAction[] | null
  /** What is otherwise refused: `http`, `private` addresses, another `port`. */
  readonly allow: readonly WebhookAllowance[]
  /** JSON text; see webhooks/secrets.ts. */
  readonly secrets: string
  readonly createdAt: number
}

/** What of it can be changed later; what is absent stays. */
export type WebhookEdit = Partial<Pick<WebhookSettings, 'url' | 'databases' | 'actions' | 'allow'>>

export type WebhookAllowance = 'http' | 'private' | 'port'

/** A place in the log, and the floor under it when it was taken; see FeedPage. */
export interface WebhookCursor {
  /** Everything up to here was delivered, or waits as a delivery of its own. */
  readonly sequence: number
  readonly floor: number
}

export interface WebhookProgress extends WebhookCursor {
  /** Different deliveries that failed since one got through. */
  readonly failureStreak: number
  /** Nothing is sent before this. */
  readonly retryAt: number | null
  readonly succeededAt: number | null
  readonly failedAt: number | null
  /** Of the last try; null when no answer came. */
  readonly lastStatus: number | null
  readonly lastAnswer: string | null
  /** Why nothing is sent any more; null while it is. */
  readonly disabledReason: string | null
}

export interface Webhook extends WebhookSettings, WebhookProgress {
  readonly waiting: number
  readonly dead: number
  /** When the first of those that wait is to be tried; null when none waits. */
  readonly dueAt: number | null
  /** Who delivers; null when nobody does. */
  readonly heldBy: string | null
}

/** The right to deliver to one webhook. A newer epoch makes it worthless. */
export interface WebhookClaim {
  readonly id: string
  readonly epoch: number
}

/** A change that could not be delivered yet. It brings its own body: the log may be compacted meanwhile. */
export interface Delivery {
  readonly sequence: number
  readonly messageId: string
  readonly database: string
  readonly key: string
  readonly body: string
  readonly attempts: number
  /** When the first was made; null before. */
  readonly firstAt: number | null
  readonly nextAt: number
  /** Given up; somebody has to ask for it to be tried again. */
  readonly dead: boolean
  readonly lastStatus: number | null
  readonly lastAnswer: string | null
}

/** What a round of delivering came to; all of it or nothing. */
export interface DeliveryReport {
  readonly progress: WebhookProgress
  /** Sequences of deliveries that waited and got through. */
  readonly delivered: readonly number[]
  /** New ones, and those that were tried in vain once more. */
  readonly undelivered: readonly Delivery[]
}

/** A message somebody sent to us. */
export interface InboundMessage {
  /** Which webhook of which worker. */
  readonly source: string
  readonly id: string
}

export interface InboundClaim {
  readonly at: number
  /** What is needed to do something about it later: kept until it is done. */
  readonly payload?: string
  /** How long whoever claimed it before is given to settle. */
  readonly claimTtlMs: number
  /** Messages of this source settled before this are forgotten. */
  readonly purgeBefore: number
}

/** A message that was kept and is not done yet. */
export interface PendingInboundMessage {
  readonly id: string
  readonly payload: string
}
