import type {
  Delivery,
  Webhook,
  WebhookAction,
  WebhookAllowance,
  WebhookEdit,
  WebhookMessage,
  WebhookStore,
} from '../../../contract/index.ts'
import {
  createAddWebhookAuditEntry,
  PROGRAM_ACTOR,
  createRemoveWebhookAuditEntry,
  createRestartWebhookAuditEntry,
  createRotateWebhookAuditEntry,
  createSwitchWebhookAuditEntry,
  createEditWebhookAuditEntry,
} from '../audit-entries.ts'
import { lockTenant, reviveTenant } from '../registry.ts'
import { defineRead, defineWrite, type PlansOf, type Sql, type Steps } from '../sql/port.ts'
import { replaceNul } from '../replace-nul.ts'
import { checkSealingKey } from './data-keys.ts'

const WEBHOOK_CONDITION = 'tenant_id = :tenant and webhook_id = :id'
const CLAIM_CONDITION = `${WEBHOOK_CONDITION} and epoch = :epoch and holder is not null`
const CLEAR_CLAIM = 'epoch = epoch + 1, holder = null, held_until = null'

export const WEBHOOK_PLANS = {
  webhooks: defineRead(function* (sql) {
    const found = yield* sql.all<WebhookRow>(`${SELECT_WEBHOOKS} where w.tenant_id = :tenant order by w.webhook_id`)
    return found.map(toWebhook).toSorted((a, b) => a.createdAt - b.createdAt)
  }),

  putWebhook: defineWrite(function* (sql, settings, { sequence, floor }, actor = PROGRAM_ACTOR) {
    const { id, url, databases, actions, allow, secrets, createdAt } = settings
    const epoch = yield* reviveTenant(sql)
    yield* checkSealingKey(sql, secrets)
    const update = ['url', 'databases', 'actions', 'allow', 'secrets']
    yield* sql.run(
      sql.dialect.upsert({
        table: 'webhooks',
        key: ['tenant_id', 'webhook_id'],
        insert: [...update, 'created_at', 'sequence', 'floor', 'epoch'],
        update,
      }),
      {
        webhook_id: id,
        url,
        databases: toJsonText(databases),
        actions: toJsonText(actions),
        allow: JSON.stringify(allow),
        secrets,
        created_at: createdAt,
        sequence,
        floor,
        epoch,
      },
    )
    yield* sql.kernel.writeAudit(null, createAddWebhookAuditEntry(settings, { actor, at: createdAt }))
  }),

  editWebhook: defineWrite(function* (sql, id, edit, by) {
    yield* lockTenant(sql)
    // Locked before it is read: a claim holder that records deliveries may be about to change the failure streak.
    const locked = yield* sql.get(`select 1 from {webhooks} where ${WEBHOOK_CONDITION} {for_update}`, { id })
    if (locked === undefined) return false
    const before = toWebhook(
      yield* sql.one<WebhookRow>(`${SELECT_WEBHOOKS} where w.tenant_id = :tenant and w.webhook_id = :id`, { id }),
    )
    const after = applyEdit(before, edit)
    const entry = createEditWebhookAuditEntry(before, after, by)
    if (entry === null) return true
    const { url, databases, actions, allow, failureStreak, retryAt } = after
    yield* sql.run(
      `update {webhooks} set url = :url, "databases" = :databases, actions = :actions, allow = :allow, failure_streak = :failureStreak, retry_at = :retryAt, ${CLEAR_CLAIM} where ${WEBHOOK_CONDITION}`,
      {
        id,
        url,
        databases: toJsonText(databases),
        actions: toJsonText(actions),
        allow: JSON.stringify(allow),
        failureStreak,
        retryAt,
      },
    )
    yield* sql.kernel.writeAudit(null, entry)
    return true
  }),

  rotateWebhook: defineWrite(function* (sql, id, secrets, by) {
    yield* lockTenant(sql)
    yield* checkSealingKey(sql, secrets)
    const changed = yield* sql.run(
      `update {webhooks} set secrets = :secrets where ${WEBHOOK_CONDITION} and secrets = :replaces`,
      { id, secrets, replaces: by.replaces },
    )
    if (changed > 0) yield* sql.kernel.writeAudit(null, createRotateWebhookAuditEntry(id, by))
    return changed > 0
  }),

  removeWebhook: defineWrite(function* (sql, id, by) {
    yield* lockTenant(sql)
    // The webhook's row first: a claim holder that records deliveries has it locked.
    const removed = yield* sql.run(`delete from {webhooks} where ${WEBHOOK_CONDITION}`, { id })
    yield* sql.run(`delete from {deliveries} where ${WEBHOOK_CONDITION}`, { id })
    if (removed > 0) yield* sql.kernel.writeAudit(null, createRemoveWebhookAuditEntry(id, by))
    return removed > 0
  }),

  restartWebhook: defineWrite(function* (sql, id, { actor, at, cursor }) {
    yield* lockTenant(sql)
    const setCursor = cursor === undefined ? '' : 'sequence = :sequence, floor = :floor, '
    const changed = yield* sql.run(
      `update {webhooks} set disabled = null, failure_streak = 0, retry_at = null, ${setCursor}${CLEAR_CLAIM} where ${WEBHOOK_CONDITION}`,
      { id, ...cursor },
    )
    if (changed === 0) return null
    yield* sql.kernel.writeAudit(null, createRestartWebhookAuditEntry(id, cursor, { actor, at }))
    // The log delivers these again.
    if (cursor !== undefined)
      yield* sql.run(`delete from {deliveries} where ${WEBHOOK_CONDITION} and sequence > :sequence`, {
        id,
        sequence: cursor.sequence,
      })
    const { failed } = yield* sql.one<{ failed: number }>(
      `select count(*) as failed from {deliveries} where ${WEBHOOK_CONDITION} and failed`,
      { id },
    )
    yield* sql.run(
      `update {deliveries} set failed = false, attempts = 0, first_at = null, next_at = :at where ${WEBHOOK_CONDITION}`,
      { id, at },
    )
    return failed
  }),

  setWebhookDisabled: defineWrite(function* (sql, id, disabled, by) {
    yield* lockTenant(sql)
    const changed = yield* sql.run(
      `update {webhooks} set disabled = :disabled, failure_streak = 0, retry_at = null, ${CLEAR_CLAIM} where ${WEBHOOK_CONDITION}`,
      { id, disabled },
    )
    if (changed > 0) yield* sql.kernel.writeAudit(null, createSwitchWebhookAuditEntry(id, disabled, by))
    return changed > 0
  }),

  claimWebhook: defineWrite(function* (sql, id, { holder, ttlMs, at, evictHolder }) {
    const found = yield* sql.get<{ epoch: number; holder: string | null; held_until: number | null; now: number }>(
      `select epoch, holder, held_until, :now as now from {webhooks} where ${WEBHOOK_CONDITION} and disabled is null {for_update}`,
      { id, at },
    )
    if (found === undefined) return null
    const { holder: heldBy, held_until: heldUntil } = found
    if (heldBy !== null && heldUntil !== null && heldUntil > found.now && heldBy !== evictHolder) return null
    const epoch = found.epoch + 1
    yield* sql.run(
      `update {webhooks} set epoch = :epoch, holder = :holder, held_until = :until where ${WEBHOOK_CONDITION}`,
      { id, epoch, holder, until: found.now + ttlMs },
    )
    const claimed = yield* sql.one<WebhookRow>(
      `${SELECT_WEBHOOKS} where w.tenant_id = :tenant and w.webhook_id = :id`,
      { id },
    )
    return { id, epoch, webhook: toWebhook(claimed) }
  }),

  renewWebhook: defineWrite(function* (sql, { id, epoch }, { ttlMs, at }) {
    return (
      (yield* sql.run(
        `update {webhooks} set held_until = {greatest}(held_until, :now + :ttlMs) where ${CLAIM_CONDITION}`,
        { id, epoch, ttlMs, at },
      )) > 0
    )
  }),

  releaseWebhook: defineWrite(function* (sql, { id, epoch }) {
    yield* sql.run(
      `update {webhooks} set holder = null, held_until = null where ${WEBHOOK_CONDITION} and epoch = :epoch`,
      { id, epoch },
    )
  }),

  webhookSecrets: defineRead(function* (sql, { id, epoch }) {
    return (
      (yield* sql.get<{ secrets: string }>(`select secrets from {webhooks} where ${CLAIM_CONDITION}`, { id, epoch }))
        ?.secrets ?? null
    )
  }),

  recordDeliveries: defineWrite(function* (sql, { id, epoch }, { progress, delivered, undelivered }) {
    const { sequence, floor, failureStreak, retryAt, succeededAt, failedAt, lastStatus, lastResponse, disabledReason } =
      progress
    const changed = yield* sql.run(
      `update {webhooks} set sequence = :sequence, floor = :floor, failure_streak = :failureStreak, retry_at = :retryAt, succeeded_at = :succeededAt, failed_at = :failedAt,
         last_status = :lastStatus, last_response = :lastResponse, disabled = :disabledReason where ${CLAIM_CONDITION}`,
      {
        id,
        epoch,
        sequence,
        floor,
        failureStreak,
        retryAt,
        succeededAt,
        failedAt,
        lastStatus,
        lastResponse: replaceNul(lastResponse),
        disabledReason,
      },
    )
    if (changed === 0) return false
    for (const deliveredSequence of delivered) {
      yield* sql.send(`delete from {deliveries} where ${WEBHOOK_CONDITION} and sequence = :deliveredSequence`, {
        id,
        deliveredSequence,
      })
    }
    const update = ['attempts', 'first_at', 'next_at', 'failed', 'last_status', 'last_response']
    const upsert = sql.dialect.upsert({
      table: 'deliveries',
      key: ['tenant_id', 'webhook_id', 'sequence'],
      insert: ['message_id', 'database_name', 'key', 'body', ...update],
      update,
    })
    for (const {
      sequence: undeliveredSequence,
      messageId,
      database,
      key,
      body,
      attempts,
      firstAt,
      nextAt,
      failed,
      ...last
    } of undelivered) {
      yield* sql.send(upsert, {
        webhook_id: id,
        sequence: undeliveredSequence,
        message_id: messageId,
        database_name: database,
        key,
        body,
        attempts,
        first_at: firstAt,
        next_at: nextAt,
        failed,
        last_status: last.lastStatus,
        last_response: replaceNul(last.lastResponse),
      })
    }
    return true
  }),

  deliveries: defineRead(function* (sql, { webhook, failed, limit }) {
    const found = yield* sql.all<DeliveryRow>(
      `select * from {deliveries} where ${WEBHOOK_CONDITION} and failed = :failed order by sequence limit :limit`,
      { id: webhook, failed, limit },
    )
    return found.map(toDelivery)
  }),
} satisfies PlansOf<WebhookStore>

