import type {
  AcquireRequest, Delivery, DeliveryNote, InboundClaim, InboundMessage, KeptMessage, Webhook, WebhookClaim, WebhookEdit, WebhookPlace, WebhookSettings, WebhookStanding,
} from '../../contract/index.ts'
import { addWebhookEntry, PROGRAM, removeWebhookEntry, restartWebhookEntry, rotateWebhookEntry, switchWebhookEntry, webhookEntry } from '../kit/audit-entries.ts'
import { edited, toDelivery, toWebhook, type DeliveryRow, type WebhookRow } from '../kit/webhook-rows.ts'
import type { Session } from './connection.ts'
import { refuseErased, welcomeTenant, writeAudit } from './registry.ts'
import { checkSealingKey } from './sealed-texts.ts'

/** Where changes are sent to, how far that has come, and what came in. */

export function webhooks({ connection, tenantId }: Session): Webhook[] {
  return connection.all<WebhookRow>(`${WEBHOOKS} where w.tenant_id = ? order by w.created_at, w.webhook_id`, tenantId).map(toWebhook)
}

export function putWebhook(session: Session, settings: WebhookSettings, place: WebhookPlace, actor = PROGRAM): void {
  const { connection, tenantId } = session
  const { id, url, databases, actions, allow, secrets, createdAt } = settings
  connection.write(() => {
    checkSealingKey(session, secrets)
    connection.run(
      `insert into tidemark_webhooks (tenant_id, webhook_id, url, databases, actions, allow, secrets, created_at, position, floor, epoch) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       on conflict (tenant_id, webhook_id) do update set url = excluded.url, databases = excluded.databases, actions = excluded.actions, allow = excluded.allow, secrets = excluded.secrets`,
      tenantId, id, url, json(databases), json(actions), JSON.stringify(allow), secrets, createdAt, place.position, place.floor, welcomeTenant(session),
    )
    writeAudit(session, null, addWebhookEntry(settings, { actor, at: createdAt }))
  })
}

export function editWebhook(session: Session, id: string, edit: WebhookEdit, by: { actor: string; at: number }): boolean {
  const { connection, tenantId } = session
  return connection.write(() => {
    const found = connection.get<WebhookRow>(`${WEBHOOKS} where w.tenant_id = ? and w.webhook_id = ?`, tenantId, id)
    if (found === undefined) return false
    const before = toWebhook(found)
    const after = edited(before, edit)
    const entry = webhookEntry(before, after, by)
    if (entry === null) return true
    const { url, databases, actions, allow, streak, retryAt } = after
    connection.run(
      `update tidemark_webhooks set url = ?, databases = ?, actions = ?, allow = ?, streak = ?, retry_at = ?, epoch = epoch + 1, holder = null, held_until = null
       where tenant_id = ? and webhook_id = ?`,
      url, json(databases), json(actions), JSON.stringify(allow), streak, retryAt, tenantId, id,
    )
    writeAudit(session, null, entry)
    return true
  })
}

export function rotateWebhook(session: Session, id: string, secrets: string, by: { actor: string; at: number; replaces: string }): boolean {
  const { connection, tenantId } = session
  return connection.write(() => {
    checkSealingKey(session, secrets)
    const { changes } = connection.run('update tidemark_webhooks set secrets = ? where tenant_id = ? and webhook_id = ? and secrets = ?', secrets, tenantId, id, by.replaces)
    if (changes > 0) writeAudit(session, null, rotateWebhookEntry(id, by))
    return changes > 0
  })
}

export function removeWebhook(session: Session, id: string, by: { actor: string; at: number }): boolean {
  const { connection, tenantId } = session
  return connection.write(() => {
    connection.run('delete from tidemark_deliveries where tenant_id = ? and webhook_id = ?', tenantId, id)
    const { changes } = connection.run('delete from tidemark_webhooks where tenant_id = ? and webhook_id = ?', tenantId, id)
    if (changes > 0) writeAudit(session, null, removeWebhookEntry(id, by))
    return changes > 0
  })
}

