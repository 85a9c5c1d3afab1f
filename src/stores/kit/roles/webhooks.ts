import type { Action, Delivery, Webhook, WebhookAllowance, WebhookEdit, WebhookStore } from '../../../contract/index.ts'
import { addWebhookEntry, PROGRAM, removeWebhookEntry, restartWebhookEntry, rotateWebhookEntry, switchWebhookEntry, webhookEntry } from '../audit-entries.ts'
import { lockTenant, welcomeTenant } from '../registry.ts'
import { read, write, type PlansOf } from '../sql/port.ts'
import { withoutNul } from '../without-nul.ts'
import { checkSealingKey } from './data-keys.ts'

const WEBHOOK = 'tenant_id = :tenant and webhook_id = :id'
const CLAIMED = `${WEBHOOK} and epoch = :epoch and holder is not null`
const UNCLAIM = 'epoch = epoch + 1, holder = null, held_until = null'

export const WEBHOOKS = {
  webhooks: read(function* (sql) {
    const found = yield* sql.all<WebhookRow>(`${SELECT} where w.tenant_id = :tenant order by w.webhook_id`)
    return found.map(toWebhook).toSorted((a, b) => a.createdAt - b.createdAt)
  }),

  putWebhook: write(function* (sql, settings, { position, floor }, actor = PROGRAM) {
    const { id, url, databases, actions, allow, secrets, createdAt } = settings
    const epoch = yield* welcomeTenant(sql)
    yield* checkSealingKey(sql, secrets)
    const update = ['url', 'databases', 'actions', 'allow', 'secrets']
    yield* sql.run(
      sql.dialect.upsert({ table: 'webhooks', key: ['tenant_id', 'webhook_id'], insert: [...update, 'created_at', 'position', 'floor', 'epoch'], update }),
      { webhook_id: id, url, databases: toJson(databases), actions: toJson(actions), allow: JSON.stringify(allow), secrets, created_at: createdAt, position, floor, epoch },
    )
    yield* sql.kernel.writeAudit(null, addWebhookEntry(settings, { actor, at: createdAt }))
  }),

  editWebhook: write(function* (sql, id, edit, by) {
    yield* lockTenant(sql)
    // The row is locked before it is read: a claim holder that notes deliveries may be about to change its streak.
    const locked = yield* sql.get(`select 1 from {webhooks} where ${WEBHOOK} {for_update}`, { id })
    if (locked === undefined) return false
    const before = toWebhook((yield* sql.get<WebhookRow>(`${SELECT} where w.tenant_id = :tenant and w.webhook_id = :id`, { id }))!)
    const after = applyEdit(before, edit)
    const entry = webhookEntry(before, after, by)
    if (entry === null) return true
    const { url, databases, actions, allow, streak, retryAt } = after
    yield* sql.run(
      `update {webhooks} set url = :url, "databases" = :databases, actions = :actions, allow = :allow, streak = :streak, retry_at = :retryAt, ${UNCLAIM} where ${WEBHOOK}`,
      { id, url, databases: toJson(databases), actions: toJson(actions), allow: JSON.stringify(allow), streak, retryAt },
    )
    yield* sql.kernel.writeAudit(null, entry)
    return true
  }),

  rotateWebhook: write(function* (sql, id, secrets, by) {
    yield* lockTenant(sql)
    yield* checkSealingKey(sql, secrets)
    const changed = yield* sql.run(`update {webhooks} set secrets = :secrets where ${WEBHOOK} and secrets = :replaces`, { id, secrets, replaces: by.replaces })
    if (changed > 0) yield* sql.kernel.writeAudit(null, rotateWebhookEntry(id, by))
    return changed > 0
  }),

  removeWebhook: write(function* (sql, id, by) {
    yield* lockTenant(sql)
    // The webhook first: a claim holder that notes deliveries has its row locked.
    const removed = yield* sql.run(`delete from {webhooks} where ${WEBHOOK}`, { id })
    yield* sql.run(`delete from {deliveries} where ${WEBHOOK}`, { id })
    if (removed > 0) yield* sql.kernel.writeAudit(null, removeWebhookEntry(id, by))
    return removed > 0
  }),

  restartWebhook: write(function* (sql, id, { actor, at, place }) {
    yield* lockTenant(sql)
    const moved = place === undefined ? '' : 'position = :position, floor = :floor, '
    const changed = yield* sql.run(
      `update {webhooks} set disabled = null, streak = 0, retry_at = null, ${moved}${UNCLAIM} where ${WEBHOOK}`, { id, ...place },
    )
    if (changed === 0) return null
    yield* sql.kernel.writeAudit(null, restartWebhookEntry(id, place, { actor, at }))
    // They come again from the log.
    if (place !== undefined) yield* sql.run(`delete from {deliveries} where ${WEBHOOK} and sequence > :position`, { id, position: place.position })
    const { dead } = (yield* sql.get<{ dead: number }>(`select count(*) as dead from {deliveries} where ${WEBHOOK} and dead`, { id }))!
    yield* sql.run(`update {deliveries} set dead = false, attempts = 0, first_at = null, next_at = :at where ${WEBHOOK}`, { id, at })
    return dead
  }),

  switchWebhook: write(function* (sql, id, disabled, by) {
    yield* lockTenant(sql)
    const changed = yield* sql.run(`update {webhooks} set disabled = :disabled, streak = 0, retry_at = null, ${UNCLAIM} where ${WEBHOOK}`, { id, disabled })
    if (changed > 0) yield* sql.kernel.writeAudit(null, switchWebhookEntry(id, disabled, by))
    return changed > 0
  }),

  claimWebhook: write(function* (sql, id, { holder, ttlMs, at, evict }) {
    const found = yield* sql.get<{ epoch: number; holder: string | null; held_until: number | null; now: number }>(
      `select epoch, holder, held_until, :now as now from {webhooks} where ${WEBHOOK} and disabled is null {for_update}`, { id, at },
    )
    if (found === undefined) return null
    if (found.holder !== null && found.held_until! > found.now && found.holder !== evict) return null
    const epoch = found.epoch + 1
    yield* sql.run(`update {webhooks} set epoch = :epoch, holder = :holder, held_until = :until where ${WEBHOOK}`, { id, epoch, holder, until: found.now + ttlMs })
    const claimed = yield* sql.get<WebhookRow>(`${SELECT} where w.tenant_id = :tenant and w.webhook_id = :id`, { id })
    return { id, epoch, webhook: toWebhook(claimed!) }
  }),

  renewWebhook: write(function* (sql, { id, epoch }, { ttlMs, at }) {
    return (yield* sql.run(`update {webhooks} set held_until = {greatest}(held_until, :now + :ttlMs) where ${CLAIMED}`, { id, epoch, ttlMs, at })) > 0
  }),

  releaseWebhook: write(function* (sql, { id, epoch }) {
    yield* sql.run(`update {webhooks} set holder = null, held_until = null where ${WEBHOOK} and epoch = :epoch`, { id, epoch })
  }),

  webhookSecrets: read(function* (sql, { id, epoch }) {
    return (yield* sql.get<{ secrets: string }>(`select secrets from {webhooks} where ${CLAIMED}`, { id, epoch }))?.secrets ?? null
  }),

  noteDeliveries: write(function* (sql, { id, epoch }, { standing, delivered, kept }) {
    const { position, floor, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer, disabled } = standing
    const changed = yield* sql.run(
      `update {webhooks} set position = :position, floor = :floor, streak = :streak, retry_at = :retryAt, succeeded_at = :succeededAt, failed_at = :failedAt,
         last_status = :lastStatus, last_answer = :lastAnswer, disabled = :disabled where ${CLAIMED}`,
      { id, epoch, position, floor, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer: withoutNul(lastAnswer), disabled },
    )
    if (changed === 0) return false
    for (const sequence of delivered) yield* sql.send(`delete from {deliveries} where ${WEBHOOK} and sequence = :sequence`, { id, sequence })
    const update = ['attempts', 'first_at', 'next_at', 'dead', 'last_status', 'last_answer']
    const keep = sql.dialect.upsert({
      table: 'deliveries', key: ['tenant_id', 'webhook_id', 'sequence'], insert: ['message_id', 'database_name', 'key', 'body', ...update], update,
    })
    for (const { sequence, messageId, database, key, body, attempts, firstAt, nextAt, dead, ...last } of kept) {
      yield* sql.send(keep, {
        webhook_id: id, sequence, message_id: messageId, database_name: database, key, body, attempts, first_at: firstAt, next_at: nextAt, dead,
        last_status: last.lastStatus, last_answer: withoutNul(last.lastAnswer),
      })
    }
    return true
  }),

  deliveries: read(function* (sql, { webhook, dead, limit }) {
    const found = yield* sql.all<DeliveryRow>(`select * from {deliveries} where ${WEBHOOK} and dead = :dead order by sequence limit :limit`, { id: webhook, dead, limit })
    return found.map(toDelivery)
  }),
} satisfies PlansOf<WebhookStore>