/** The first number of a message that is no change. Later ones are higher, and below zero. */
const FIRST_MESSAGE = Number.MIN_SAFE_INTEGER

/** Adds messages to the webhooks that receive them, as pending deliveries. Legal in the transaction of what they report. */
export function* addMessages(sql: Sql, messages: readonly WebhookMessage[]): Steps<void> {
  if (messages.length === 0) return
  // Locked, so that two processes do not use the same number.
  const webhooks = yield* sql.all<{ webhook_id: string; actions: string | null }>(
    'select webhook_id, actions from {webhooks} where tenant_id = :tenant order by webhook_id {for_update}',
  )
  for (const { webhook_id: id, actions } of webhooks) {
    const wanted = new Set(actions === null ? [] : (JSON.parse(actions) as WebhookAction[]))
    const own = messages.filter(({ action }) => wanted.has(action))
    if (own.length === 0) continue
    const { last } = yield* sql.one<{ last: number | null }>(
      `select max(sequence) as last from {deliveries} where ${WEBHOOK_CONDITION} and sequence < 0`,
      { id },
    )
    for (const [at, { messageId, resourceType, key, body, at: createdAt }] of own.entries())
      yield* sql.run(
        `insert into {deliveries} (tenant_id, webhook_id, sequence, message_id, database_name, "key", body, attempts, next_at, failed)
         values (:tenant, :id, :sequence, :messageId, :resourceType, :key, :body, 0, :createdAt, false)`,
        {
          id,
          sequence: (last ?? FIRST_MESSAGE - 1) + 1 + at,
          messageId,
          resourceType,
          key,
          body: replaceNul(body),
          createdAt,
        },
      )
  }
}