export function restartWebhook(session: Session, id: string, { actor, at, place }: { actor: string; at: number; place?: WebhookPlace }): number | null {
  const { connection, tenantId } = session
  return connection.write(() => {
    const { changes } = connection.run(
      `update tidemark_webhooks set disabled = null, streak = 0, retry_at = null, position = coalesce(?, position), floor = coalesce(?, floor),
         epoch = epoch + 1, holder = null, held_until = null where tenant_id = ? and webhook_id = ?`,
      place?.position ?? null, place?.floor ?? null, tenantId, id,
    )
    if (changes === 0) return null
    writeAudit(session, null, restartWebhookEntry(id, place, { actor, at }))
    // They come again from the log.
    if (place !== undefined) connection.run('delete from tidemark_deliveries where tenant_id = ? and webhook_id = ? and sequence > ?', tenantId, id, place.position)
    const { dead } = connection.get<{ dead: number }>('select count(*) as dead from tidemark_deliveries where tenant_id = ? and webhook_id = ? and dead = 1', tenantId, id)!
    connection.run('update tidemark_deliveries set dead = 0, attempts = 0, first_at = null, next_at = ? where tenant_id = ? and webhook_id = ?', at, tenantId, id)
    return dead
  })
}

export function switchWebhook(session: Session, id: string, disabled: string | null, by: { actor: string; at: number }): boolean {
  const { connection, tenantId } = session
  return connection.write(() => {
    const { changes } = connection.run(
      'update tidemark_webhooks set disabled = ?, streak = 0, retry_at = null, epoch = epoch + 1, holder = null, held_until = null where tenant_id = ? and webhook_id = ?', disabled, tenantId, id,
    )
    if (changes > 0) writeAudit(session, null, switchWebhookEntry(id, disabled, by))
    return changes > 0
  })
}

export function webhookSecrets({ connection, tenantId }: Session, { id, epoch }: WebhookClaim): string | null {
  const found = connection.get<{ secrets: string }>('select secrets from tidemark_webhooks where tenant_id = ? and webhook_id = ? and epoch = ? and holder is not null', tenantId, id, epoch)
  return found?.secrets ?? null
}

export function claimWebhook({ connection, tenantId }: Session, id: string, request: AcquireRequest): (WebhookClaim & { webhook: Webhook }) | null {
  return connection.write(() => {
    const found = connection.get<WebhookRow & LeaseRow>(`${WEBHOOKS} where w.tenant_id = ? and w.webhook_id = ?`, tenantId, id)
    if (found === undefined || found.disabled !== null) return null
    if (found.holder !== null && found.held_until! > request.at && found.holder !== request.evict) return null
    const epoch = found.epoch + 1
    connection.run(
      'update tidemark_webhooks set epoch = ?, holder = ?, held_until = ? where tenant_id = ? and webhook_id = ?',
      epoch, request.holder, request.at + request.ttlMs, tenantId, id,
    )
    return { id, epoch, webhook: toWebhook(found) }
  })
}

export function renewWebhook({ connection, tenantId }: Session, { id, epoch }: WebhookClaim, { ttlMs, at }: { ttlMs: number; at: number }): boolean {
  return connection.write(() => connection.run(
    'update tidemark_webhooks set held_until = max(held_until, ?) where tenant_id = ? and webhook_id = ? and epoch = ? and holder is not null', at + ttlMs, tenantId, id, epoch,
  ).changes > 0)
}

export function releaseWebhook({ connection, tenantId }: Session, { id, epoch }: WebhookClaim): void {
  connection.write(() => connection.run('update tidemark_webhooks set holder = null, held_until = null where tenant_id = ? and webhook_id = ? and epoch = ?', tenantId, id, epoch))
}

