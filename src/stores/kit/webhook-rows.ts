import type { Action, Delivery, Webhook, WebhookAllowance, WebhookEdit } from '../../contract/index.ts'

/** Rows of the two tables, as both stores read them. */

export interface WebhookRow {
  webhook_id: string
  url: string
  databases: string | null
  actions: string | null
  allow: string
  secrets: string
  created_at: number
  position: number
  floor: number
  streak: number
  retry_at: number | null
  succeeded_at: number | null
  failed_at: number | null
  last_status: number | null
  last_answer: string | null
  disabled: string | null
  waiting: number
  dead: number
  due_at: number | null
  holder: string | null
}

export interface DeliveryRow {
  sequence: number
  message_id: string
  database_name: string
  key: string
  body: string
  attempts: number
  first_at: number | null
  next_at: number
  dead: number | boolean
  last_status: number | null
  last_answer: string | null
}

export function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.webhook_id, url: row.url, databases: row.databases === null ? null : (JSON.parse(row.databases) as string[]),
    actions: row.actions === null ? null : (JSON.parse(row.actions) as Action[]), allow: JSON.parse(row.allow) as WebhookAllowance[], secrets: row.secrets,
    createdAt: row.created_at, position: row.position, floor: row.floor, streak: row.streak, retryAt: row.retry_at, succeededAt: row.succeeded_at,
    failedAt: row.failed_at, lastStatus: row.last_status, lastAnswer: row.last_answer, disabled: row.disabled, waiting: row.waiting, dead: row.dead,
    dueAt: row.due_at, heldBy: row.holder,
  }
}

export function toDelivery(row: DeliveryRow): Delivery {
  return {
    sequence: row.sequence, messageId: row.message_id, database: row.database_name, key: row.key, body: row.body, attempts: row.attempts,
    firstAt: row.first_at, nextAt: row.next_at, dead: Boolean(row.dead), lastStatus: row.last_status, lastAnswer: row.last_answer,
  }
}

/** Failures are those of a URL: at another one it begins without. */
export function edited(webhook: Webhook, edit: WebhookEdit): Webhook {
  const isElsewhere = edit.url !== undefined && edit.url !== webhook.url
  return { ...webhook, ...edit, ...(isElsewhere && { streak: 0, retryAt: null }) }
}