const FROM_DELIVERIES = 'from {deliveries} d where d.tenant_id = w.tenant_id and d.webhook_id = w.webhook_id'
const SELECT_WEBHOOKS = `select w.*,
  (select count(*) ${FROM_DELIVERIES} and not d.failed) as waiting, (select count(*) ${FROM_DELIVERIES} and d.failed) as failed,
  (select min(next_at) ${FROM_DELIVERIES} and not d.failed) as due_at
  from {webhooks} w`

interface WebhookRow {
  webhook_id: string
  url: string
  databases: string | null
  actions: string | null
  allow: string
  secrets: string
  created_at: number
  sequence: number
  floor: number
  failure_streak: number
  retry_at: number | null
  succeeded_at: number | null
  failed_at: number | null
  last_status: number | null
  last_response: string | null
  disabled: string | null
  waiting: number
  failed: number
  due_at: number | null
  holder: string | null
}

interface DeliveryRow {
  sequence: number
  message_id: string
  database_name: string
  key: string
  body: string
  attempts: number
  first_at: number | null
  next_at: number
  failed: number | boolean
  last_status: number | null
  last_response: string | null
}

function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.webhook_id,
    url: row.url,
    databases: row.databases === null ? null : (JSON.parse(row.databases) as string[]),
    actions: row.actions === null ? null : (JSON.parse(row.actions) as WebhookAction[]),
    allow: JSON.parse(row.allow) as WebhookAllowance[],
    secrets: row.secrets,
    createdAt: row.created_at,
    sequence: row.sequence,
    floor: row.floor,
    failureStreak: row.failure_streak,
    retryAt: row.retry_at,
    succeededAt: row.succeeded_at,
    failedAt: row.failed_at,
    lastStatus: row.last_status,
    lastResponse: row.last_response,
    disabledReason: row.disabled,
    waiting: row.waiting,
    failed: row.failed,
    dueAt: row.due_at,
    heldBy: row.holder,
  }
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    sequence: row.sequence,
    messageId: row.message_id,
    database: row.database_name,
    key: row.key,
    body: row.body,
    attempts: row.attempts,
    firstAt: row.first_at,
    nextAt: row.next_at,
    failed: Boolean(row.failed),
    lastStatus: row.last_status,
    lastResponse: row.last_response,
  }
}

/** The failure streak belongs to a URL: a new URL starts without one. */
function applyEdit(webhook: Webhook, edit: WebhookEdit): Webhook {
  const isNewUrl = edit.url !== undefined && edit.url !== webhook.url
  return { ...webhook, ...edit, ...(isNewUrl && { failureStreak: 0, retryAt: null }) }
}

function toJsonText(value: readonly string[] | null): string | null {
  return value === null ? null : JSON.stringify(value)
}