const OF_WEBHOOK = 'from {deliveries} d where d.tenant_id = w.tenant_id and d.webhook_id = w.webhook_id'
const SELECT = `select w.*,
  (select count(*) ${OF_WEBHOOK} and not d.dead) as waiting, (select count(*) ${OF_WEBHOOK} and d.dead) as dead,
  (select min(next_at) ${OF_WEBHOOK} and not d.dead) as due_at
  from {webhooks} w`

interface WebhookRow {
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

interface DeliveryRow {
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

function toWebhook(row: WebhookRow): Webhook {
  return {
    id: row.webhook_id, url: row.url, databases: row.databases === null ? null : (JSON.parse(row.databases) as string[]),
    actions: row.actions === null ? null : (JSON.parse(row.actions) as Action[]), allow: JSON.parse(row.allow) as WebhookAllowance[], secrets: row.secrets,
    createdAt: row.created_at, position: row.position, floor: row.floor, streak: row.streak, retryAt: row.retry_at, succeededAt: row.succeeded_at,
    failedAt: row.failed_at, lastStatus: row.last_status, lastAnswer: row.last_answer, disabled: row.disabled, waiting: row.waiting, dead: row.dead,
    dueAt: row.due_at, heldBy: row.holder,
  }
}

function toDelivery(row: DeliveryRow): Delivery {
  return {
    sequence: row.sequence, messageId: row.message_id, database: row.database_name, key: row.key, body: row.body, attempts: row.attempts,
    firstAt: row.first_at, nextAt: row.next_at, dead: Boolean(row.dead), lastStatus: row.last_status, lastAnswer: row.last_answer,
  }
}

/** Failures are those of a URL: at another one it begins without. */
function applyEdit(webhook: Webhook, edit: WebhookEdit): Webhook {
  const isElsewhere = edit.url !== undefined && edit.url !== webhook.url
  return { ...webhook, ...edit, ...(isElsewhere && { streak: 0, retryAt: null }) }
}

function toJson(value: readonly string[] | null): string | null {
  return value === null ? null : JSON.stringify(value)
}