export function noteDeliveries({ connection, tenantId }: Session, { id, epoch }: WebhookClaim, { standing, delivered, kept }: DeliveryNote): boolean {
  return connection.write(() => {
    const { changes } = connection.run(
      `update tidemark_webhooks set position = ?, floor = ?, streak = ?, retry_at = ?, succeeded_at = ?, failed_at = ?, last_status = ?, last_answer = ?, disabled = ?
       where tenant_id = ? and webhook_id = ? and epoch = ? and holder is not null`,
      ...standingValues(standing), tenantId, id, epoch,
    )
    if (changes === 0) return false
    for (const sequence of delivered) connection.run('delete from tidemark_deliveries where tenant_id = ? and webhook_id = ? and sequence = ?', tenantId, id, sequence)
    for (const delivery of kept) {
      connection.run(
        `insert into tidemark_deliveries (tenant_id, webhook_id, sequence, message_id, database_name, key, body, attempts, first_at, next_at, dead, last_status, last_answer)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         on conflict (tenant_id, webhook_id, sequence) do update set attempts = excluded.attempts, first_at = excluded.first_at, next_at = excluded.next_at,
           dead = excluded.dead, last_status = excluded.last_status, last_answer = excluded.last_answer`,
        tenantId, id, delivery.sequence, delivery.messageId, delivery.database, delivery.key, delivery.body, delivery.attempts, delivery.firstAt, delivery.nextAt,
        Number(delivery.dead), delivery.lastStatus, delivery.lastAnswer,
      )
    }
    return true
  })
}

export function deliveries({ connection, tenantId }: Session, { webhook, dead, limit }: { webhook: string; dead: boolean; limit: number }): Delivery[] {
  return connection.all<DeliveryRow>(
    'select * from tidemark_deliveries where tenant_id = ? and webhook_id = ? and dead = ? order by sequence limit ?', tenantId, webhook, Number(dead), limit,
  ).map(toDelivery)
}

export function claimInbound(session: Session, { source, id }: InboundMessage, { at, busyMs, forgetBefore, payload }: InboundClaim): 'new' | 'busy' | 'done' {
  const { connection, tenantId } = session
  return connection.write(() => {
    refuseErased(session)
    connection.run('delete from tidemark_inbound where tenant_id = ? and source = ? and at < ? and done = 1', tenantId, source, forgetBefore)
    const found = connection.get<{ at: number; done: number }>('select at, done from tidemark_inbound where tenant_id = ? and source = ? and message_id = ?', tenantId, source, id)
    if (found?.done === 1) return 'done'
    if (found !== undefined && found.at > at - busyMs) return 'busy'
    connection.run(
      `insert into tidemark_inbound (tenant_id, source, message_id, at, done, payload) values (?, ?, ?, ?, 0, ?)
       on conflict (tenant_id, source, message_id) do update set at = excluded.at`, tenantId, source, id, at, payload ?? null,
    )
    return 'new'
  })
}

export function keptInbound({ connection, tenantId }: Session, { source, before, limit }: { source: string; before: number; limit: number }): KeptMessage[] {
  return connection.all<{ id: string; payload: string }>(
    'select message_id as id, payload from tidemark_inbound where tenant_id = ? and source = ? and at <= ? and payload is not null order by at, message_id limit ?', tenantId, source, before, limit,
  ).map(({ id, payload }) => ({ id, payload }))
}

export function settleInbound({ connection, tenantId }: Session, { source, id }: InboundMessage, { done, at }: { done: boolean; at: number }): void {
  connection.write(() => {
    if (done) connection.run('update tidemark_inbound set done = 1, at = ?, payload = null where tenant_id = ? and source = ? and message_id = ?', at, tenantId, source, id)
    else connection.run('delete from tidemark_inbound where tenant_id = ? and source = ? and message_id = ? and done = 0', tenantId, source, id)
  })
}

const WEBHOOKS = `select w.*,
  (select count(*) from tidemark_deliveries d where d.tenant_id = w.tenant_id and d.webhook_id = w.webhook_id and d.dead = 0) as waiting,
  (select count(*) from tidemark_deliveries d where d.tenant_id = w.tenant_id and d.webhook_id = w.webhook_id and d.dead = 1) as dead,
  (select min(next_at) from tidemark_deliveries d where d.tenant_id = w.tenant_id and d.webhook_id = w.webhook_id and d.dead = 0) as due_at
  from tidemark_webhooks w`

interface LeaseRow {
  epoch: number
  held_until: number | null
}

function standingValues({ position, floor, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer, disabled }: WebhookStanding): Array<string | number | null> {
  return [position, floor, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer, disabled]
}

function json(value: readonly string[] | null): string | null {
  return value === null ? null : JSON.stringify(value)
}
